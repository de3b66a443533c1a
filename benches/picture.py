"""The results as an SVG for light and dark pages: ours as a multiple of the best peer."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

import report

LEFT, PLOT, RIGHT = 270, 430, 190
ROW, BAR = 22, 13
TOP, BOTTOM = 64, 50
# The axis, as multiples of the best peer's time.
LOWEST, HIGHEST = 0.01, 10.0
TICKS = {0.01: "100 × faster", 0.1: "10 × faster", 1.0: "the same", 10.0: "10 × slower"}

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.quiet { fill: #6e7781; font-size: 11px }
.name { text-anchor: end }
.tick { text-anchor: middle }
.grid { stroke: #d0d7de; stroke-width: 1 }
.same { stroke: #6e7781; stroke-width: 1.5 }
.faster { fill: #1f7a5c }
.slower { fill: #c4552d }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .quiet { fill: #9198a1 }
  .grid { stroke: #3d444d }
  .same { stroke: #9198a1 }
  .faster { fill: #3fb68b }
  .slower { fill: #ef8354 }
}
"""


def x(ratio: float) -> float:
    inside = min(max(ratio, LOWEST), HIGHEST)
    return LEFT + PLOT * math.log(inside / LOWEST) / math.log(HIGHEST / LOWEST)


def draw(results: Mapping[str, Any]) -> str:
    bars = []
    for case in results["cases"]:
        best = report.best_peer(case)
        if best is not None:
            bars.append((case["case"], best["contender"], best["ratio"]))
    width, bottom = LEFT + PLOT + RIGHT, TOP + ROW * len(bars)
    height = bottom + BOTTOM
    machine, versions = results["machine"], results["versions"]
    libraries = ", ".join(f"{name} {versions[name]}" for name in report.LIBRARIES[:5])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="title">',
        f"<style>{STYLE}</style>",
        '<text id="title" class="title" x="16" y="24">Time of arrow-dlpack, as a multiple of the '
        "fastest other library's</text>",
    ]
    for ratio, label in TICKS.items():
        kind = "same" if ratio == 1 else "grid"
        parts += [
            f'<line class="{kind}" x1="{x(ratio):.1f}" x2="{x(ratio):.1f}" '
            f'y1="{TOP - 6}" y2="{bottom}"/>',
            f'<text class="tick quiet" x="{x(ratio):.1f}" y="{TOP - 12}">{label}</text>',
        ]
    for index, (name, peer, ratio) in enumerate(bars):
        middle = TOP + ROW * index + ROW / 2
        start, end = sorted((x(1.0), x(ratio)))
        kind = "faster" if ratio <= 1 else "slower"
        parts += [
            f'<text class="name" x="{LEFT - 12}" y="{middle + 4:.1f}">{escape(name)}</text>',
            f'<rect class="{kind}" x="{start:.1f}" y="{middle - BAR / 2:.1f}" '
            f'width="{max(end - start, 1):.1f}" height="{BAR}" rx="2"/>',
            f'<text x="{LEFT + PLOT + 12}" y="{middle + 4:.1f}">{ratio:.2f} '
            f'<tspan class="quiet">× {escape(peer)}</tspan></text>',
        ]
    busy = ", busy with other work" if report.is_busy(results) else ""
    parts += [
        f'<text class="quiet" x="16" y="{bottom + 22}">{results["date"]}, {machine["cores"]} × '
        f"{escape(machine['cpu'])}{busy}, one thread each; shorter is better</text>",
        f'<text class="quiet" x="16" y="{bottom + 38}">{escape(libraries)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
