"""The report of `capacity` as one HTML file that needs nothing else: plotly's script is inside, once."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from autoscaling.capacity.capacity import Capacity
from autoscaling.capacity.plots import nodes_by_hour, nodes_by_rule
from base.html_report import embedded_plot, html_report
from scorer.replay.plots import LABELS

_DASH = "–"


def capacity_page(found: Capacity, time_zone: str) -> str:
    """One HTML page with the pictures and the figures; it needs no other file."""
    window, recording = found.prepared.window, found.prepared.recording
    return html_report(
        "autoscaling/capacity/report.html.j2",
        title=f"Capacity {window.days[0]} to {window.days[-1]}",
        plotly=Markup(get_plotlyjs()),
        first=window.days[0].isoformat(),
        hour=f"{window.first_slot // 2:02d}:{window.first_slot % 2 * 30:02d}",
        days=window.n_days,
        pods=f"{len(recording.service):,}",
        target=f"{found.target:.2%}",
        recorded=[f"{count} x {name}" for name, count in found.recorded.items()],
        seed=found.seed,
        zone=time_zone,
        tiles=list(_tiles(found)),
        by_rule=embedded_plot(nodes_by_rule(found)),
        by_hour="" if found.by_hour is None else embedded_plot(nodes_by_hour(found.by_hour)),
        under="" if found.by_hour is None else f"{found.by_hour.under:.0%}",
        header=["", "nodes", "hot", "pods over requests", "with requests kept", "with reserve", "cost", "made of"],
        rows=list(_rows(found)),
    )


def _tiles(found: Capacity) -> Iterator[tuple[str, str, str]]:
    """Title, the nodes by requests ('' = there is no number), and ours."""
    native, ours = found.rules.get("native"), found.rules.get("forecast")
    if ours is not None and ours.nodes is not None:
        was = "" if native is None or native.nodes is None else str(native.nodes)
        yield "nodes, placed by requests and by the forecast", was, str(ours.nodes)
        yield "recorded nodes", "", str(sum(found.recorded.values()))


def _rows(found: Capacity) -> Iterator[list[str]]:
    for rule, one in found.rules.items():
        yield [
            LABELS[rule],
            _count(one.nodes),
            _DASH if one.trial is None else f"{one.trial.hot_share:.2%}",
            _DASH if one.trial is None else f"{one.trial.unplaced:,}",
            _count(one.within_requests),
            _count(one.reserve),
            _DASH if one.cost is None else f"{one.cost:,.2f}",
            "; ".join(f"{count} x {name}" for name, count in one.mix.items()),
        ]


def _count(value: int | None) -> str:
    return _DASH if value is None else f"{value:,}"
