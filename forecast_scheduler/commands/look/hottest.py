"""The hottest nodes of a cluster that was read whole, tonight and on the coming days, and what makes their peaks."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import msgspec
import numpy as np

from cluster.overview import NEXT
from scorer.answers import NodeSummary
from scorer.highest_peak import share_of
from scorer.scorer import Scorer

TOP: Final = 10
"""Nodes of a list, as `nodes` has them."""


def nodes_of(scorer: Scorer, hot: float) -> dict[str, Any]:
    """How many nodes and pods there are, and how many nodes are expected over the hot share in the next 24 hours."""
    status = scorer.status()
    overview = scorer.tables.overview
    shares = np.zeros(0) if overview is None else overview.peaks(NEXT).share
    return {
        "n_nodes": status.nodes,
        "n_pods": status.pods,
        "hot_share": hot,
        "hot_tonight": int((np.nan_to_num(shares) > hot).sum()),
    }


def tonight(scorer: Scorer) -> dict[str, Any]:
    """The hottest nodes of the next 24 hours."""
    found = scorer.nodes(by_peak=True, top=TOP)
    return {"hours": found.peak_hours, "nodes": [_with_services(scorer, one, None) for one in found.nodes]}


def week(scorer: Scorer) -> dict[str, Any]:
    """The hottest nodes of the days of the forecast, each on its hottest day."""
    overview = scorer.tables.overview
    days = () if overview is None else overview.horizon.days
    hottest: dict[str, tuple[float, date, NodeSummary]] = {}
    for day in days:
        for one in scorer.nodes(by_peak=True, top=TOP, day=day).nodes:
            share = share_of(one.peak)
            if share is not None and (one.name not in hottest or share > hottest[one.name][0]):
                hottest[one.name] = share, day, one
    listed = sorted(hottest.values(), key=lambda of: (-of[0], of[2].name))[:TOP]
    return {
        "days": [day.isoformat() for day in days],
        "nodes": [{"day": day.isoformat(), **_with_services(scorer, one, day)} for _, day, one in listed],
    }


def _with_services(scorer: Scorer, node: NodeSummary, day: date | None) -> dict[str, Any]:
    report = scorer.node_report(node.name, day=day, top=0)
    found: dict[str, Any] = msgspec.to_builtins(node)
    return found | {"services": msgspec.to_builtins(report.services), "besides_pods": report.besides_pods}
