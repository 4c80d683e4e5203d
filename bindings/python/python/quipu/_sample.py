"""Samples of a thread: where its events happen."""

from __future__ import annotations

import threading
from typing import Optional

from . import _native


class sample:
    """Takes samples of the calling thread while a with block runs. Its stacks are folded text then, as flame graphs are drawn of it.

    with quipu.sample("cpu-clock", frequency=999) as samples:
        work()
    print(samples.folded())

    Without events, cycles are sampled, or cpu-clock where there is no PMU. `period` takes a sample each so many events, in place of
    `frequency` in a second. `call_graph` is the method of finding callers: "fp" (frame pointers), "dwarf" (copies of the stack), or
    None. `inherit` samples the threads and processes that the block starts. The functions are native ones; those of Python are among
    them where the interpreter makes code of them, as with `python -X perf` (3.12). Linux alone has samples.
    """

    __slots__ = ("_events", "_options", "_samples", "_sampling")

    def __init__(
        self,
        events: Optional[str] = None,
        *,
        frequency: Optional[int] = None,
        period: Optional[int] = None,
        call_graph: Optional[str] = "fp",
        inherit: bool = False,
    ) -> None:
        if not hasattr(_native, "Sampling"):
            raise NotImplementedError("samples are taken on Linux alone")
        self._events = events
        self._options = (frequency, period, call_graph, inherit)
        self._sampling: Optional[_native.Sampling] = None
        self._samples: Optional[_native.Samples] = None

    def __enter__(self) -> sample:
        frequency, period, call_graph, inherit = self._options
        self._sampling = _native.Sampling(
            threading.get_native_id(),
            self._events,
            frequency=frequency,
            period=period,
            call_graph=call_graph,
            inherit=inherit,
        )
        return self

    def __exit__(self, *_: object) -> None:
        sampling, self._sampling = self._sampling, None
        if sampling is not None:
            self._samples = sampling.stop()

    def _taken(self) -> _native.Samples:
        if self._samples is None:
            raise ValueError("the samples are there when the with block has ended")
        return self._samples

    @property
    def counts(self) -> dict[str, int]:
        """The number of samples of each event."""
        return {event: samples for event, samples, _ in self._taken().events}

    @property
    def lost(self) -> int:
        """The number of samples that were lost, as there were too many at a time."""
        return sum(lost for _, _, lost in self._taken().events)

    @property
    def notes(self) -> list[str]:
        """Remarks on the samples: what was lost or has no names, and why."""
        return self._taken().notes

    def folded(self, event: Optional[str] = None) -> str:
        """Returns the stacks of an event, of the first one unless it is named: a line each, from the outermost function on with
        semicolons between them, and how much of the event it is. inferno, flamegraph.pl and speedscope read it."""
        events = [name for name, _, _ in self._taken().events]
        if event is not None and event not in events:
            raise KeyError(event)
        return self._taken().folded(events.index(event) if event is not None else 0)
