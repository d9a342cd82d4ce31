"""The report of `capacity` as one HTML file that needs nothing else: nodes by rule, and nodes by hour of the day."""

from __future__ import annotations

from collections.abc import Iterator

import plotly.graph_objects as go
from markupsafe import Markup

from autoscaling.capacity.hours import HourlyNodes
from autoscaling.capacity.nodes_needed import Capacity
from base.html_report import html_report
from base.report_figures import DOTTED, drawn, line
from scorer.replay.replay_page import COLOURS, LABELS

_DASH = "–"
_HEADS = ("", "nodes", "hot", "pods over requests", "with requests kept", "with reserve")


def nodes_by_rule(found: Capacity) -> Markup:
    """A bar for each rule, and a line at the recorded number."""
    rules = [rule for rule, figures in found.rules.items() if figures.nodes is not None]
    figure = go.Figure(
        go.Bar(
            x=[found.rules[rule].nodes for rule in rules],
            y=[LABELS[rule] for rule in rules],
            orientation="h",
            marker_color=[COLOURS[rule] for rule in rules],
            text=[str(found.rules[rule].nodes) for rule in rules],
            hovertemplate="%{y}: %{x} nodes<extra></extra>",
        )
    )
    recorded = sum(found.recorded.values())
    figure.add_vline(x=recorded, line=DOTTED, annotation_text=f"recorded: {recorded}")
    figure.update_xaxes(rangemode="tozero", title_text="nodes")
    figure.update_yaxes(autorange="reversed")
    return drawn(figure, height=330, margin_l=190, showlegend=False)


def nodes_by_hour(by_hour: HourlyNodes) -> Markup:
    """Steps over the hours of the day: what was needed, and what the forecast expected."""
    figure = go.Figure()
    for rule, counts in (("oracle", by_hour.needed), ("forecast", by_hour.expected)):
        steps = line(range(25), [*counts, counts[-1]], COLOURS[rule], width=2.4, name=LABELS[rule])
        figure.add_trace(steps.update(line_shape="hv", hovertemplate="%{x}:00: %{y} nodes"))
    figure.update_xaxes(title_text="hour of the day", dtick=2, range=[0, 24])
    figure.update_yaxes(rangemode="tozero", title_text="nodes")
    return drawn(figure, height=360)


def capacity_page(found: Capacity, time_zone: str) -> str:
    """One HTML page with the pictures and the figures; it needs no other file."""
    window, recording = found.prepared.window, found.prepared.recording
    return html_report(
        "autoscaling/capacity/report.html.j2",
        title=f"Capacity {window.days[0]} to {window.days[-1]}",
        plots=True,
        first=window.days[0].isoformat(),
        hour=f"{window.first_slot // 2:02d}:{window.first_slot % 2 * 30:02d}",
        days=window.n_days,
        pods=f"{len(recording.service):,}",
        target=f"{found.target:.2%}",
        recorded=[f"{count} x {name}" for name, count in found.recorded.items()],
        seed=found.seed,
        zone=time_zone,
        tiles=list(_tiles(found)),
        by_rule=nodes_by_rule(found),
        by_hour="" if found.by_hour is None else nodes_by_hour(found.by_hour),
        under="" if found.by_hour is None else f"{found.by_hour.under:.0%}",
        header=[
            "",
            "nodes",
            "hot",
            "pods over requests",
            "with requests kept",
            "with reserve",
            _cost_head(found),
            "made of",
        ],
        rows=list(_rows(found)),
    )


def _cost_head(found: Capacity) -> str:
    return "cost" if found.prices is None else f"{found.prices.recorded.currency} a month (estimate)"


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
            _DASH if one.cost is None else f"{one.cost:,.0f}",
            "; ".join(f"{count} x {name}" for name, count in one.mix.items()),
        ]


def _count(value: int | None) -> str:
    return _DASH if value is None else f"{value:,}"
