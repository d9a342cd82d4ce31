"""The picture of a trajectory: how soon each rule takes effect, and how many moves that cost."""

from __future__ import annotations

from datetime import date
from typing import Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from rebalancer.trajectory.trajectories import (
    CLAIRVOYANT,
    LOW_NODE_LOAD,
    LOW_NODE_UTILIZATION,
    MOVES,
    PLACEMENT,
    PLACEMENT_AND_MOVES,
    RELIEVE_AND_MIGRATE,
    UNTOUCHED,
    Trajectories,
)
from scorer.replay.plots import styled

LABELS: Final = {
    UNTOUCHED: "untouched (kube-scheduler)",
    PLACEMENT: "placed by the forecast",
    MOVES: "moved by the forecast at night",
    PLACEMENT_AND_MOVES: "placed and moved by the forecast",
    LOW_NODE_UTILIZATION: "descheduler LowNodeUtilization",
    LOW_NODE_LOAD: "Koordinator LowNodeLoad",
    RELIEVE_AND_MIGRATE: "KubeVirtRelieveAndMigrate",
    CLAIRVOYANT: "true future",
}
_COLOURS: Final = {
    UNTOUCHED: "#c8553d",
    PLACEMENT: "#7d8ca3",
    MOVES: "#57b8a5",
    PLACEMENT_AND_MOVES: "#1f7a8c",
    LOW_NODE_UTILIZATION: "#e0a458",
    LOW_NODE_LOAD: "#9067c6",
    RELIEVE_AND_MIGRATE: "#c97b9b",
    CLAIRVOYANT: "#946c3c",
}
_WIDE: Final = (UNTOUCHED, PLACEMENT_AND_MOVES)


def time_to_effect(played: Trajectories) -> go.Figure:
    """Hot share of each day under every rule, and below it the pods that were moved on that day."""
    figure = make_subplots(
        rows=2,
        shared_xaxes=True,
        vertical_spacing=0.1,
        row_heights=[0.62, 0.38],
        subplot_titles=["<b>hot node half hours</b> of each day", "<b>pods moved</b> on each day"],
    )
    days: tuple[date, ...] = played.window.days
    for rule in played.by_rule:
        line = {"color": _COLOURS[rule], "width": 3.2 if rule in _WIDE else 1.6}
        hot = np.round(played.hot_share_by_day(rule), 5)
        moves = played.moves_by_day(rule)
        for row, values, form in ((1, hot, "%{y:.2%}"), (2, moves, "%{y} pods")):
            figure.add_trace(
                go.Scatter(
                    x=list(days),
                    y=values.tolist(),
                    mode="lines+markers",
                    name=LABELS[rule],
                    legendgroup=rule,
                    showlegend=row == 1,
                    line=line,
                    hovertemplate=f"%{{x|%a %d %b}}: {form}",
                ),
                row=row,
                col=1,
            )
    figure.update_yaxes(tickformat=".0%", rangemode="tozero", title_text="share", row=1, col=1)
    figure.update_yaxes(rangemode="tozero", title_text="pods", row=2, col=1)
    figure.update_xaxes(tickformat="%a %d %b", dtick=86_400_000)
    figure = styled(figure, height=660)
    return figure.update_layout(legend_y=1.3, margin_t=150)
