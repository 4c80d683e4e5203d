#!/usr/bin/env bash
# Measures `quipu report` and `quipu script` beside perf's on a long recording: the time and the peak memory of each, as
# medians of the ratios of pairs that were run in turns, and the instructions of each further sample. The recording is a
# real one, of a build with its many processes and functions, repeated until it is long enough.
#
# usage: benches/report.sh [MEGABYTES [ROUNDS]]        benches/report.sh 1000 3
# Prints MISSED beside what is beyond its target, and fails where that is a ratio or memory; skips without perf or GNU time.
# TMPDIR needs room for a tenth more than the recording. Instructions are counted by the CPU, or by valgrind where there are
# no counters. A recording that is much shorter than 100 MB tells what programs spend before the first sample.
#
# docs/performance.md has its last figures.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
megabytes=${1:-100} rounds=${2:-5}

skip() { echo "SKIP report: $*"; exit 0; }
command -v perf >/dev/null || skip "perf is not installed"
[ -x /usr/bin/time ] && /usr/bin/time -f %M true 2>/dev/null || skip "GNU time is not installed"
target=${CARGO_TARGET_DIR:-target}
cargo build --release --quiet --package quipu-cli
cargo build --release --quiet --package quipu-perf-data --example repeat
quipu=$PWD/$target/release/quipu repeat=$PWD/$target/release/examples/repeat
case $target in /*) quipu=$target/release/quipu repeat=$target/release/examples/repeat ;; esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CARGO_TARGET_DIR=$work/build "$quipu" record -g -F 8000 -o "$work/one.data" -- \
    cargo check --quiet --package quipu-perf-data >/dev/null 2>"$work/log" ||
    skip "a build cannot be recorded: $(tail -n 1 "$work/log")"
rm -rf "$work/build"
"$repeat" "$work/one.data" "$work/long.data" "$megabytes"
"$repeat" "$work/one.data" "$work/two.data" $((2 * $(stat -c %s "$work/one.data") / 1000000))
samples() { "$quipu" report -i "$1" --percent-limit 100 2>/dev/null | awk '/^# Samples:/ { n += $3 } END { print n + 0 }'; }
one=$(samples "$work/one.data") two=$(samples "$work/two.data")
echo "$(stat -c %s "$work/long.data") bytes, $(samples "$work/long.data") samples, medians of $rounds rounds:"

# Appends the seconds and the KiB of a command to a file.
measure() { # NAME COMMAND...
    local name=$1
    shift
    /usr/bin/time -a -o "$work/$name" -f '%e %M' "$@" >/dev/null 2>&1
}
for ((round = 0; round < rounds; round++)); do
    (
        cd "$work"
        measure perf.flat perf report -i long.data --stdio --no-children -g none
        measure quipu.flat "$quipu" report -i long.data
        measure perf.chains perf report -i long.data --stdio --no-children -g caller
        measure quipu.chains "$quipu" report -i long.data -g caller
        measure perf.script perf script -i long.data
        measure quipu.script "$quipu" script -i long.data
    )
done

missed=0
# Prints a number beside the most it may be.
judge() { # WHAT NUMBER MOST DETAILS
    local verdict=
    awk -v n="$2" -v most="$3" 'BEGIN { exit !(n > most) }' && verdict=MISSED missed=1
    printf '  %-42s %8s   at most %-6s %-28s %s\n' "$1" "$2" "$3" "$4" "$verdict"
}
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# Compares a column of the two: the median of the ratios of pairs, and the two medians.
compare() { # WHAT NAME COLUMN MOST UNIT
    local ratio ours theirs
    ratio=$(paste -d ' ' "$work/quipu.$2" "$work/perf.$2" |
        awk -v c="$3" '{ printf "%.3f\n", $c / ($(c + 2) > 0 ? $(c + 2) : 0.01) }' | median)
    ours=$(awk -v c="$3" '{ print $c }' "$work/quipu.$2" | median)
    theirs=$(awk -v c="$3" '{ print $c }' "$work/perf.$2" | median)
    judge "$1, of perf's" "$ratio" "$4" "$ours, perf $theirs $5"
}
# What a program spends before the first sample counts less, the longer the recording is.
most=0.5
[ "$megabytes" -lt 1000 ] || most=0.25
compare "report: time" flat 1 $most s
compare "report: peak memory" flat 2 0.5 KiB
compare "report -g caller: time" chains 1 $most s
compare "report -g caller: peak memory" chains 2 0.5 KiB
compare "script: time" script 1 0.5 s
compare "script: peak memory" script 2 0.5 KiB
for form in flat chains script; do
    judge "$form: peak memory, MB" "$(awk '{ printf "%d\n", $2 * 1.024 / 1000 }' "$work/quipu.$form" | median)" 300 ""
done

# Prints the instructions of a command in user mode.
instructions() {
    if [ "$counter" = cpu ]; then
        perf stat -x , -e instructions:u -o "$work/count" "$@" >/dev/null 2>&1
        awk -F , '/instructions/ { print $1 }' "$work/count"
    else
        valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null | awk '/Collected/ { print $NF }'
    fi
}
if perf stat -x , -e instructions:u true 2>&1 | grep -q '^[0-9]'; then
    counter=cpu
elif command -v valgrind >/dev/null; then
    counter=valgrind
else
    echo "SKIP instructions: the CPU counts none here, and valgrind is not installed"
    exit $missed
fi
marginal() {
    local of_one of_two
    of_one=$(instructions "$@" -i "$work/one.data")
    of_two=$(instructions "$@" -i "$work/two.data")
    # Nothing that was counted is no number of instructions.
    [ "${of_one:-0}" -gt 0 ] && [ "${of_two:-0}" -gt "$of_one" ] && [ "$two" -gt "$one" ] || { echo inf; return; }
    echo $(((of_two - of_one) / (two - one)))
}
failed=$missed
judge "report: instructions a sample" "$(marginal "$quipu" report)" 600 "counted by $counter"
judge "report -g: instructions a sample" "$(marginal "$quipu" report -g)" 1000 "counted by $counter"
exit $failed
