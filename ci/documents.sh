#!/bin/sh
# Runs every command of a list from the documents, in a folder with what they name, and says of each how it ended: `ok`,
# `SKIP` with the reason that the machine gives, or `FAIL`. It is a part of ci/documents, and runs in guests as well.
# Usage: ci/documents.sh LIST FOLDER [BENCH], with lines of LIST as `FILE:LINE<tab>COMMAND`; `quipu` is on the PATH. BENCH is
# what their `./bench` runs.
list=$1
mkdir -p "$2/tools" && cd "$2" || exit 1
PATH=$PWD/tools:$PATH
export PATH PAGER=cat

# What the documents take for granted: something to build, a program of one's own, a server, files of events.
program() { # FILE TEXT
  printf '#!/bin/sh\n%s\n' "$2" >"$1"
  chmod +x "$1"
}
program tools/make 'i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); done; ls -l / >/dev/null'
program bench "${3:-for i in 1 2 3; do quipu list native --cpu intel-skl >/dev/null; done}"
program server 'trap exit TERM INT; while :; do ls / >/dev/null; sleep 0.01; done'
cpu=$(quipu list native | sed 's/ .*//;q')
for file in mine faults; do
  cat >$file.toml <<EOF
[[cpu]]
id = "$cpu"

[cpu.presets]
MINE = "minor-faults"
ALL_FAULTS = "minor-faults + major-faults"
MINOR_SHARE = "minor-faults / page-faults"
EOF
done
cat >export.toml <<EOF
events = ["page-faults", "context-switches"]

[[target]]
cpus = "all"
by = "cpu"
EOF
./server &
server=$!
command -v pgrep >/dev/null || program tools/pgrep "echo $server"
trap 'kill $server' EXIT
quipu record -o perf.data.old -- ./bench >record.log 2>&1

# Reasons for which a machine, or its user, cannot do a thing; what is misspelt has none of them.
reasons='no CPU PMU|no PMU|cannot find the PMU soft|not have this event|PMU does not|does not support|cannot be opened|paranoid|is not mounted|/dev/cpu/|/dev/pctr|Permission|not permitted|a unit that the kernel shows|is known to count|has no metric or|no top-down analysis|which this CPU does not list|its term [a-z-]+: the kernel has no such PMU|and this CPU \(|the kernel patches its code|which virtual machines often hide|(jq|inferno-flamegraph|python3): (command )?not found|No module named .pandas'

ok=0 skipped=0 failed=0
while IFS="$(printf '\t')" read -r place command; do
  [ -e perf.data ] || quipu record -o perf.data -- ./bench >>record.log 2>&1
  limit=60 endless=
  case $command in
    *quipu\ top* | *'quipu stat '*'-p "$(pgrep'* | *'-A -I 1000' | *'quipu record -g -F 999 -p'* | *--overwrite* | *fifo:ctl*) endless=1 limit=3 ;;
  esac
  case $command in
    *fifo:ctl*) rm -f ctl; mkfifo ctl ;;
    */lib/x86_64-linux-gnu/*)
      [ -e /lib/x86_64-linux-gnu ] || { echo "$place: SKIP: $command: this is no x86"; skipped=$((skipped + 1)); continue; }
      ;;
  esac
  if [ "$endless" ]; then
    timeout -s INT $limit sh -c "$command" </dev/null >output 2>&1
  else
    timeout $limit sh -c "$command" </dev/null >output 2>&1
  fi
  status=$?
  [ "$endless" ] && { [ $status = 124 ] || [ $status = 130 ]; } && status=0
  if [ $status = 0 ]; then
    ok=$((ok + 1))
    echo "$place: ok: $command"
  elif [ $status != 124 ] && reason=$(grep -E -m 1 "$reasons" output); then
    skipped=$((skipped + 1))
    echo "$place: SKIP: $command: $reason"
  else
    failed=$((failed + 1))
    echo "$place: FAIL: $command: status $status"
    sed 's/^/    /' output
  fi
done <"$list"
echo "documents: $ok commands ran, $skipped were skipped, $failed failed"
[ $failed = 0 ]
