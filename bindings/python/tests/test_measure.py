"""Counts of known work: fresh pages, of which each faults once."""

import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Mapping

import pytest

import quipu

PAGE = mmap.PAGESIZE


def touch(pages: int) -> None:
    with mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        for at in range(0, pages * PAGE, PAGE):
            memory[at] = 1


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


def follows_threads() -> bool:
    with quipu.measure("page-faults", inherit=True) as measured:
        pass
    return measured["page-faults"].kind == "exact"


def run(program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env={**os.environ, **environment}
    )


def test_pages_are_counted() -> None:
    touch(10)
    with quipu.measure("page-faults,task-clock,no-such-event") as measured:
        touch(512)
    faults = measured["page-faults"]
    assert faults.kind == "exact" and isinstance(faults.exact, int)
    assert 512 <= faults.exact < 560
    assert int(faults) == faults.value == faults.exact and float(faults) == faults.exact
    assert str(faults) == f"{faults.exact:,}" and "exact" in repr(faults)
    clock = measured["task-clock"]
    assert clock.unit == "ns" and str(clock).endswith(" ns") and int(clock) > 0
    none = measured["no-such-event"]
    assert none.kind == "not_read" and none.value is None and none.exact is None
    assert none.error is not None and "no-such-event" in none.error
    with pytest.raises(ValueError, match="no exact count"):
        int(none)
    assert list(measured) == ["page-faults", "task-clock", "no-such-event"]
    assert len(measured) == 3 and "page-faults" in measured and "cycles" not in measured
    with pytest.raises(KeyError):
        measured["cycles"]
    assert str(measured).splitlines()[0].split() == [str(faults), "page-faults"]


def test_a_reading_is_a_mapping() -> None:
    reading = quipu.measure("page-faults,no-such-event")
    assert isinstance(reading, Mapping) and isinstance(reading, quipu.Reading)
    assert not reading and list(reading) == [] and str(reading) == "" and repr(reading) == "<quipu.Reading []>"
    with reading as measured:
        touch(1)
    assert measured is reading and set(reading.keys()) == {"page-faults", "no-such-event"}
    assert [count.event for count in reading.values()] == [event for event, _ in reading.items()] == list(reading)
    assert {**reading}["page-faults"].exact == reading.counts[0].exact == reading["page-faults"].exact
    assert reading.get("cycles") is None and reading.get("cycles", 7) == 7
    found = reading.get("page-faults")
    assert found is not None and found.kind == "exact"
    number: object = 7
    assert number not in reading and "page-faults" in reading
    assert repr(reading).startswith("<quipu.Reading [<quipu.Count page-faults: ")
    lines = str(reading).splitlines()
    assert len(lines) == 2 and lines[0].endswith("  page-faults") and len(lines[0].split("page")[0]) == len("<not read>  ")
    assert lines[1].startswith("<not read>  no-such-event  cannot ")


def test_a_set_is_read_as_often_as_one_likes() -> None:
    counted = quipu.EventSet("page-faults", require_all=True)
    assert counted.events == ["page-faults"]
    with counted:
        before = counted.values()[0]
        touch(100)
        after = counted.values()[0]
        assert 100 <= after - before < 150
        counted.stop()
        touch(100)
        assert counted.values()[0] - after < 50
        counted.reset()
        assert counted.read()["page-faults"].exact == 0
    with pytest.raises(quipu.Error, match="closed"):
        counted.read()
    counted.close()


def test_formulas_have_values_of_their_own() -> None:
    formulas = {"ALL": "minor-faults + major-faults", "SHARE": "minor-faults / page-faults"}
    with quipu.measure("ALL,SHARE", formulas=formulas) as measured:
        touch(512)
    assert isinstance(measured["ALL"].exact, int) and 512 <= measured["ALL"].exact < 600
    assert measured["SHARE"].value == pytest.approx(1.0, abs=0.01)
    assert str(measured["SHARE"]).startswith(("1", "0.99"))
    with pytest.raises(ValueError, match="float"):
        int(measured["SHARE"])
    with quipu.EventSet("page-faults,SHARE", formulas=formulas) as counted:
        with pytest.raises(quipu.Error, match="SHARE: it has fractions"):
            counted.values()


def test_refusals_say_why() -> None:
    with pytest.raises(quipu.Error) as refused:
        quipu.EventSet("no-such-event", require_all=True)
    assert refused.value.kind == "event not supported" and "no-such-event" in str(refused.value)
    for malformed in ["{page-faults", "", ","]:
        with pytest.raises(quipu.Error):
            quipu.measure(malformed)
    with pytest.raises(quipu.Error):
        quipu.EventSet("page-faults", pid=1, tid=1)
    with pytest.raises(TypeError):
        quipu.measure(7)  # type: ignore[arg-type]


def test_an_exception_goes_through_and_nothing_is_read() -> None:
    before = descriptors()
    with pytest.raises(ZeroDivisionError):
        with quipu.measure("page-faults") as measured:
            1 / 0
    assert len(measured) == 0 and descriptors() == before


def test_threads_are_counted_if_asked_for() -> None:
    if not follows_threads():
        pytest.skip("threads are not followed here")
    with quipu.measure("page-faults", inherit=True) as measured:
        threads = [threading.Thread(target=touch, args=(500,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert 2000 <= int(measured["page-faults"]) < 2400


def test_threads_have_sets_of_their_own() -> None:
    counted: "dict[int, int]" = {}

    def work(pages: int) -> None:
        with quipu.measure("page-faults") as measured:
            touch(pages)
        counted[pages] = int(measured["page-faults"])

    threads = [threading.Thread(target=work, args=(pages,)) for pages in (100, 300, 700)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pages, faults in counted.items():
        assert pages <= faults < pages + 90


def test_one_set_in_many_threads_is_refused_and_not_broken() -> None:
    shared = quipu.EventSet("page-faults")
    errors = []

    def read() -> None:
        for _ in range(2000):
            try:
                shared.read()
            except quipu.Error as error:
                errors.append(error.kind)

    with shared:
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(errors) <= {"counters are busy"}
        assert isinstance(shared.read(), quipu.Reading)


def test_descriptors_come_back() -> None:
    quipu.measure("page-faults,task-clock")
    before = descriptors()
    for _ in range(100):
        with quipu.measure("page-faults,task-clock"):
            pass
        quipu.EventSet("page-faults")
        quipu.EventSet("page-faults").start()
    assert descriptors() == before


def test_a_fork_in_the_middle() -> None:
    ended = run("""
import mmap, os, quipu
with quipu.measure("page-faults") as measured, quipu.region("parent"):
    child = os.fork()
    if child == 0:
        with quipu.measure("page-faults") as own, quipu.region("child"):
            mmap.mmap(-1, 1000 * mmap.PAGESIZE)[:: mmap.PAGESIZE] = bytes(1000)
        assert own["page-faults"].exact >= 1000, own
        raise SystemExit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert measured["page-faults"].exact is not None, measured
print("ok")
""")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ok\n", "")


@pytest.mark.parametrize(
    "end", ["raise SystemExit(3)", "import os; os._exit(3)", "import sys; sys.exit(3)", "thread.start(); raise SystemExit(3)"]
)
def test_the_interpreter_ends_in_the_middle(end: str) -> None:
    ended = run(f"""
import threading, quipu
def forever():
    with quipu.EventSet("page-faults") as counted:
        while True:
            counted.read()
thread = threading.Thread(target=forever, daemon=True)
kept = quipu.EventSet("page-faults,task-clock")
kept.start()
quipu.region("never left").__enter__()
with quipu.measure("page-faults") as measured:
    {end}
""")
    assert (ended.returncode, ended.stdout) == (3, ""), ended
    assert "panicked" not in ended.stderr and "Fatal" not in ended.stderr


def test_other_interpreters_refuse_it_and_go_on() -> None:
    interpreters = pytest.importorskip("_interpreters", reason="Python before 3.13 has no such module")
    other = interpreters.create()
    try:
        failure = interpreters.exec(other, "import quipu")
        assert failure is None or "subinterpreter" in str(failure.formatted)
    finally:
        interpreters.destroy(other)
    test_pages_are_counted()


def test_regions_count_what_is_inside() -> None:
    ended = run(f"""
import json, sys, threading
sys.path.insert(0, {os.path.dirname(__file__)!r})
import quipu
from test_measure import touch
quipu.choose_region_events("page-faults")
@quipu.region("solve")
def solve():
    with quipu.region("fill"):
        touch(1000)
solve()
other = threading.Thread(target=solve)
other.start()
other.join()
try:
    quipu.region("solve").__exit__(None, None, None)
except quipu.Error:
    print("refused")
for line in quipu.region_report("csv").splitlines():
    print(line)
json.loads(quipu.region_report("json"))
table = quipu.region_report()
assert "fill" in table and "page-faults" in table, table
""")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "refused"
    fill = [line for line in lines if "fill" in line]
    assert len(fill) >= 1, ended.stdout


def test_what_the_machine_has() -> None:
    machine = quipu.info()
    assert machine["version"].count(".") == 2
    assert {"name", "usable", "error", "counters"} == set(machine["backends"][0])
    assert all(backend["usable"] == (backend["error"] is None) for backend in machine["backends"])
    events = quipu.list_events()
    assert quipu.Event("page-faults", "software", "") in events
    assert {event.kind for event in quipu.list_events("hardware")} == {"hardware"}
    assert any(event.name == "instructions" for event in quipu.list_events("hardware"))
