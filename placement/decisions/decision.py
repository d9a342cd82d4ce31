"""One decision: what was advised for a pod, where the pod went, and both in one sentence as an Event.
decision_log_reader.py reads back what `to_json` gives.

Advice names points only; which rank the chosen node had is worked out here, when the node is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from msgspec import to_builtins

from base.arrays import Ints
from kube.events.api_event import clipped_note
from scorer.answers import Peak
from scorer.highest_peak import peak_words

TOP = 5
"""Number of best nodes that are logged with their points."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One answer to /prioritize, in shadow mode what it would have been; or the choice of a scheduling cycle.

    pod, service : namespace/name, and namespace/Kind/name of the top owner
    at           : unix seconds
    n_nodes      : between how many the points decided
    nodes        : their names, empty = not kept, then `points` has the best two; points: by name, those missing have 0.
                   Of a cycle: sums of all scores
    best         : the node with the most points, by the unrounded ranking among equals; None with no node
    runner_up    : the next; None with one node
    margin       : points between them
    peak         : works out the expected peak of the best node in the next 24 hours with the pod, and with others that
                   the same cycle placed there, when it is written down; None without a forecast
    level        : name of the rung of the degradation ladder; reasons: why it is not the first
    model_version, model_age_seconds, metrics_age_seconds : None where there is no model, no measurement
    seconds      : that the answer took
    is_shadow    : kube-scheduler did not get the points
    is_late      : the deadline had passed, kube-scheduler got neutral scores instead
    policy       : by which the pod is placed; policy_because: what chose it
    """

    uid: str
    pod: str
    service: str
    at: float
    n_nodes: int
    nodes: Sequence[str]
    points: Mapping[str, int]
    best: str | None
    runner_up: str | None
    margin: int | None
    peak: Callable[[], Peak | None]
    level: str
    reasons: tuple[str, ...]
    model_version: str | None
    model_age_seconds: float | None
    metrics_age_seconds: float | None
    seconds: float
    is_shadow: bool = False
    is_late: bool = False
    policy: str = ""
    policy_because: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    """A pod that was advised on and has been bound.

    node    : where it went; at: unix seconds at which that was seen
    version : of this program
    elsewhere_because : why it is not on the advised node, "" = it is, or that is not known
    """

    advice: Advice
    node: str
    at: float
    version: str
    elsewhere_because: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is known of a pod's placement once it is over.

    time, advised_at    : unix seconds: the binding was seen; the advice was given
    pod, service        : namespace/name; namespace/Kind/name
    node, advised_node  : where it went, where we would have it; None = we had no node to name
    points, advised_points : of both; None = not known
    rank                : 1 = no node had more points than `node`; None = not known
    nodes               : how many were asked for
    top                 : the best few by name, best first
    elsewhere_because   : see Binding
    peak                : of the advised node, see Advice
    Other fields as in Advice.
    """

    time: float
    advised_at: float
    pod: str
    uid: str
    service: str
    node: str
    advised_node: str | None
    points: int | None
    advised_points: int | None
    runner_up: str | None
    margin: int | None
    rank: int | None
    nodes: int
    top: Mapping[str, int]
    peak: Peak | None
    level: str
    reasons: tuple[str, ...]
    model_version: str | None
    model_age_seconds: float | None
    metrics_age_seconds: float | None
    seconds: float
    is_shadow: bool
    is_late: bool
    version: str
    policy: str = ""
    policy_because: str = ""
    elsewhere_because: str = ""

    @property
    def agrees(self) -> bool:
        """The pod went where we would have it, or to a node that we rated as high."""
        return self.node == self.advised_node or self.rank == 1

    def to_json(self) -> dict[str, Any]:
        """As it stands in the log (docs/start/shadow.md)."""
        return {
            "time": _text(self.time),
            "advised_at": _text(self.advised_at),
            "pod": self.pod,
            "uid": self.uid,
            "service": self.service,
            "node": self.node,
            "advised_node": self.advised_node,
            "points": self.points,
            "advised_points": self.advised_points,
            "runner_up": self.runner_up,
            "margin": self.margin,
            "rank": self.rank,
            "nodes": self.nodes,
            "top": dict(self.top),
            "expected_peak": None if self.peak is None else to_builtins(self.peak),
            "level": self.level,
            "reasons": list(self.reasons),
            "model": self.model_version,
            "model_age_seconds": _rounded(self.model_age_seconds, 1),
            "metrics_age_seconds": _rounded(self.metrics_age_seconds, 1),
            "seconds": _rounded(self.seconds, 6),
            "shadow": self.is_shadow,
            "late": self.is_late,
            "version": self.version,
            "policy": self.policy,
            "policy_because": self.policy_because,
            "elsewhere_because": self.elsewhere_because,
        }


def slimmed(advice: Advice) -> Advice:
    """The same without the long lists: only the points of the best node and its runner-up. Constant time."""
    few = {name: advice.points.get(name, 0) for name in (advice.best, advice.runner_up) if name is not None}
    return replace(advice, nodes=(), points=few)


def shadow_node(advice: Advice, node: str) -> str | None:
    """Where a shadow would have the pod that went to `node`, None = just there. The report judges alike (`moves`).

    A late answer would have been neutral, and among equals kube-scheduler's own scores would have decided.
    """
    if not advice.is_shadow or advice.is_late or advice.best is None:
        return None
    as_good = node == advice.best or advice.points.get(node, 0) >= advice.points.get(advice.best, 0)
    return None if as_good else advice.best


def decision_of(binding: Binding) -> Decision:
    """Work out points and rank of the node that was chosen. 0.3 ms for 5,000 nodes: not for a thread that serves."""
    advice, node = binding.advice, binding.node
    values = np.fromiter(advice.points.values(), dtype=np.int64, count=len(advice.points))
    points, rank = _standing(advice, values, node)
    return Decision(
        time=binding.at,
        advised_at=advice.at,
        pod=advice.pod,
        uid=advice.uid,
        service=advice.service,
        node=node,
        advised_node=advice.best,
        points=points,
        advised_points=None if advice.best is None else advice.points.get(advice.best, 0),
        runner_up=advice.runner_up,
        margin=advice.margin,
        rank=rank,
        nodes=advice.n_nodes,
        top=_top(advice, values),
        peak=advice.peak(),
        level=advice.level,
        reasons=advice.reasons,
        model_version=advice.model_version,
        model_age_seconds=advice.model_age_seconds,
        metrics_age_seconds=advice.metrics_age_seconds,
        seconds=advice.seconds,
        is_shadow=advice.is_shadow,
        is_late=advice.is_late,
        version=binding.version,
        policy=advice.policy,
        policy_because=advice.policy_because,
        elsewhere_because=binding.elsewhere_because,
    )


def _standing(advice: Advice, values: Ints, node: str) -> tuple[int | None, int | None]:
    """Points and rank of a node: (None, None) for one that was not asked for; equals share a rank."""
    listed = bool(advice.nodes)
    if node not in advice.points and node not in advice.nodes:
        return None, None
    points = advice.points.get(node, 0)
    if not listed:  # slimmed: only the best two are known
        best = advice.points.get(advice.best, 0) if advice.best is not None else points
        return points, 1 if points >= best else 2
    better = int(np.count_nonzero(values > points))
    if points < 0:
        better += max(advice.n_nodes - len(values), 0)  # those that are missing have 0
    return points, better + 1


def _top(advice: Advice, values: Ints) -> dict[str, int]:
    """The best nodes by points, equals by name. Where replies are shortened, only those above the ones left out."""
    names = list(advice.points)
    if len(values) < advice.n_nodes:  # those that are missing have 0
        positive = np.flatnonzero(values > 0)
        names, values = [names[index] for index in positive.tolist()], values[positive]
    if len(values) > TOP:
        # All that tie with the last one stay in the race, or which of them is named would be chance.
        least = np.partition(values, -TOP)[-TOP]
        chosen = np.flatnonzero(values >= least)
        names, values = [names[index] for index in chosen.tolist()], values[chosen]
    order = sorted(zip((-values).tolist(), names, strict=True))
    return {name: -value for value, name in order[:TOP]}


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, digits)


def note_of(decision: Decision) -> str:
    """node n1 of 60: expected peak 61 % of cpu at 22:00, upper bound (95 %) 75 %; 3 points ahead of n7; model v1"""
    words = f"{_placed(decision)}: {'; '.join(_facts(decision))}"
    return clipped_note(words)


def _placed(decision: Decision) -> str:
    if decision.node == decision.advised_node:
        return f"node {decision.node} of {decision.nodes}"
    rank = "" if decision.rank is None else f", rank {decision.rank}"
    advised = "no node was advised" if decision.advised_node is None else f"{decision.advised_node} was advised"
    return f"node {decision.node}{rank} of {decision.nodes}, {advised}"


def _facts(decision: Decision) -> list[str]:
    facts = []
    if decision.is_late:
        facts.append("the advice came too late and was not used")
    if (peak := decision.peak) is not None:
        today = datetime.fromtimestamp(decision.advised_at, peak.at.tzinfo).date()
        there = "" if decision.node == decision.advised_node else " there"
        facts.append(f"{peak_words(peak, today)}{there}")
    if decision.node == decision.advised_node:
        if decision.margin is not None and decision.runner_up is not None:
            facts.append(f"{_points(decision.margin)} ahead of {decision.runner_up}")
    elif decision.elsewhere_because:
        facts.append(f"not there: {decision.elsewhere_because}")
    elif decision.advised_points is not None and decision.points is not None:
        facts.append(f"{_points(decision.advised_points - decision.points)} ahead of {decision.node}")
    model = "no model" if decision.model_version is None else f"model {decision.model_version}"
    age = decision.metrics_age_seconds
    facts.append(model if age is None else f"{model}, metrics {age:.0f} s old")
    if decision.policy_because:
        facts.append(f"policy {decision.policy} ({decision.policy_because})")
    facts.extend(decision.reasons)
    return facts


def _points(points: int) -> str:
    return f"{points} point{'' if points == 1 else 's'}"
