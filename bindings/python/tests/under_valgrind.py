"""Calls everything that is native, for valgrind to watch: ci/measure runs it."""

import gc

import quipu

FORMULAS = {"ALL": "minor-faults + major-faults", "SHARE": "minor-faults / page-faults"}

for _ in range(20):
    with quipu.measure("page-faults,task-clock,no-such-event,ALL,SHARE", formulas=FORMULAS) as measured:
        memory = bytearray(1 << 20)
    for count in measured.counts:
        assert str(count) and repr(count) and count.event
        assert (count.value is None) == (count.error is not None)
    counted = quipu.EventSet("page-faults,task-clock", inherit=True)
    counted.start()
    counted.values()
    counted.read()
    counted.reset()
    counted.stop()
    counted.close()
    for wrong in ["", "{page-faults", "no-such-event"]:
        try:
            quipu.EventSet(wrong, require_all=True)
        except quipu.Error as error:
            assert error.kind and str(error)
        else:
            raise AssertionError(wrong)
    with quipu.region("outer"), quipu.region("inner"):
        pass
    assert quipu.region_report("csv") and quipu.region_report("json") and quipu.region_report()
    gc.collect()
assert quipu.list_events() and quipu.info()["version"]
