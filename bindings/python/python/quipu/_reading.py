"""Event sets, and what they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Optional

from . import _native
from ._native import Count


class Reading(Mapping[str, Count]):
    """The counts of an event set: a mapping from the events, as they were asked for, to their counts."""

    __slots__ = ("_counts",)

    def __init__(self, counts: list[Count]) -> None:
        self._counts = counts

    @property
    def counts(self) -> tuple[Count, ...]:
        """The counts in the order of the request."""
        return tuple(self._counts)

    def __getitem__(self, event: str) -> Count:
        for count in self._counts:
            if count.event == event:
                return count
        raise KeyError(event)

    def __iter__(self) -> Iterator[str]:
        return (count.event for count in self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __str__(self) -> str:
        if not self._counts:
            return ""
        rows = [(str(count), count.event, count.error) for count in self._counts]
        width = max(len(value) for value, _, _ in rows)
        names = max(len(event) for _, event, _ in rows)
        lines = [f"{value:>{width}}  {event:<{names}}  {error or ''}".rstrip() for value, event, error in rows]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<quipu.Reading {self._counts!r}>"


class EventSet(_native.EventSet):
    """Events that are counted together, in the calling thread, a process (`pid`) or a thread (`tid`).

    Events are written as for `quipu stat -e`: names of any kind with commas between them, and groups in braces. An event that cannot
    be counted keeps its error in each count, unless `require_all` refuses it. `inherit` counts threads and processes that the
    target starts later; `formulas` are names for formulas over events. Where counting the kernel is not permitted, user mode alone
    is counted, and each count says so.

    A set is used by one thread at a time. It is closed by close(), at the end of a with block, or when nothing refers to it.
    """

    __slots__ = ()

    def read(self) -> Reading:
        """Returns what was counted since the last reset."""
        return Reading(self.counts())

    def __enter__(self) -> EventSet:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class measure(Reading):
    """Counts events while a with block runs, and is the reading then.

    with quipu.measure("page-faults,instructions:u") as measured:
        work()
    print(measured["page-faults"])

    The arguments are those of EventSet. In the block, and after an exception, nothing is read yet: the reading is empty.
    """

    __slots__ = ("_set",)

    def __init__(
        self,
        events: str = "instructions,cycles",
        *,
        pid: Optional[int] = None,
        tid: Optional[int] = None,
        inherit: bool = False,
        user_mode_fallback: bool = True,
        require_all: bool = False,
        formulas: Optional[dict[str, str]] = None,
    ) -> None:
        super().__init__([])
        self._set = _native.EventSet(
            events,
            pid=pid,
            tid=tid,
            inherit=inherit,
            user_mode_fallback=user_mode_fallback,
            require_all=require_all,
            formulas=formulas,
        )

    def __enter__(self) -> measure:
        self._set.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._set.stop()
                self._counts = self._set.counts()
        finally:
            self._set.close()


