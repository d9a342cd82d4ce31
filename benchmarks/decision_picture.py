"""One SVG of all cells: utilisation against violations, a panel for each cell and a line for each forecaster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from base.arrays import Floats

_COLUMNS, _WIDTH, _HEIGHT = 4, 250, 170
_LEFT, _TOP, _GAP = 46, 74, 22
_LOW, _HIGH = 0.6, 1.3
"""Utilisation over the true future's, at the ends of the horizontal axis."""
_MOST = 0.2
"""Violation rate at the top of the vertical axis, whose scale is the square root."""
_TICKS = (0.001, 0.01, 0.05, 0.1, 0.2)
_COLOURS = ("#d1495b", "#8a8f98", "#2e86ab", "#3a7d44", "#b07d2b", "#2b2d42")
_INK, _GRID = "#2b2d42", "#e3e5e8"


@dataclass(frozen=True, slots=True)
class Panel:
    """One cell. lines: forecaster -> (n_points, 2) utilisation over the true future's, violation rate."""

    title: str
    lines: Mapping[str, Floats]


def draw(panels: Sequence[Panel], marked: float) -> str:
    """Return the SVG. marked: the utilisation, over the true future's, at which tables compare."""
    rows = -(-len(panels) // _COLUMNS)
    width = _LEFT + _COLUMNS * (_WIDTH + _GAP)
    height = _TOP + rows * (_HEIGHT + 2 * _GAP) + 18
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
        f'<g font-family="sans-serif" font-size="11" fill="{_INK}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(
            _LEFT, 20, "Node half hours over capacity, by utilisation as a share of what the true future reaches", 15
        ),
    ]
    names = list(panels[0].lines)
    for position, name in enumerate(names):
        x = _LEFT + position * 150
        out.append(_line([(x, 40), (x + 24, 40)], position))
        out.append(_text(x + 30, 44, name, 12))
    for position, panel in enumerate(panels):
        left = _LEFT + position % _COLUMNS * (_WIDTH + _GAP)
        top = _TOP + position // _COLUMNS * (_HEIGHT + 2 * _GAP)
        out += _panel(panel, names, left, top, marked, ticks=position % _COLUMNS == 0)
    return "\n".join([*out, "</g>", "</svg>", ""])


def _panel(panel: Panel, names: Sequence[str], left: int, top: int, marked: float, *, ticks: bool) -> list[str]:
    def at(x: float, y: float) -> tuple[float, float]:
        up = (min(y, _MOST) / _MOST) ** 0.5
        return left + (x - _LOW) / (_HIGH - _LOW) * _WIDTH, top + _HEIGHT * (1 - up)

    out = [_text(left, top - 6, panel.title, 12)]
    for tick in (0.0, *_TICKS):
        (x, y), (end, _) = at(_LOW, tick), at(_HIGH, tick)
        out.append(f'<path d="M{x:.0f} {y:.1f}H{end:.0f}" stroke="{_GRID}"/>')
        if ticks:
            out.append(f'<text x="{x - 5:.0f}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:g} %</text>')
    for share in (0.7, 0.9, 1.1):
        x, y = at(share, 0)
        out.append(f'<text x="{x:.0f}" y="{y + 14:.0f}" text-anchor="middle">{share:.0%}</text>')
    x, _ = at(marked, 0)
    out.append(f'<path d="M{x:.1f} {top}V{top + _HEIGHT}" stroke="{_INK}" stroke-dasharray="2 3"/>')
    for position, name in enumerate(names):
        points = _clipped(panel.lines[name])
        if len(points) > 1:
            out.append(_line([at(*point) for point in points], position))
    return out


def _clipped(line: Floats) -> list[tuple[float, float]]:
    """Points from left to right, cut at the ends of the axis, where they are interpolated."""
    points = sorted((float(x), float(y)) for x, y in line)
    out: list[tuple[float, float]] = []
    for (x0, y0), (x1, y1) in pairwise(points):
        if x1 <= _LOW or x0 >= _HIGH or x1 == x0:
            continue
        ends = [(x, y0 + (x - x0) / (x1 - x0) * (y1 - y0)) for x in (max(x0, _LOW), min(x1, _HIGH))]
        out += ends if not out else ends[1:]
    return out


def _line(points: Sequence[tuple[float, float]], position: int) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    colour = _COLOURS[position % len(_COLOURS)]
    width = 2.4 if position == 0 else 1.5
    dash = ' stroke-dasharray="5 3"' if position == len(_COLOURS) - 1 else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'


def _text(x: float, y: float, text: str, size: int) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}">{escape(text)}</text>'
