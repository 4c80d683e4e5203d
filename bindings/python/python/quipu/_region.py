"""Parts of a program with a name."""

from __future__ import annotations

from contextlib import ContextDecorator

from . import _native


class Region(ContextDecorator):
    """A part of the program with a name: the block of a with statement, or a function that it decorates.

    Each thread counts for itself, from its first region on, and regions are left in the reverse order that they were entered. A
    function that awaits or yields lets others run meanwhile, whose cost is in the region too.
    """

    __slots__ = ("_number", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._number = _native.region_number(name)

    def __enter__(self) -> Region:
        _native.region_begin(self._number)
        return self

    def __exit__(self, *_: object) -> None:
        _native.region_end(self._number)


def region(name: str) -> Region:
    """Returns a region for `with quipu.region("solve"):` or `@quipu.region("solve")`."""
    return Region(name)


def choose_region_events(events: str) -> None:
    """Chooses the events of regions, before the first one is entered; QUIPU_REGION_EVENTS of the environment goes before them."""
    _native.region_events(events)


def region_report(form: str = "table") -> str:
    """Returns what was counted in regions so far: "table", "json" or "csv". With QUIPU_REGIONS the program's end writes it, too."""
    return _native.region_report(form)
