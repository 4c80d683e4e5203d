"""Counts of a loop of exactly 2 N instructions, each of which takes two cycles: a line for each event and N."""

import ctypes

import quipu

spin = ctypes.CDLL("libspin.so").spin
spin.argtypes = [ctypes.c_uint64]


def counts(rounds: int) -> "tuple[quipu.Count, ...]":
    with quipu.measure("instructions:u,cycles:u", require_all=True) as measured:
        spin(rounds)
    return measured.counts


# The interpreter changes its code while that is new.
for _ in range(20):
    counts(1)
for rounds in (1_000_000, 2_000_000):
    for count in counts(rounds):
        print(count.event, rounds, count.kind, int(count))
