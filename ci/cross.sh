#!/usr/bin/env bash
# Lints the workspace for other systems than this one, and links the commands and libquipu for the BSDs.
#
#   ci/cross.sh                    both, for every target below
#   ci/cross.sh lint [TARGET...]   clippy, every crate and every test, and the facade's feature portable; of macOS
#                                  quipu-posix alone
#   ci/cross.sh link [TARGET...]   programs, libquipu and C programs, in target/cross/TARGET/release
#   ci/cross.sh gate               what the gate's time holds, without tests; it names what it leaves to ci/long
#
# Not every target has a prebuilt standard library, so it is built once from Debian's package of its
# source, by Debian's compiler. Zig from PyPI compiles C and links. Nothing is installed: all of it
# lies in a cache directory. Where a download fails, every target is skipped by name; docs/building.md
# has more.
set -euo pipefail
cd "$(dirname "$0")/.."

bsds=(x86_64-unknown-openbsd x86_64-unknown-freebsd x86_64-unknown-netbsd)
targets=("${bsds[@]}" i686-unknown-openbsd x86_64-unknown-dragonfly
  i686-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin x86_64-apple-darwin)

cache=${QUIPU_CROSS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quipu-cross}
rust=$cache/rust/usr
export ZIG_GLOBAL_CACHE_DIR=$cache/zig-cache ZIG_LOCAL_CACHE_DIR=$cache/zig-cache

# What the gate has time for: a system that is not Linux, of 32 bits. The guests of the BSDs build their own.
gate=(i686-unknown-openbsd)

# The programs and libraries of other systems, with every crate that they are made of.
products=(-p quipu-cli -p quipu-conform -p quipu-capi -p quipu-papi -p quipu-likwid)
linted=(--workspace --all-targets)

is_bsd() { [[ " ${bsds[*]} " == *" $1 "* ]]; }
say() { printf '\n== %s\n' "$*"; }

# Runs a command silently; when it fails, `reason` is its first error, or else its last line.
reason=
attempt() {
  local output
  output=$("$@" 2>&1) || {
    reason="$1 says: $(grep -m 1 -E '^(E|ERROR): ' <<<"$output" || tail -n 1 <<<"$output")"
    return 1
  }
}

# Debian's rustc, clippy and library source, downloaded as any user may and only unpacked.
get_rust() {
  [ ! -x "$rust/bin/rustc" ] || return 0
  command -v apt-get >/dev/null || {
    reason="there is no apt-get on this machine"
    return 1
  }
  local new=$cache/rust.new package
  local apt=(apt-get -q -o "Dir::State::Lists=$new/lists" -o "Dir::Cache=$new"
    -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Acquire::Retries=1 -o Acquire::http::Timeout=30)
  rm -rf "$new"
  mkdir -p "$new"/{lists,archives}/partial
  # A source that does not answer matters only if the packages are missed, and is then the reason.
  local unanswered=
  attempt "${apt[@]}" -o APT::Update::Error-Mode=any update || unanswered=$reason
  attempt "${apt[@]}" --yes --no-install-recommends --download-only install \
    rustc-web rust-web-clippy rust-web-src || {
    reason=${unanswered:-$reason}
    return 1
  }
  for package in "$new"/archives/*.deb; do
    attempt dpkg-deb --extract "$package" "$new" || return
  done
  rm -rf "$new"/{lists,archives,*.bin}
  find "$new"/usr/src/rustc-* -mindepth 1 -maxdepth 1 ! -name library -exec rm -rf {} +
  # A shared standard library could not be linked yet, and is not needed.
  sed -i 's/^crate-type = .*/crate-type = ["rlib"]/' "$new"/usr/src/rustc-*/library/std/Cargo.toml

  local needed found
  needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  found=$(LD_LIBRARY_PATH=$(echo "$new"/usr/lib/*-linux-gnu) "$new/usr/bin/rustc" --version 2>&1) || {
    reason="Debian's rustc does not run here: $found"
    return 1
  }
  [ "$(printf '%s\n' "$needed" "$(cut -d' ' -f2 <<<"$found")" | sort -V | head -n 1)" = "$needed" ] || {
    reason="apt has $found, and the workspace needs $needed"
    return 1
  }
  mv "$new" "$cache/rust"
}

get_zig() {
  attempt ci/get-zig || return
  ZIG=$(ci/get-zig)
  export ZIG
}

# Builds the libraries that are missing. Linting needs no more than metadata, in a third of the time.
standard_libraries() {
  local target whole=() metadata=()
  for target; do
    if [ -e "$rust/lib/rustlib/$target" ]; then
      continue
    elif is_bsd "$target"; then
      whole+=("$target")
    else
      metadata+=("$target")
    fi
  done
  build_standard_libraries build rlib "${whole[@]}"
  build_standard_libraries check rmeta "${metadata[@]}"
}

# build_standard_libraries build|check rlib|rmeta TARGET...
build_standard_libraries() {
  local how=$1 kind=$2 target build=$cache/std-build
  shift 2
  [ $# -gt 0 ] || return 0
  say "standard library ($kind) for $*"
  RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$build RUSTFLAGS="-Zforce-unstable-if-unmarked -Cembed-bitcode=yes" \
    cargo "$how" --quiet --release --locked "${@/#/--target=}" \
    --manifest-path "$(echo "$rust"/src/rustc-*/library/sysroot/Cargo.toml)" --features backtrace
  for target; do
    mkdir -p "$build/$target.new/lib"
    cp "$build/$target"/release/deps/lib*."$kind" "$build/$target.new/lib"
    mv "$build/$target.new" "$rust/lib/rustlib/$target"
  done
  rm -rf "$build"
}

# for_target TARGET COMMAND...: with Zig as the C compiler and linker of the target. Some dependencies
# of benches compile C.
for_target() {
  local triple=${1/-unknown-/-}
  triple=${triple/apple-darwin/macos}
  env "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$1")_LINKER=$PWD/ci/zig-cc" "ZIG_TARGET=${triple/#i686/x86}" \
    "CC_$1=$PWD/ci/zig-cc" "AR_$1=ar" "${@:2}"
}

lint() {
  local target packages features
  for target; do
    say "lints for $target"
    packages=("${linted[@]}") features=()
    case $target in
      # Zig has no C library for DragonFly, which the feature zstd would be compiled with.
      *-dragonfly) features=(--no-default-features) ;;
      # What is of macOS alone is in this crate; the others were not tried there.
      *-apple-darwin) packages=(-p quipu-posix --all-targets) ;;
    esac
    for_target "$target" "$rust/bin/cargo-clippy" clippy --quiet "${packages[@]}" "${features[@]}" \
      --target "$target" -- -D warnings
    [[ $target != *-apple-darwin ]] || continue
    for_target "$target" "$rust/bin/cargo-clippy" clippy --quiet -p quipu-counters --no-default-features \
      --features portable --target "$target" -- -D warnings
  done
}

link() {
  local target
  for target; do
    say "programs and libquipu for $target"
    # As released, but for what takes minutes: each crate is optimized by itself.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
      for_target "$target" cargo build --quiet --release "${products[@]}" --target "$target"
    c_examples "$target"
  done
}

# The examples in C, beside libquipu under the name that they look for.
c_examples() { # TARGET
  local built=$CARGO_TARGET_DIR/$1/release to example library
  to=$built/c-examples
  library=$to/libquipu.so.$(sed -n 's/^version = "\([0-9]*\.[0-9]*\).*/\1/p' Cargo.toml)
  mkdir -p "$to"
  cp "$built/libquipu_capi.so" "$library"
  for example in bindings/capi/examples/*.c; do
    for_target "$1" ci/zig-cc -std=c11 -Ibindings/capi/include -o "$to/$(basename "$example" .c)" "$example" \
      "$library" -lpthread
  done
}

skip() {
  local what=$1 target
  shift
  for target; do
    echo "SKIP $what for $target: $reason"
  done
}

to_lint=() to_link=()
case ${1-} in
  "") to_lint=("${targets[@]}") to_link=("${bsds[@]}") ;;
  lint) to_lint=("${@:2}") && [ $# -gt 1 ] || to_lint=("${targets[@]}") ;;
  gate)
    to_lint=("${gate[@]}") linted=("${products[@]}") reason="ci/long has the time for it"
    skip "lints of tests" "${gate[@]}"
    for target in "${targets[@]}"; do
      [[ " ${gate[*]} " == *" $target "* ]] || skip lints "$target"
    done
    reason="ci/long links, and the guests link what they boot"
    skip linking "${bsds[@]}"
    ;;
  link) to_link=("${@:2}") && [ $# -gt 1 ] || to_link=("${bsds[@]}") ;;
  *)
    echo "usage: ci/cross.sh [lint|link [TARGET...]]" >&2
    exit 2
    ;;
esac
for target in "${to_link[@]}"; do
  is_bsd "$target" || {
    echo "ci/cross.sh: programs are linked for ${bsds[*]}, not for $target" >&2
    exit 2
  }
done

mkdir -p "$cache"
exec {lock}>"$cache/lock"
flock "$lock"
if ! get_rust || ! get_zig; then
  skip lints "${to_lint[@]}"
  skip linking "${to_link[@]}"
  exit
fi

export RUSTC=$rust/bin/rustc LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(echo "$rust"/lib/*-linux-gnu)
standard_libraries $(printf '%s\n' "${to_lint[@]}" "${to_link[@]}" | sort -u)
exec {lock}>&-

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/cross
# Named, so that what was built over the library of another cache directory is not taken for built.
export CARGO_ENCODED_RUSTFLAGS=--sysroot=$rust
lint "${to_lint[@]}"
link "${to_link[@]}"
done=$((${#to_lint[@]} + ${#to_link[@]}))
echo "$done checks, $done passed, 0 skipped: lints for ${#to_lint[@]} systems, programs for ${#to_link[@]}"
