"""The report of trajectories as one HTML file that needs nothing else: plotly's script is inside, once."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from base.html_report import embedded_plot, html_report
from forecast.history import History
from rebalancer.trajectory.plots import LABELS, time_to_effect
from rebalancer.trajectory.trajectories import PLACEMENT_AND_MOVES, UNTOUCHED, Trajectories


def trajectory_page(played: Trajectories, history: History) -> str:
    """One HTML page with the picture and the figures; it needs no other file."""
    window, recording, options = played.window, played.recording, played.options
    return html_report(
        "rebalancer/trajectory/report.html.j2",
        title=f"Trajectory {window.days[0]} to {window.days[-1]}",
        plotly=Markup(get_plotlyjs()),
        first=window.days[0].isoformat(),
        days=window.n_days,
        pods=f"{int((recording.birth == 0).sum()):,}",
        born=f"{int((recording.birth > 0).sum()):,}",
        nodes=recording.n_nodes,
        release=f"{options.release:.1%}" if options.release else "",
        budget=f"{played.budget:.1%}",
        seed=played.seed,
        zone=history.calendar.time_zone,
        forecast=options.forecast,
        fit_nights=options.fit_nights,
        tiles=list(_tiles(played)),
        effect=embedded_plot(time_to_effect(played)),
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
