"""The plugin of pytest and the hook of pyperf, as they are installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import mmap

def test_pages(quipu):
    with quipu("page-faults") as measured:
        memory = mmap.mmap(-1, 4096 * mmap.PAGESIZE)
        memory[:: mmap.PAGESIZE] = bytes(4096)
    assert measured["page-faults"].exact >= 4096

def test_fails():
    assert False
"""


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, timeout=120
    )


def test_pytest_has_a_fixture_and_a_table(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    ended = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider")
    assert ended.returncode == 1 and "1 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "counts of the tests" not in ended.stdout

    ended = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "--quipu-events", "page-faults,no-such-event")
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    rows = [line.split() for line in ended.stdout.splitlines()]
    # Not the line of the failure, which pytest has too.
    pages = next(row for row in rows if row[:1] == ["test_it.py::test_pages"])
    fails = next(row for row in rows if row[:1] == ["test_it.py::test_fails"])
    assert ["page-faults", "no-such-event"] in rows
    assert int(pages[1].replace(",", "")) >= 4096 and len(fails) == 4, ended.stdout
    assert "no-such-event: cannot" in ended.stdout

    refused = run(tmp_path, "pytest", "-q", "--quipu-events", "{page-faults")
    assert refused.returncode == 4 and "--quipu-events: " in refused.stderr, refused.stderr


def test_pyperf_has_a_hook(tmp_path: Path) -> None:
    pytest.importorskip("pyperf")
    results = tmp_path / "results.json"
    ended = run(
        tmp_path, "pyperf", "timeit", "--hook", "quipu", "--fast", "-p", "1", "-n", "1", "-w", "0", "-l", "10",
        "-o", str(results), "-s", "import mmap", "m = mmap.mmap(-1, 1024 * mmap.PAGESIZE); m[:: mmap.PAGESIZE] = bytes(1024); m.close()",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    text = json.loads(results.read_text())
    found = [
        metadata["quipu_page-faults"]
        for place in [text, *text["benchmarks"], *text["benchmarks"][0]["runs"]]
        for metadata in [place.get("metadata", {})]
        if "quipu_page-faults" in metadata
    ]
    assert found and found[0].endswith("in the last value"), text
    # Ten loops of 1024 pages.
    assert int(found[0].split()[0].replace(",", "")) >= 10_000


def test_ipython_has_a_magic(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    program = """
%load_ext quipu
import mmap
m = mmap.mmap(-1, 4096 * mmap.PAGESIZE)
%quipu page-faults n = len(m)
cell = "m[:: mmap.PAGESIZE] = bytes(4096)\\no = n"
get_ipython().run_cell_magic("quipu", "page-faults,no-such-event", cell)
assert o == n == 4096 * mmap.PAGESIZE
for wrong in ["", "page-faults"]:
    try:
        get_ipython().run_line_magic("quipu", wrong)
    except ValueError as error:
        print(error)
%quipu page-faults 1 / 0
"""
    ended = run(tmp_path, "IPython", f"--ipython-dir={tmp_path}", "--colors=NoColor", "-c", program)
    rows = [line.split() for line in ended.stdout.splitlines()]
    assert rows[0][1:] == ["page-faults"], ended
    assert rows[1][1:] == ["page-faults"] and int(rows[1][0].replace(",", "")) >= 4096, ended.stdout
    assert rows[2][:3] == ["<not", "read>", "no-such-event"], ended.stdout
    assert ended.stdout.count("say which events") == 2
    assert "ZeroDivisionError" in ended.stdout + ended.stderr
