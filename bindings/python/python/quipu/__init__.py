"""CPU performance counters: what a piece of Python costs, in instructions, cache misses, page faults or any other event.

    import quipu

    with quipu.measure("page-faults,instructions:u") as measured:
        work()
    print(measured)

Each count says what it is: exact, an estimate, a lower bound, a part, or not counted with the reason. An event that was not counted
is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from . import _native
from ._ipython import load_ipython_extension
from ._native import Count, Error, EventSet, Reading, measure
from ._region import Region, choose_region_events, region, region_report
from ._sample import sample

__all__ = [
    "Count",
    "Error",
    "Event",
    "EventSet",
    "Reading",
    "Region",
    "choose_region_events",
    "info",
    "list_events",
    "load_ipython_extension",
    "measure",
    "region",
    "region_report",
    "sample",
]

Mapping.register(Reading)


class Event(NamedTuple):
    """A name of an event that this system or CPU has."""

    name: str
    kind: str
    description: str


def list_events(kind: Optional[str] = None) -> list[Event]:
    """Returns the names of events: software, hardware (generalized), presets and native ones of this CPU, or those of one kind.

    That the CPU has an event does not mean that it may be counted here. Opening it says so, and why.
    """
    return [Event(*event) for event in _native.list_events() if kind in (None, event[1])]


def info() -> dict[str, Any]:
    """Returns what the machine is: `version`, `cpus` of the event database, and `backends`, each with `usable` and `error`."""
    return _native.info()
