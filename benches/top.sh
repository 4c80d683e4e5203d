#!/usr/bin/env bash
# CPU time of `quipu top --stdio` beside `perf top --stdio`: every CPU at 1 kHz while two loops spin, in turns, medians.
# The goal is less than 2 % of one CPU, beside what each takes once, for the symbols of the kernel and of programs: each
# runs for so many seconds and for twice as long. QUIPU names another build than target/release/quipu.
#
# usage: benches/top.sh [ROUNDS [SECONDS]]
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

# Prints the CPU time of a command in seconds, which SIGINT ends after so many.
cost() { # SECONDS COMMAND...
  local TIMEFORMAT='%U %S'
  { time timeout -s INT "$@" >/dev/null 2>&1 </dev/null || true; } 2>&1 | awk '{ print $1 + $2 }'
}
median() { printf '%s\n' "$@" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

ours=() ours_twice=() theirs=() theirs_twice=()
for _ in $(seq "$rounds"); do
  ours+=("$(cost "$seconds" "$quipu" top --stdio -F 1000 -d 2)")
  theirs+=("$(cost "$seconds" perf top --stdio -F 1000 -d 2)")
  ours_twice+=("$(cost $((2 * seconds)) "$quipu" top --stdio -F 1000 -d 2)")
  theirs_twice+=("$(cost $((2 * seconds)) perf top --stdio -F 1000 -d 2)")
done
awk -v s="$seconds" -v o="$(median "${ours[@]}")" -v oo="$(median "${ours_twice[@]}")" \
  -v t="$(median "${theirs[@]}")" -v tt="$(median "${theirs_twice[@]}")" 'BEGIN {
  rate = 100 * (oo - o) / s
  printf "quipu top: %.1f %% of one CPU (at most 2%s), and %.2f s once\n", rate, (rate > 2 ? ": MISSED" : ""), 2 * o - oo
  printf "perf top: %.1f %% of one CPU, and %.2f s once; quipu / perf in %d s: %.2f\n", 100 * (tt - t) / s, 2 * t - tt, s, (t ? o / t : 0)
}'
