"""Draws the pictures of ci/pictures that are made from facts, to standard output, for light pages and dark ones.

Usage: cargo metadata --format-version 1 --no-deps | pictures.py crates docs/architecture.md
       cargo run -p quipu-pmu --example simulated_pmu | pictures.py turns
       pictures.py reads docs/performance.md
"""

import json
import re
import subprocess
import sys
import textwrap
from html import escape

WIDTH = 800
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #57606a }
.name { font-weight: 600; fill: #1f2328 }
.number { text-anchor: end; font-variant-numeric: tabular-nums }
.page { fill: #fff }
.grid, .edge path { stroke: #8c959f; stroke-width: 1; fill: none }
.edge polygon { fill: #8c959f }
.ours { fill: #0969da }
.other { fill: #8c959f }
.waits { fill: none; stroke: #8c959f; stroke-dasharray: 3 3 }
.node path { fill: #f6f8fa; stroke: #8c959f }
.backend path { fill: #ddf4ff; stroke: #0969da }
.facade path { fill: #dafbe1; stroke: #1a7f37 }
.client path { fill: #fff8c5; stroke: #9a6700 }
.node text { font-size: 12px }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 }
.name { fill: #f0f6fc }
.page { fill: #0d1117 }
.grid, .edge path { stroke: #656c76 }
.edge polygon { fill: #656c76 }
.ours { fill: #4493f8 }
.other { fill: #656c76 }
.waits { stroke: #656c76 }
.node path { fill: #151b23; stroke: #656c76 }
.backend path { fill: #0c2d6b; stroke: #4493f8 }
.facade path { fill: #033a16; stroke: #3fb950 }
.client path { fill: #341a00; stroke: #d29922 }
}
"""


def svg(body, height, width=WIDTH):
    """Returns a picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f'<style>{STYLE}</style>\n<rect class="page" width="{width}" height="{height}"/>\n{body}\n</svg>'
    )


def text(x, y, words, kind=""):
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def bar(x, y, width, kind, height=16):
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" class="{kind}"/>'


def table(path, heading):
    """Returns the rows of the table of a page that begins with a heading, without marks."""
    lines = open(path).read().split(heading, 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    plain = lambda cell: re.sub(r"\[(.*?)\]\(.*?\)|`", r"\1", cell).strip()
    return [[plain(cell) for cell in line.strip("|").split("|")] for line in lines]


def crates(page):
    """Draws which crate knows which, without what follows from others; dot(1) places them."""
    packages = [package for package in json.load(sys.stdin)["packages"] if package["publish"] != []]
    names = {package["name"] for package in packages}
    root = subprocess.run(["git", "rev-parse", "--show-toplevel"], text=True, check=True, stdout=subprocess.PIPE).stdout.strip()
    folders = {package["name"]: package["manifest_path"].removeprefix(root + "/").removesuffix("/Cargo.toml") for package in packages}
    knows = {
        package["name"]: {d["name"] for d in package["dependencies"] if d["kind"] is None} & names
        for package in packages
    }

    def below(name):
        return knows[name].union(*map(below, knows[name]))

    what = {folder: words for folder, _, words in table(page, "| folder | crate | what it is |")}
    lines = ['digraph { nodesep=0.08; ranksep=0.32; node [shape=box style=rounded fontname=Helvetica fontsize=12 margin="0.13,0.05"]']
    kinds = {"backend": "backend", "quipu": "facade", "bindings": "client", "tools/cli": "client"}
    for name in sorted(names):
        folder = folders[name]
        kind = next((kind for start, kind in kinds.items() if folder.startswith(start)), "")
        label = "\\n".join([folder, *textwrap.wrap(re.split(r"[:;,(]", what[folder])[0], 19)])
        lines.append(f'"{name}" [class="{kind}" label="{label}"]')
        direct = [known for known in sorted(knows[name]) if not any(known in below(other) for other in knows[name])]
        lines += [f'"{name}" -> "{known}" [arrowsize=0.6]' for known in direct]
    drawn = subprocess.run(["dot", "-Tsvg"], input="\n".join(lines) + "}", text=True, check=True, stdout=subprocess.PIPE).stdout
    width, height = map(float, re.search(r'viewBox="0.00 0.00 (\S+) (\S+)"', drawn).groups())
    body = drawn[drawn.index("<g id=") : drawn.index("</svg>")]
    body = re.sub(r"<title>%3</title>|<!--.*?-->|<polygon fill=\"white\".*?/>", "", body, flags=re.S)
    # The first line of a box is the name.
    body = re.sub(r'(<path [^>]*/>\n)<text ', r'\1<text class="name" ', body)
    body = re.sub(r' (fill|stroke|font-family|font-size)="[^"]*"', "", body)
    return svg(re.sub(r"\n+", "\n", body), height, width)


def turns():
    """Draws a run of events that take turns."""
    counted, events = [], []
    for line in sys.stdin.read().splitlines():
        if found := re.match(r" *(\d+) to +(\d+) ms: (.*)", line):
            counted.append((int(found[1]), int(found[2]), found[3].split(", ")))
        elif found := re.match(r"(\w+) +(\d+) of +(\d+) ms +(\d+) +(\S+) +(\d+)", line):
            events.append(found.groups())
    left, right, top, lane = 100, 410, 56, 34
    end = counted[-1][1]
    at = lambda time: left + (right - left) * time / end
    body = [text(left, 24, "two counters, four events: who counts when", "name")]
    columns = [(510, "running"), (603, "counted"), (702, "reported"), (WIDTH - 6, "happened")]
    body += [text(x, 24, words, "name number") for x, words in columns]
    for row, (event, running, enabled, value, reported, happened) in enumerate(events):
        y = top + row * lane
        body.append(text(left - 10, y + 12, event, "name number"))
        body.append(bar(left, y, right - left, "waits"))
        body += [bar(at(begin), y, at(stop) - at(begin), "ours") for begin, stop, names in counted if event in names]
        cells = [f"{running} of {enabled} ms", f"{int(value):,}", reported, f"{int(happened):,}"]
        body += [text(x, y + 12, cell, "number") for (x, _), cell in zip(columns, cells)]
    y = top + len(events) * lane
    for time in range(0, end + 1, counted[0][1] * 3):
        body.append(f'<path class="grid" d="M{at(time):.1f} {y}v-6"/>')
        body.append(f'<text x="{at(time):.1f}" y="{y + 14}" text-anchor="middle">{time} ms</text>')
    event, running, enabled, value, reported, _ = events[-1]
    y += 44
    body += [bar(left, y - 12, 24, "ours"), text(left + 32, y, "on a counter: time running")]
    body += [bar(left + 230, y - 12, 24, "waits"), text(left + 262, y, "waits for one; both together: time enabled")]
    y += 26
    body.append(text(left, y, "on a counter all of the time: exact; else an estimate (~): counted × enabled / running,"))
    body.append(text(left, y + 20, f"as {reported} {event} = {int(value):,} × {enabled} / {running}, which is right only if they come steadily"))
    return svg("\n".join(body), y + 34)


def reads(page):
    """Draws what reads cost beside those of others."""
    pairs = []
    for call, instead, _, sides, _ in table(page, "| call | instead |"):
        found = re.fullmatch(r"(\d+) and (\d+) ns", sides)
        if found and "read of" in call:
            pairs.append((call, instead, *map(int, found.groups())))
    left, right, y = 180, 650, 12
    most = max(max(pair[2:]) for pair in pairs)
    body = []
    for call, instead, ours, others in pairs:
        body.append(text(left - 12, y + 22, call, "name number"))
        for name, time, kind in [("Quipu", ours, "ours"), (instead, others, "other")]:
            length = (right - left) * time / most
            body += [bar(left, y, length, kind), text(f"{left + length + 8:.1f}", y + 12, f"{time} ns {name}")]
            y += 18
        y += 14
    return svg("\n".join(body), y)


if __name__ == "__main__":
    print({"crates": crates, "turns": turns, "reads": reads}[sys.argv[1]](*sys.argv[2:]))
