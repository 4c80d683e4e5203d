# What the guests of the BSDs have in common: a rig, which boots a kernel of theirs with a directory of
# programs and runs a script there (docs/building.md says what it has to do). Sourced after host.bash.

# Finds the rig and its emulator, and makes a directory of programs, C examples and the archive's scripts.
bsd() { # SYSTEM
  local archive output
  rig=${QUIPU_RIGS:-$HOME/.cache/quipu-rigs/bsd}/$1/run
  [ -x "$rig" ] || skip "there is no rig $rig (docs/building.md)"
  rig=$(realpath "$rig")
  need makefs makefs
  need python3 python3-minimal
  need xz xz-utils
  counting_emulator
  export QUIPU_COUNTING_QEMU=$emulator

  # Both CPUs compile, where what is distributed is optimised as a whole by one.
  output=$(CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 ci/bsd/package "$1" 2>&1) || {
    grep -q '^SKIP linking' <<<"$output" && skip "$(grep -m 1 '^SKIP linking' <<<"$output")"
    fail "the archive could not be made: $output"
    exit 1
  }
  archive=$(sed -n 's/: there, .*//p' <<<"$output")
  mkdir "$work/programs"
  tar -C "$work/programs" --strip-components 1 -xzf "$archive"
  # What this machine has recorded of a command, to be read there.
  recorded=
  if own_quipu record -e task-clock -o "$work/programs/perf.data" -- sha256sum "$archive" >/dev/null 2>&1; then
    recorded=$(own_quipu report -i "$work/programs/perf.data" | grep -m 1 '^# Samples: ') || true
  else
    rm -f "$work/programs/perf.data"
  fi
  cp "${CARGO_TARGET_DIR:-target}/cross/x86_64-unknown-$1/release/c-examples"/* "$work/programs"
}

# Compiles a program that a step needs, by the compiler that linked the others.
bsd_program() { # FILE.c [ARGUMENT...]
  local cache=${QUIPU_CROSS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quipu-cross}
  ZIG=$cache/zig/ziglang/zig ZIG_TARGET=x86_64-$name ZIG_GLOBAL_CACHE_DIR=$cache/zig-cache \
    ZIG_LOCAL_CACHE_DIR=$cache/zig-cache ci/zig-cc -O1 -o "$work/programs/$(basename "$1" .c)" "$@"
}

# Adds libpapi under the name that programs look for, and one that counts with it.
bsd_papi() {
  cp "${CARGO_TARGET_DIR:-target}/cross/x86_64-unknown-$name/release/libpapi.so" "$work/programs/libpapi.so.7.0"
  bsd_program bindings/papi/tests/programs/elsewhere.c -fno-sanitize=all -I bindings/papi/include "$work/programs/libpapi.so.7.0"
}

# The program ran to its end, and counted page faults as it says itself.
expect_papi() { # CONSOLE
  expect "$1" papi 'component sysdetect: enabled' 'page faults' 'done' 'status 0'
}

# What is planted is found, and nothing differs from itself.
expect_comparisons() { # CONSOLE
  local console=$1
  expect "$1" compared 'page-faults' 'elapsed' 'status 0'
  holds "twenty times the pages are more page faults on $1" eval 'lines "$console" compared | grep -q "^page-faults .* more$"'
  expect "$1" compared-itself 'page-faults' 'status 0'
  holds "a command faults as often as itself on $1" eval '! lines "$console" compared-itself | grep -q "^page-faults .* \(more\|less\)$"'
}

# A column of what the program with known regions left of a region's instructions.
of_region() { # CONSOLE REGION COLUMN
  lines "$1" regions_csv | awk -F, -v region="$2" -v column="$3" '$3 == region && $8 ~ /^instructions/ { print $column }'
}

# The regions of a program of known instructions, each with at most so many more: its own steps into them and out.
expect_regions() { # CONSOLE FACTOR
  local region column truth row
  expect "$1" regions_table 'outer' 'inner' 'status 0'
  expect "$1" regions_stat 'outer' 'inner' 'status 0'
  for row in outer:9:12000000 outer:10:10000000 outer/inner:9:2000000; do
    IFS=: read -r region column truth <<<"$row"
    holds "$region is entered five times on $1" [ "$(of_region "$1" "$region" 4)" = 5 ]
    between "column $column of $region on $1" "$truth" "$(of_region "$1" "$region" "$column")" $(($2 * (truth + 300000)))
  done
}

own_quipu() { "$(ci/programs)/quipu" "$@"; }

# A report of the recording has as many samples as here. Where this machine could make none there is no such step.
expect_report() { # CONSOLE
  [ -z "$recorded" ] || expect "$1" report "$recorded" 'sha256sum' 'status 0'
}

# Boots a machine, and runs the guest's script in its part. A guest that stops or does not end has failed.
bsd_boot() { # PART [ARGUMENT OF THE RIG...]
  local part=$1 status=0
  shift
  { echo "part=$part"; cat "$guests/bsd.script" "$guests/$name.script"; echo 'echo "== end"'; } >"$work/$part.script"
  "$rig" -t "${GUEST_SECONDS:-600}" -o "$work/$part.out" "$@" "$work/programs" "$work/$part.script" \
    >"$work/$part.console" 2>"$work/$part.console.errors" || status=$?
  echo "it ended with $status" >"$work/$part.console.end"
}
