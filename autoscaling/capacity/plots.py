"""The pictures of `capacity`: nodes by rule, and nodes by hour of the day."""

from __future__ import annotations

import plotly.graph_objects as go

from autoscaling.capacity.capacity import Capacity
from autoscaling.capacity.hours import HourlyNodes
from scorer.replay.plots import COLOURS, LABELS, styled


def nodes_by_rule(found: Capacity) -> go.Figure:
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
    dotted = {"color": "#8a8f98", "dash": "dot", "width": 1.2}
    figure.add_vline(x=recorded, line=dotted, annotation_text=f"recorded: {recorded}")
    figure.update_xaxes(rangemode="tozero", title_text="nodes")
    figure.update_yaxes(autorange="reversed")
    return styled(figure, height=330).update_layout(margin_l=190, showlegend=False)


def nodes_by_hour(by_hour: HourlyNodes) -> go.Figure:
    """Steps over the hours of the day: what was needed, and what the forecast expected."""
    hours = list(range(25))
    figure = go.Figure()
    for rule, counts in (("oracle", by_hour.needed), ("forecast", by_hour.expected)):
        values = counts.tolist()
        figure.add_trace(
            go.Scatter(
                x=hours,
                y=[*values, values[-1]],
                mode="lines",
                name=LABELS[rule],
                line={"color": COLOURS[rule], "width": 2.4, "shape": "hv"},
                hovertemplate="%{x}:00: %{y} nodes",
            )
        )
    figure.update_xaxes(title_text="hour of the day", dtick=2, range=[0, 24])
    figure.update_yaxes(rangemode="tozero", title_text="nodes")
    return styled(figure, height=360)
