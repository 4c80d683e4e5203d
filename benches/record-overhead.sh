#!/usr/bin/env bash
# What `quipu record` adds to the time of a command beside `perf record`: the same loop alone, and sampled by each with the
# same event, frequency and call chains, in turns, so that a busy machine disturbs all alike; medians.
#
# usage: benches/record-overhead.sh [ROUNDS [MOST]]
# Fails when what quipu adds is more than MOST (1) of what perf adds; skips without perf. QUIPU names another build than
# target/release/quipu.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
rounds=${1:-30} most=${2:-1}

command -v perf >/dev/null || { echo "SKIP record-overhead: perf is not installed"; exit 0; }
quipu=${QUIPU:-${CARGO_TARGET_DIR:-target}/release/quipu}
[ -n "${QUIPU:-}" ] || cargo build --release --quiet --package quipu-cli

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
perf record -q -e cpu-clock:u -o "$work/perf.data" true >/dev/null 2>&1 || { echo "SKIP record-overhead: perf record does not work here"; exit 0; }

. benches/turns.bash

loop=(awk 'BEGIN { for (i = 0; i < 3000000; i++) sum += i }')
options=(-e cpu-clock:u -F 4000 -g)
for ((round = 0; round < rounds; round++)); do
    clock alone "${loop[@]}"
    clock quipu "$quipu" record "${options[@]}" -o "$work/quipu.data" -- "${loop[@]}"
    clock perf perf record "${options[@]}" -o "$work/perf.data" -- "${loop[@]}"
done

awk -v rounds="$rounds" -v most="$most" \
    -v alone="$(median alone)" -v quipu="$(median quipu)" -v perf="$(median perf)" 'BEGIN {
    printf "Medians of %d rounds: alone %.1f ms, quipu record %.1f ms, perf record %.1f ms\n", rounds, alone / 1000, quipu / 1000, perf / 1000
    share = (quipu - alone) / (perf - alone)
    printf "what record adds, quipu / perf = %.2f (at most %s)\n", share, most
    exit share > most
}'
