#!/usr/bin/env bash
# What `quipu stat` costs beside `perf stat`: the wall time of both measuring `true`, and of `true`
# alone. The three take turns, so that a busy machine disturbs all alike; medians are compared.
#
# usage: benches/stat-overhead.sh [ROUNDS [MOST]]
# Fails when quipu's median is more than MOST (0.4) of perf's; skips without perf.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
rounds=${1:-200} most=${2:-0.4}

command -v perf >/dev/null || { echo "SKIP stat-overhead: perf is not installed"; exit 0; }
perf stat true >/dev/null 2>&1 || { echo "SKIP stat-overhead: perf stat does not work here"; exit 0; }
cargo build --release --quiet --package quipu-cli
quipu=${CARGO_TARGET_DIR:-target}/release/quipu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

. benches/turns.bash

true=$(type -P true)
for ((round = 0; round < rounds; round++)); do
    clock true "$true"
    clock quipu "$quipu" stat "$true"
    clock perf perf stat "$true"
done

awk -v rounds="$rounds" -v most="$most" \
    -v alone="$(median true)" -v quipu="$(median quipu)" -v perf="$(median perf)" 'BEGIN {
    printf "medians of %d rounds:\n", rounds
    printf "  %-16s %8.2f ms\n", "true", alone / 1000
    printf "  %-16s %8.2f ms\n", "quipu stat true", quipu / 1000
    printf "  %-16s %8.2f ms\n", "perf stat true", perf / 1000
    printf "quipu / perf = %.2f (at most %s)\n", quipu / perf, most
    exit quipu / perf > most
}'
