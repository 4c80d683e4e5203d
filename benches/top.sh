#!/usr/bin/env bash
# CPU time of `quipu top --stdio` beside `perf top --stdio`: every CPU at 1 kHz while two loops spin, in turns, medians.
# The goal is less than 2 % of one CPU. QUIPU names another build than target/release/quipu.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} seconds=${2:-10}
quipu=${QUIPU:-target/release/quipu}
[ -n "${QUIPU:-}" ] || cargo build -q --release -p quipu-cli
perf --version >/dev/null 2>&1 || { echo "SKIP perf is not installed"; exit 0; }

spinning=()
for _ in 1 2; do
  (while :; do :; done) &
  spinning+=($!)
done
trap 'kill "${spinning[@]}"' EXIT

# Prints the CPU time of a command in seconds, which SIGINT ends.
cost() { # COMMAND...
  local TIMEFORMAT='%U %S'
  { time timeout -s INT "$seconds" "$@" >/dev/null 2>&1 </dev/null || true; } 2>&1 | awk '{ print $1 + $2 }'
}
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

ours=() theirs=()
for _ in $(seq "$rounds"); do
  ours+=("$(cost "$quipu" top --stdio -F 1000 -d 2)")
  theirs+=("$(cost perf top --stdio -F 1000 -d 2)")
done
ours=$(printf '%s\n' "${ours[@]}" | median)
theirs=$(printf '%s\n' "${theirs[@]}" | median)
awk -v o="$ours" -v t="$theirs" -v s="$seconds" 'BEGIN {
  printf "quipu top %.2f s, perf top %.2f s in %d s: ratio %.2f; quipu %.1f %% of one CPU\n", o, t, s, t ? o / t : 0, 100 * o / s
}'
