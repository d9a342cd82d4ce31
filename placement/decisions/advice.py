"""Advice about one pod, kept until the pod's node is known: of the extender to kube-scheduler, or what a loop of ours
decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
    share        : predicted share of the best node's capacity at its peak with the pod, and with others that the same
                   cycle placed there; None without a forecast
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
    share: float | None
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
