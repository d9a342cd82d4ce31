"""The expected peaks of many nodes: the list of nodes, and nodes that pods were or would be placed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np

from cluster.degradation import Level, level_of_nodes
from cluster.live_tables import LiveTables
from cluster.overview import NEXT, Overview
from cluster.predicted.node_load import PeakHours, hottest_first, load_inputs
from kube.objects.objects import NodeInfo, PodInfo
from scorer.answers import Nodes, NodeSummary, Peak
from scorer.highest_peak import expected_peaks, peaks_of_nodes

_NODES_OF_NOW = 250
"""Of longer lists the peaks are those of the overview: to work them out takes 0.5 ms a node."""

_Peaks = tuple[Peak | None, Peak | None, Peak | None]
"""Today's, tomorrow's, and the one asked for."""

_NONE: _Peaks = (None, None, None)


def node_list(tables: LiveTables, *, by_peak: bool, top: int | None, day: date | None) -> Nodes:
    """List nodes by name, or the hottest first; see ScorerApi.

    A long list is as old as the overview (a minute), and so is the choice of the nodes of a short one.
    """
    with tables.reading() as cluster:
        state = cluster.state
        level, _ = tables.level()
        levels = level_of_nodes(level, cluster.measured_nodes())
        ages = cluster.now - cluster.sampled
        facts = {
            state.names[row]: (int(state.pod_count[row]), state.nodes[row], int(levels[row]), float(ages[row]))
            for row in np.flatnonzero(state.alive).tolist()
        }
        now = tables.now()
    overview = tables.overview
    if overview is None:
        return Nodes([_summary(name, *facts[name], _NONE) for name in sorted(facts)[:top]], len(facts), None, now)
    hours = PeakHours.asked(overview.horizon, day)
    listed = sorted(facts)
    if by_peak:
        number = NEXT if day is None else overview.horizon.days.index(day)
        order = hottest_first(overview.peaks(number).share, overview.names).tolist()
        listed = [name for row in order if (name := overview.names[row]) in facts]
        listed += sorted(facts.keys() - set(listed))
    listed = listed[:top]
    found = _peaks_now(tables, listed, day) if len(listed) <= _NODES_OF_NOW else None
    if found is None:
        found = _peaks_of(overview, listed, day)
    elif by_peak:
        share = [np.nan if (peak := found[name][2]) is None or peak.share is None else peak.share for name in listed]
        listed = [listed[at] for at in hottest_first(np.array(share), listed).tolist()]
    summaries = [_summary(name, *facts[name], found.get(name, _NONE)) for name in listed]
    return Nodes(summaries, len(facts), hours.words, now)


def peaks_with_pods(tables: LiveTables, placed: Sequence[tuple[PodInfo, str]]) -> list[Peak | None]:
    """Return the peak of each node in the next 24 hours with its pod on it; None = it is not known."""
    asked: list[tuple[int, int | None] | None] = []
    with tables.reading() as cluster:
        predicted = cluster.predicted
        if predicted is None:
            return [None] * len(placed)
        for pod, node in placed:
            row = cluster.state.row_of.get(node, -1)
            if not (0 <= row < predicted.load.n_nodes and predicted.name_of(row)):
                asked.append(None)
                continue
            seat = cluster.state.seat_of.get(pod.uid)
            asked.append((row, None if seat is not None and seat.node == row else cluster.profile(pod)))
        distinct = [one for one in dict.fromkeys(asked) if one is not None]
        rows, extra = [row for row, _ in distinct], [profile for _, profile in distinct]
        load = load_inputs(predicted, rows, extra, widen=tables.widen(predicted.horizon))
    found: dict[tuple[int, int | None] | None, Peak | None] = {None: None}
    if distinct:
        found.update(zip(distinct, expected_peaks(load, PeakHours.next_24(load.horizon)), strict=True))
    return [found[one] for one in asked]


def _peaks_now(tables: LiveTables, names: Sequence[str], day: date | None) -> Mapping[str, _Peaks] | None:
    """The peaks of some nodes as of now; None = their tables are being made anew."""
    if not names:
        return {}
    with tables.reading() as cluster:
        predicted, row_of = cluster.predicted, cluster.state.row_of
        if predicted is None or (day is not None and day not in predicted.horizon.days):
            return None
        rows = [row_of.get(name, -1) for name in names]
        if not all(0 <= row < predicted.load.n_nodes and predicted.name_of(row) for row in rows):
            return None
        load = load_inputs(predicted, rows, widen=tables.widen(predicted.horizon))
    horizon = load.horizon
    hours = PeakHours.of_day(horizon, 0), PeakHours.of_day(horizon, 1), PeakHours.asked(horizon, day)
    today, tomorrow, asked = (peaks_of_nodes(one, horizon) for one in load.peaks(*hours))
    return dict(zip(names, zip(today, tomorrow, asked, strict=True), strict=True))


def _peaks_of(overview: Overview, names: Sequence[str], day: date | None) -> Mapping[str, _Peaks]:
    """The same as of the overview; without nodes that came since."""
    row_of, horizon = overview.rows(), overview.horizon
    there = [name for name in names if name in row_of]
    rows = [row_of[name] for name in there]
    number = NEXT if day is None else horizon.days.index(day)
    today, tomorrow, asked = (peaks_of_nodes(overview.peaks(one, rows), horizon) for one in (0, 1, number))
    return dict(zip(there, zip(today, tomorrow, asked, strict=True), strict=True))


def _summary(name: str, pods: int, node: NodeInfo | None, level: int, age: float, peaks: _Peaks) -> NodeSummary:
    today, tomorrow, asked = peaks
    return NodeSummary(
        name=name,
        pods=pods,
        ready=node is not None and node.ready and not node.unschedulable,
        level=Level(level),
        measured_seconds_ago=age if np.isfinite(age) else None,
        today=today,
        tomorrow=tomorrow,
        peak=asked,
    )
