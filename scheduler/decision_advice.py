"""What a scheduling cycle decided, as advice that the recorder keeps until the pod is bound (placement/decisions)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from cluster.live_tables import LiveTables
from cluster.predicted.node_load import LoadInputs, PeakHours, load_inputs
from cluster.tracking import TrackedCluster
from kube.objects.objects import PodInfo
from placement.decisions.decision import Advice
from placement.policies.policy import Policy
from placement.scores.plugin_weights import OURS
from scheduler.cycle.decisions import NodeChoice
from scorer.answers import Peak
from scorer.highest_peak import expected_peaks
from scorer.scoring import WhyNeutral, neutral_reasons, neutral_scores
from scorer.scoring_policy import opts_out


def advice_of_cycle(
    tables: LiveTables,
    cluster: TrackedCluster,
    placed: Sequence[PodInfo],
    choices: Mapping[str, NodeChoice],
    *,
    because: Callable[[PodInfo], str],
    at: float,
    seconds: float,
    is_shadow: bool = False,
    troubles: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Advice]:
    """Return advice about the pods that a cycle placed, which are assumed on their nodes. Under the lock of the tables.

    choices : by UID; a pod without one gets no advice
    because : what chose the policy of a pod
    at      : unix seconds; seconds: that the cycle took; is_shadow: nothing is done with it
    troubles : what pods went on without, by scheduler name; see SchedulingProfile
    """
    level, reasons = tables.level()
    neutral = neutral_scores(cluster, level)
    version = None if cluster.predicted is None else tables.version
    model_age = tables.model_age() if version is not None else None
    metrics_age = tables.metrics_age()
    names = cluster.state.names
    known = [(pod, choices[pod.uid]) for pod in placed if pod.uid in choices]
    peak_of = _peaks_of(tables, cluster, sorted({choice.row for _, choice in known}))
    found = []
    for pod, choice in known:
        node, runner_up = names[choice.row], None if choice.runner_up is None else names[choice.runner_up[0]]
        points = {} if choice.total is None else {node: round(choice.total)}
        if choice.runner_up is not None and runner_up is not None:
            points[runner_up] = round(choice.runner_up[1])
        found.append(
            Advice(
                uid=pod.uid,
                pod=f"{pod.namespace}/{pod.name}",
                service=str(cluster.state.service_key(pod)),
                at=at,
                n_nodes=choice.n_nodes,
                nodes=(),
                points=points,
                best=node,
                runner_up=runner_up,
                margin=None if runner_up is None or choice.total is None else points[node] - points[runner_up],
                peak=peak_of(node),
                level=level.name.lower(),
                reasons=(*reasons, *_reasons(pod, choice.policy, neutral), *troubles.get(pod.scheduler_name, ())),
                model_version=version,
                model_age_seconds=model_age,
                metrics_age_seconds=metrics_age,
                seconds=seconds,
                policy=choice.policy.name,
                policy_because=because(pod),
                is_shadow=is_shadow,
            )
        )
    return found


def _reasons(pod: PodInfo, policy: Policy, neutral: Mapping[str, WhyNeutral]) -> tuple[str, ...]:
    """Return why scores that the policy gives a weight did not count for the pod."""
    if not policy.plugin_weights[OURS]:
        return ()
    if opts_out(pod):
        return ("the pod has opted out",)
    return neutral_reasons(policy.scoring.weights, neutral)


class _PeaksOfCycle:
    """Expected peaks of the nodes that a cycle chose, all of them worked out when the first is asked for."""

    def __init__(self, load: LoadInputs) -> None:
        self._load: LoadInputs | None = load
        self._lock = threading.Lock()
        self._found: dict[str, Peak | None] = {}

    def of(self, node: str) -> Peak | None:
        """The peak of a node; None = no capacity of it is known."""
        with self._lock:
            if (load := self._load) is not None:
                peaks = expected_peaks(load, PeakHours.next_24(load.horizon))
                self._found = dict(zip(load.nodes.names, peaks, strict=True))
                self._load = None  # thousands of pods may wait for their binding
        return self._found[node]


def _peaks_of(
    tables: LiveTables, cluster: TrackedCluster, rows: Sequence[int]
) -> Callable[[str], Callable[[], Peak | None]]:
    """Return what works out the peak of a chosen node, by its name."""
    predicted = cluster.predicted
    if predicted is None:
        return lambda name: _no_peak
    known = [row for row in rows if row < predicted.load.n_nodes and predicted.name_of(row)]
    peaks = _PeaksOfCycle(load_inputs(predicted, known, widen=tables.widen(predicted.horizon)))
    names = {predicted.name_of(row) for row in known}
    return lambda name: partial(peaks.of, name) if name in names else _no_peak


def _no_peak() -> None:
    return None
