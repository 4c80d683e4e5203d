"""pyperf: counts in the metadata of benchmarks, with `--hook quipu`.

The events are those of the variable QUIPU_PYPERF_EVENTS, which pyperf has to pass on (--inherit-environ QUIPU_PYPERF_EVENTS).
"""

from __future__ import annotations

import os
from typing import Optional

from . import Reading, measure

EVENTS = "page-faults,instructions:u,cycles:u"


class Hook:
    """Counts each value that pyperf measures: `loops` calls of the function. The metadata has the counts of the last one."""

    def __init__(self) -> None:
        self._events = os.environ.get("QUIPU_PYPERF_EVENTS", EVENTS)
        self._running: Optional[measure] = None
        self._last: Optional[Reading] = None

    def __enter__(self) -> Hook:
        self._running = measure(self._events, inherit=True).__enter__()
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if self._running is not None:
            self._running.__exit__(kind, *rest)
            self._last, self._running = self._running, None

    def teardown(self, metadata: dict[str, object]) -> None:
        """Adds the counts to the metadata, each with the mark of what it is; of what is not counted, the reason."""
        if self._last is None:
            return
        for count in self._last.counts:
            metadata[f"quipu_{count.event}"] = count.error or f"{count} in the last value"
