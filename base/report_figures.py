"""The figures of HTML reports, in plotly: one look for all of them, and the pieces that several have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import plotly.graph_objects as go
from markupsafe import Markup
from plotly.subplots import make_subplots

_GRID: Final = "#e6eaee"
_TRANSPARENT: Final = "rgba(0,0,0,0)"
DOTTED: Final = {"color": "#8a8f98", "dash": "dot", "width": 1.2}
"""A line that marks a value, such as the share above which a node is hot."""


def subplots(titles: Iterable[str], *, rows: int = 1, cols: int = 1, **options: Any) -> go.Figure:
    """An empty figure of several plots, each with its title."""
    return make_subplots(rows=rows, cols=cols, subplot_titles=list(titles), **options)


def line(x: Iterable[Any], y: Iterable[float], colour: str, *, width: float = 2, **options: Any) -> go.Scatter:
    """A line in a figure. Values have four digits: more would only make the page larger."""
    values = [float(f"{value:.4g}") for value in y]
    return go.Scatter(x=list(x), y=values, **({"mode": "lines", "line": {"color": colour, "width": width}} | options))


def drawn(figure: go.Figure, *, height: int, **layout: Any) -> Markup:
    """The figure as a piece of a report, as wide as the page; on a phone it scrolls by itself.

    It has no background of its own, so that it can be read on a dark page, too. The page has plotly's script once.

    height : in pixels
    layout : what differs from the look of all figures
    """
    look: dict[str, Any] = {
        "margin": {"l": 60, "r": 20, "t": 50, "b": 45},
        "font": {"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 13, "color": "#2b2d42"},
        "legend": {"orientation": "h", "y": 1.08, "x": 0},
        "hovermode": "closest",
        "paper_bgcolor": _TRANSPARENT,
        "plot_bgcolor": _TRANSPARENT,
    }
    figure.update_layout(height=height, autosize=True, **look)
    figure.update_layout(**layout)
    figure.update_xaxes(gridcolor=_GRID, zeroline=False)
    figure.update_yaxes(gridcolor=_GRID, zeroline=False)
    figure.update_annotations(font_size=14)
    config = {"displayModeBar": False, "responsive": True}
    html = figure.to_html(include_plotlyjs=False, full_html=False, config=config)
    return Markup(f'<div class="scroll plotted">{html}</div>')
