"""pytest: the fixture `quipu`, and counts of each test with --quipu-events."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from . import Error, Reading, measure

_READINGS = pytest.StashKey[dict[str, Reading]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("quipu", "performance counters")
    group.addoption(
        "--quipu-events",
        metavar="EVENTS",
        help="count these events, as `quipu stat -e` takes them, in each test, and list them in the end",
    )


def pytest_configure(config: pytest.Config) -> None:
    events = config.getoption("--quipu-events")
    if events is None:
        return
    try:
        measure(events)
    except Error as error:
        raise pytest.UsageError(f"--quipu-events: {error}") from None
    config.stash[_READINGS] = {}


@pytest.fixture
def quipu() -> Callable[..., measure]:
    """quipu.measure: `with quipu("page-faults") as measured: ...`, then `assert measured["page-faults"].exact < 100`."""
    return measure


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    readings = item.config.stash.get(_READINGS, None)
    if readings is None:
        yield
        return
    # The outcome of the test is pytest's: it comes out of the yield as a value.
    with measure(item.config.getoption("--quipu-events"), inherit=True) as measured:
        yield
    readings[item.nodeid] = measured


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    readings = config.stash.get(_READINGS, None)
    if not readings:
        return
    terminalreporter.section("counts of the tests")
    rows = [[node, *(str(count) for count in reading.counts)] for node, reading in readings.items()]
    first = next(iter(readings.values()))
    rows.insert(0, ["", *first])
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        terminalreporter.write_line("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
    for count in first.counts:
        if count.error:
            terminalreporter.write_line(f"{count.event}: {count.error}")
