# What the scripts here have in common: a kernel of Debian's, an initramfs with programs of ours, a boot
# that ends within a bound, and sentences that its console has to show. Sourced with `name` set to what
# the guest is called; the working directory becomes that of the project.
#
# Everything downloaded is kept in $QUIPU_GUESTS (~/.cache/quipu-guests). VERBOSE=1 shows every console, and
# GUEST_SECONDS=N is the bound of every boot where the one it has is not enough.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
: "${name:?}"
guests=ci/guests
cache=${QUIPU_GUESTS:-$HOME/.cache/quipu-guests}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 expected=0

# Ends the script: what is needed is not to be had here.
skip() { echo "SKIP $name guest: $*"; exit 0; }

fail() { echo "FAIL $name guest: $*"; failed=1; }

# Has a program, from a package if need be.
need() { # PROGRAM PACKAGE
  command -v "$1" >/dev/null && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends "$2"; } >/dev/null 2>&1 &&
    command -v "$1" >/dev/null || skip "$1 is not there and cannot be installed"
}

# Finds an x86 emulator whose CPUs have counters that count, as $emulator (docs/building.md tells what it is).
counting_emulator() {
  local place
  emulator=${QUIPU_COUNTING_QEMU:-}
  for place in "$cache" ~/.cache/quipu-rigs; do
    [ -n "$emulator" ] || [ ! -x "$place/qemu-x86-pmu/qemu-system-x86_64" ] || emulator=$place/qemu-x86-pmu/qemu-system-x86_64
  done
  [ -x "$emulator" ] || skip "no emulator whose CPUs count${emulator:+ at $emulator} (docs/building.md)"
}

# Packages of Debian, unpacked into $cache/NAME/root; of a kernel, the one that the package is of now.
unpack() { # NAME ARCHITECTURE PACKAGE...
  local place=$cache/$1 package
  [ -e "$place/complete" ] && return
  command -v apt-get >/dev/null || skip "Debian's packages cannot be fetched without apt"
  rm -rf "${place:?}"
  mkdir -p "$place"/{packages,root} "$place/lists/partial"
  local apt=(-oAPT::Architecture="$2" -oAPT::Architectures="$2" -oDir::State::Lists="$place/lists"
    -oDir::State::status=/dev/null -oAPT::Sandbox::User="$(id -un)")
  # A source that does not answer matters only if it is the one with the packages.
  apt-get "${apt[@]}" -oAcquire::Retries=1 -qq update >/dev/null 2>&1 || true
  for package in "${@:3}"; do
    case $package in linux-image-*)
      package=$(apt-cache "${apt[@]}" depends "$package" 2>/dev/null |
        awk '/Depends: linux-image/ && !found { print $2; found = 1 }') && [ -n "$package" ] ||
        skip "Debian's archive cannot be reached, or has no kernel for $2"
      ;;
    esac
    (cd "$place/packages" && apt-get "${apt[@]}" -qq download "$package") >/dev/null 2>&1 ||
      skip "Debian's package $package cannot be downloaded"
  done
  for package in "$place"/packages/*.deb; do dpkg-deb -x "$package" "$place/root"; done
  touch "$place/complete"
}

# A kernel with its modules and a static busybox, in $system.
debian() { # ARCHITECTURE
  system=$cache/$1/root
  unpack "$1" "$1" "linux-image-$1" busybox-static
}

kernel() { echo "$system"/boot/vmlinuz-*; }

# Begins the root of an initramfs: busybox, the init that is the same for all, and the guest's script.
root() { # SCRIPT
  mkdir -p "$work"/root/{bin,dev,etc,proc,sys,run,tmp}
  cp "$(find "$system/" -path '*bin/busybox' -type f | head -n 1)" "$work/root/bin/busybox"
  cp "$guests/init" "$work/root/init"
  cp "$1" "$work/root/script"
}

# Adds programs, without what is for debuggers, with the libraries they need where they look for them.
programs() { # FILE...
  local file
  for file; do
    # This machine's strip may know its own architecture only.
    strip -g -o "$work/root/bin/$(basename "$file")" "$file" 2>/dev/null || cp "$file" "$work/root/bin"
    { ldd "$file" 2>/dev/null || true; } | { grep -o '/[^ ]*' || true; } | xargs -r cp --parents -Lt "$work/root"
  done
}

# Adds a kernel module for modprobe.
module() { # NAME
  local file directory
  file=$(find "$system/lib/modules" -name "$1.ko*" | head -n 1)
  directory=$work/root${file#"$system"}
  directory=${directory%/*}
  mkdir -p "$directory"
  case $file in
    *.xz) xz -dc "$file" >"$directory/$1.ko" ;;
    *) cp "$file" "$directory/$1.ko" ;;
  esac
}

pack() { (cd "$work/root" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$work/initramfs"; }

# Boots; the console is kept under a name. A guest that does not end by itself has failed.
boot() { # CONSOLE SECONDS EMULATOR [ARGUMENT...]
  local console=$work/$1.console seconds=${GUEST_SECONDS:-$2} status=0
  shift 2
  timeout --kill-after 10 "$seconds" "$@" -display none -nodefaults -serial stdio -monitor none -no-reboot \
    </dev/null 2>"$console.errors" | sed 's/\r//g; s/\x1b\[[0-9;]*m//g' >"$console" || status=$?
  case $status in
    124 | 137) echo "it did not end within $seconds seconds" ;;
    0) echo "it ended before its script did" ;;
    *) echo "the emulator ended with $status" ;;
  esac >"$console.end"
}

# Boots machines, two at a time: `start MACHINE` boots one.
start_all() { # MACHINE...
  local machine
  for machine; do
    [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n || true
    start "$machine" &
  done
  wait
}

# After a boot: whether it came to its end.
ended() { # CONSOLE
  [ -z "${VERBOSE:-}" ] || sed "s/^/$1: /" "$work/$1.console"
  grep -q '^== end$' "$work/$1.console" && return
  fail "$1: $(cat "$work/$1.console.end"); its console:"
  cat "$work/$1.console" "$work/$1.console.errors"
  return 1
}

# The lines that a step of the guest's script printed, the last of which is its exit status.
lines() { # CONSOLE STEP
  sed -n "/^== $2\$/,/^-- status/p" "$work/$1.console"
}

# The same in one. Lines that quipu broke for the width of a page are put together again.
step() { lines "$@" | tr -s '\n ' ' '; }

# What a step's `quipu stat -x,` counted: the values of an event, one a line.
counted() { # CONSOLE STEP EVENT
  lines "$1" "$2" | sed -n "s|^\([0-9]*\),,$3,.*|\1|p"
}

# A number that was counted is at least one and at most another.
in_range() { # LOW NUMBER HIGH
  [ -n "$2" ] && [ "$2" -ge "$1" ] && [ "$2" -le "$3" ]
}
between() { # WHAT LOW NUMBER HIGH
  holds "$1 is from $2 to $4, and not \"$3\"" in_range "$2" "$3" "$4"
}

# The sentences a step has to print, word by word; `status N` is its exit status.
expect() { # CONSOLE STEP SENTENCE...
  local console=$1 step=$2 printed sentence
  shift 2
  printed=$(step "$console" "$step")
  for sentence; do
    expected=$((expected + 1))
    case $sentence in status*) sentence="-- $sentence " ;; esac
    case $printed in *"$sentence"*) continue ;; esac
    fail "$console, $step: it does not say \"$sentence\", but:"
    lines "$console" "$step"
  done
}

# A sentence that a command says is true.
holds() { # SENTENCE COMMAND...
  expected=$((expected + 1))
  "${@:2}" || fail "it is not so that $1"
}

# A step whose tests have all passed and were not skipped, but for the reasons that are given.
passed() { # CONSOLE STEP [REASON...]
  local console=$1 step=$2 skipped reason
  shift 2
  expect "$console" "$step" ' 0 failed' 'status 0'
  while read -r skipped; do
    for reason; do case $skipped in *"$reason"*) continue 2 ;; esac; done
    fail "$console, $step: $skipped"
  done < <(lines "$console" "$step" | grep -o 'SKIP .*')
}

# The executable of a package's test, as PACKAGE-TEST.
test_program() { # PACKAGE TEST [CARGO'S ARGUMENT...]
  local file
  file=$(cargo test --quiet --no-run --package "$1" --test "$2" --message-format json "${@:3}" |
    sed -n "s/.*\"executable\":\"\([^\"]*$2-[^\"]*\)\".*/\1/p" | tail -n 1)
  cp "$file" "$work/$1-$2"
}

# Takes the record of a conformance run that a step printed.
record() { # CONSOLE STEP NAME
  mkdir -p "$work/records"
  lines "$1" "$2" | sed -n '/^{$/,/^}$/p' >"$work/records/$3.json"
  grep -q '^}$' "$work/records/$3.json" || {
    fail "$1, $2: there is no record of a conformance run, but:"
    cat "$work/records/$3.json"
    rm "$work/records/$3.json"
  }
}

# Compares all records with docs/conformance.tsv; KEEP_RECORDS=1 puts them there.
verdict() {
  if [ -d "$work/records" ]; then
    for command in ${KEEP_RECORDS:+record} compare; do
      "$(ci/programs)/quipu-conform" "$command" docs/conformance.tsv "$work/records" ||
        fail "a check does not pass any more, or failed"
    done
  fi
  [ "$failed" = 0 ] && echo "$name guest: $expected sentences as expected"
  exit "$failed"
}
