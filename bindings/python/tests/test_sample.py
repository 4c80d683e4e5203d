"""Samples of known work: a native function that runs nearly all the time, and as many page faults as pages."""

import os
import re
import subprocess
import sys
import threading
import zlib

import pytest
from test_measure import touch

import quipu


def spin(rounds: int) -> None:
    for _ in range(rounds):
        zlib.crc32(bytes(1 << 20))


def can_sample() -> bool:
    try:
        with quipu.sample("page-faults", period=1):
            pass
    except (quipu.Error, NotImplementedError):
        return False
    return True


pytestmark = pytest.mark.skipif(not can_sample(), reason="no samples can be taken here")


def weights(text: str) -> "dict[str, int]":
    rows = [line.rsplit(" ", 1) for line in text.splitlines()]
    assert len({stack for stack, _ in rows}) == len(rows)
    return {stack: int(weight) for stack, weight in rows}


def test_each_page_fault_is_a_sample() -> None:
    with quipu.sample("page-faults", period=1) as samples:
        touch(512)
    assert samples.lost == 0
    assert 512 <= samples.counts["page-faults"] < 600
    stacks = weights(samples.folded())
    assert sum(stacks.values()) == samples.counts["page-faults"]
    assert samples.folded("page-faults") == samples.folded()
    with pytest.raises(KeyError):
        samples.folded("cycles")


def test_the_hot_function_has_its_name() -> None:
    with quipu.sample("cpu-clock:u", frequency=1000) as samples:
        spin(600)
    stacks = weights(samples.folded())
    # zlib's is in libz or in a module of the interpreter.
    hot = sum(weight for stack, weight in stacks.items() if re.search("crc32|zlib|libz", stack))
    assert hot > sum(stacks.values()) / 2, samples.folded()


def test_copied_stacks_have_the_callers() -> None:
    with quipu.sample("cpu-clock:u", frequency=500, call_graph="dwarf") as samples:
        spin(200)
    stacks = weights(samples.folded())
    callers = sum(weight for stack, weight in stacks.items() if "PyEval" in stack)
    assert callers > sum(stacks.values()) / 2, samples.folded()


def test_other_threads_are_sampled_if_asked_for() -> None:
    for inherit in [False, True]:
        with quipu.sample("page-faults", period=1, inherit=inherit) as samples:
            thread = threading.Thread(target=touch, args=(2000,))
            thread.start()
            thread.join()
        assert (samples.counts["page-faults"] >= 2000) == inherit


def test_nothing_is_there_before_the_end() -> None:
    samples = quipu.sample("page-faults")
    with pytest.raises(ValueError, match="with block"):
        samples.folded()
    for wrong in [{"frequency": 1, "period": 1}, {"period": 0}, {"call_graph": "guess"}]:
        with pytest.raises(quipu.Error):
            with quipu.sample("page-faults", **wrong):  # type: ignore[arg-type]
                pass
    with pytest.raises(quipu.Error, match="no-such-event"):
        with quipu.sample("no-such-event"):
            pass


def test_descriptors_and_threads_come_back() -> None:
    def open_now() -> "tuple[int, int]":
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    with quipu.sample("page-faults"):
        pass
    before = open_now()
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            with quipu.sample("page-faults"):
                1 / 0
    assert open_now() == before


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python before 3.12 makes no code of its functions for profilers")
def test_functions_of_python_have_their_names() -> None:
    program = """
import quipu, sys
def hot_function_of_python(n):
    return sum(i * i for i in range(n))
with quipu.sample("cpu-clock:u", frequency=1000, call_graph="dwarf") as samples:
    hot_function_of_python(3_000_000)
print(samples.folded())
"""
    ended = subprocess.run([sys.executable, "-X", "perf", "-c", program], capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    if "perf trampoline" in ended.stderr:
        pytest.skip(ended.stderr)
    assert "py::hot_function_of_python" in ended.stdout, ended.stdout
