# What the guests of the BSDs have in common: a rig, which boots a kernel of theirs with a directory of
# programs and runs a script there (docs/building.md says what it has to do). Sourced after host.bash.

# Finds the rig and its emulator, and makes a directory of programs, C examples and the archive's scripts.
bsd() { # SYSTEM
  local archive output
  rig=${QUIPU_RIGS:-../shared/rigs}/$1/run
  [ -x "$rig" ] || skip "there is no rig $rig (docs/building.md)"
  rig=$(realpath "$rig")
  need makefs makefs
  need python3 python3-minimal
  need xz xz-utils
  counting_emulator
  export QUIPU_COUNTING_QEMU=$emulator

  output=$(ci/bsd/package "$1" 2>&1) || {
    grep -q '^SKIP linking' <<<"$output" && skip "$(grep -m 1 '^SKIP linking' <<<"$output")"
    fail "the archive could not be made: $output"
    exit 1
  }
  archive=$(sed -n 's/: there, .*//p' <<<"$output")
  mkdir "$work/programs"
  tar -C "$work/programs" --strip-components 1 -xzf "$archive"
  cp "${CARGO_TARGET_DIR:-target}/cross/x86_64-unknown-$1/release/c-examples"/* "$work/programs"
}

# Boots a machine, and runs the guest's script in its part. A guest that stops or does not end has failed.
bsd_boot() { # PART [ARGUMENT OF THE RIG...]
  local part=$1 status=0
  shift
  { echo "part=$part"; cat "$guests/bsd.script" "$guests/$name.script"; echo 'echo "== end"'; } >"$work/$part.script"
  "$rig" -t "${GUEST_SECONDS:-400}" -o "$work/$part.out" "$@" "$work/programs" "$work/$part.script" \
    >"$work/$part.console" 2>"$work/$part.console.errors" || status=$?
  echo "it ended with $status" >"$work/$part.console.end"
}
