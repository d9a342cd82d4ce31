"""The report of trajectories as one HTML file that needs nothing else: how soon each rule takes effect, and how many
moves that cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup

from base.html_report import html_report
from base.report_figures import drawn, line, subplots
from forecast.history import History
from rebalancer.trajectory.trajectories import (
    CLAIRVOYANT,
    MOVES,
    PLACEMENT,
    PLACEMENT_AND_MOVES,
    UNTOUCHED,
    Trajectories,
)

LABELS: Final = {
    UNTOUCHED: "untouched (kube-scheduler)",
    PLACEMENT: "placed by the forecast",
    MOVES: "moved by the forecast at night",
    PLACEMENT_AND_MOVES: "placed and moved by the forecast",
    CLAIRVOYANT: "true future",
}

_COLOURS: Final = {
    UNTOUCHED: "#c8553d",
    PLACEMENT: "#7d8ca3",
    MOVES: "#57b8a5",
    PLACEMENT_AND_MOVES: "#1f7a8c",
    CLAIRVOYANT: "#946c3c",
}

_WIDE: Final = (UNTOUCHED, PLACEMENT_AND_MOVES)


def time_to_effect(played: Trajectories) -> Markup:
    """Hot share of each day under every rule, and below it the pods that were moved on that day."""
    titles = ("<b>hot node half hours</b> of each day", "<b>pods moved</b> on each day")
    figure = subplots(titles, rows=2, shared_xaxes=True, vertical_spacing=0.1, row_heights=[0.62, 0.38])
    for rule in played.by_rule:
        width = 3.2 if rule in _WIDE else 1.6
        hot, moves = played.hot_share_by_day(rule), played.moves_by_day(rule)
        for row, values, form in ((1, hot, "%{y:.2%}"), (2, moves, "%{y} pods")):
            of_rule = line(played.window.days, values, _COLOURS[rule], width=width, name=LABELS[rule], legendgroup=rule)
            of_rule.update(mode="lines+markers", showlegend=row == 1, hovertemplate=f"%{{x|%a %d %b}}: {form}")
            figure.add_trace(of_rule, row=row, col=1)
    figure.update_yaxes(tickformat=".0%", rangemode="tozero", title_text="share", row=1, col=1)
    figure.update_yaxes(rangemode="tozero", title_text="pods", row=2, col=1)
    figure.update_xaxes(tickformat="%a %d %b", dtick=86_400_000)
    return drawn(figure, height=660, legend_y=1.3, margin_t=150)


def trajectory_page(played: Trajectories, history: History) -> str:
    """One HTML page with the picture and the figures; it needs no other file."""
    window, recording, options = played.window, played.recording, played.options
    return html_report(
        "rebalancer/trajectory/report.html.j2",
        title=f"Trajectory {window.days[0]} to {window.days[-1]}",
        plots=True,
        first=window.days[0].isoformat(),
        days=window.n_days,
        pods=f"{int((recording.birth == 0).sum()):,}",
        born=f"{int((recording.birth > 0).sum()):,}",
        nodes=recording.n_nodes,
        release=f"{options.release:.1%}" if options.release else "",
        budget=f"{played.budget:.1%}",
        seed=played.seed,
        zone=history.calendar.time_zone,
        fit_nights=options.fit_nights,
        tiles=list(_tiles(played)),
        effect=time_to_effect(played),
        header=["", "hot, first day", "hot, last day", "moves", "prevented / move", "returns", "in the peak"],
        rows=list(_rows(played)),
    )


def _tiles(played: Trajectories) -> Iterator[tuple[str, str, str]]:
    """Title, the value of untouched ('' = there is none), and ours."""
    was, now = (played.hot_share_by_day(rule) for rule in (UNTOUCHED, PLACEMENT_AND_MOVES))
    yield "node half hours hot on the last day", f"{was[-1]:.1%}", f"{now[-1]:.2%}"
    yield "on all days", f"{was.mean():.1%}", f"{now.mean():.2%}"
    moves = played.moves_by_day(PLACEMENT_AND_MOVES)
    yield "pods moved per night", "", f"{moves.mean():.1f}"


def _rows(played: Trajectories) -> Iterator[list[str]]:
    for rule, figures in played.to_json()["rules"].items():
        each = figures["prevented_per_move"]
        yield [
            LABELS[rule],
            f"{figures['hot_share_by_day'][0]:.2%}",
            f"{figures['hot_share_by_day'][-1]:.2%}",
            f"{figures['moves']:,}",
            "–" if each is None else f"{each:.2f}",
            f"{figures['returns']:,}",
            f"{figures['peak_window_moves']:,}",
        ]
