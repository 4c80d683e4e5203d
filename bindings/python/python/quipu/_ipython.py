"""IPython and Jupyter: `%load_ext quipu`, then `%quipu EVENTS CODE` counts a line, and `%%quipu EVENTS` a cell."""

from __future__ import annotations

from typing import Any, Optional

from ._native import measure


def load_ipython_extension(shell: Any) -> None:
    """Adds the magic `quipu`, as IPython asks for it."""

    def quipu(line: str, cell: Optional[str] = None) -> None:
        """%quipu EVENTS CODE counts a line, %%quipu EVENTS a cell; EVENTS as `quipu stat -e` takes them, without spaces."""
        events, _, code = line.strip().partition(" ")
        if not events or (cell is None and not code):
            raise ValueError("say which events: %quipu page-faults,instructions:u CODE")
        compiled = compile(shell.transform_cell(code if cell is None else cell), "<quipu>", "exec")
        with measure(events) as measured:
            exec(compiled, shell.user_ns)
        print(measured)

    shell.register_magic_function(quipu, "line_cell")
