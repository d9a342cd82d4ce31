"""All scores by name, ready to be computed from columns and combined.

A score registered here is tested by tests/contracts/test_scores.py, can be given a weight in the configuration and
shows up in explanations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

import numpy as np

from base.arrays import Bools, Floats, Ints
from base.errors import InputError
from cluster.predicted.unknown_capacity import limited, neutral_score_where_unknown
from forecast.resources import RESOURCES
from scorer.scores import MAX_NODE_SCORE
from scorer.scores.least_allocated import least_allocated_score
from scorer.scores.most_allocated import most_allocated_score
from scorer.scores.most_available import available_is_known, most_available_score
from scorer.scores.predicted_peak_score import points_of_share, predicted_peak_score
from scorer.scores.qos_balance import part_of_cluster, qos_balance_score
from scorer.scores.requested_to_capacity_ratio import requested_to_capacity_ratio_score
from scorer.scores.resource_allocation import resource_weights, weights_for_pod
from scorer.scores.score_columns import ClusterFigures, ScoredNodeColumns, ScoredPodColumns
from scorer.scores.score_settings import ScoreParameters
from scorer.scores.spread_or_stack import spread_or_stack_score
from scorer.scores.weighted_balance import balance_change_score, balance_score

_REQUESTS = ("allocatable", "requested")
_NONZERO = (*_REQUESTS, "requested_nonzero")

Compute = Callable[[ScoredNodeColumns, ScoredPodColumns, ClusterFigures], Floats]

_OfRequests = Callable[[Floats, Floats, Floats, Floats], Floats | Ints]
"""(requested, pod, allocatable, weights) -> (n_nodes,)"""


@dataclass(frozen=True, slots=True)
class RegisteredScore:
    """One score.

    compute                : (n_nodes,) within `range`, higher is better; nodes that cannot be judged get the median
    falls_with, rises_with : what more of which on a node never raises (lowers) `raw`: "requested", "usage", "predicted"
    raw                    : what the promise is about where `compute` orders nodes among each other; None = `compute`
    reads                  : fields of NodeColumns it reads, in addition to `kinds` and `known`; others may hold
                             anything
    depends_on_other_nodes : whether a node's score changes with the other nodes of the request (beyond the median that
                             unknown nodes get)
    """

    name: str
    compute: Compute
    range: tuple[float, float]
    falls_with: frozenset[str]
    rises_with: frozenset[str]
    raw: Compute | None
    reads: frozenset[str]
    depends_on_other_nodes: bool
    description: str


def scores(parameters: ScoreParameters) -> Mapping[str, RegisteredScore]:
    """Every score with these parameters, by name."""
    everything = (
        _score(
            "predicted_peak",
            _predicted_peak,
            "room left in the hours in which the pod is busy, by the forecast of the coming week",
            reads=("predicted_share", "exact_cost", "out_of_memory"),
            falls_with="predicted",
            raw=lambda nodes, pod, cluster: points_of_share(nodes.predicted_share),
            depends_on_other_nodes=True,
        ),
        _score(
            "most_available",
            _most_available(parameters),
            "room left right now: capacity less usage less what was placed since it was measured",
            reads=("virtual_available", "capacity"),
            falls_with="usage",
        ),
        _score(
            "balanced_allocation",
            _by_true_requests(parameters, balance_change_score),
            "what the pod does to the balance between requested shares; 75 = no difference",
            reads=_REQUESTS,
            lowest=50.0,
        ),
        _score(
            "balance",
            _by_true_requests(parameters, balance_score),
            "balance between requested shares once the pod is there",
            reads=_REQUESTS,
            lowest=50.0,
        ),
        _score(
            "qos_balance",
            _qos_balance,
            "lack of pods of the pod's QoS class, compared with the cluster; 50 = its share is the cluster's",
            reads=("qos_pods", "allocatable"),
        ),
        _score(
            "qos_memory",
            _qos_memory,
            "lack of memory of the pod's QoS class, compared with the cluster; 50 = its share is the cluster's",
            reads=("qos_memory", "allocatable"),
        ),
        _score(
            "spread_or_stack",
            _spread_or_stack(parameters),
            "least allocated while the cluster has room, most allocated when it fills up",
            reads=_NONZERO,
        ),
        _score(
            "least_allocated",
            _by_nonzero_requests(parameters, least_allocated_score),
            "share of allocatable left unrequested, as kube-scheduler counts it",
            reads=_NONZERO,
            falls_with="requested",
        ),
        _score(
            "most_allocated",
            _by_nonzero_requests(parameters, most_allocated_score),
            "share of allocatable requested, as kube-scheduler counts it",
            reads=_NONZERO,
            rises_with="requested",
        ),
        _score(
            "requested_to_capacity_ratio",
            _by_nonzero_requests(
                parameters,
                lambda requested, pod, allocatable, weights: requested_to_capacity_ratio_score(
                    requested, pod, allocatable, weights, parameters.shape
                ),
            ),
            "a given line over the share of allocatable requested, as kube-scheduler counts it",
            reads=_NONZERO,
        ),
    )
    return MappingProxyType({score.name: score for score in everything})


def check_weights(weights: Mapping[str, float], known: Iterable[str]) -> None:
    """Raises InputError unless every name is known, every weight is finite and not negative, and one is above 0."""
    names = sorted(known)
    for name, weight in weights.items():
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(names)}"
            raise InputError(f"there is no score {name!r}: {hint}")
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(f"score {name} has the weight {weight}: a finite number, 0 or more, is needed")
    if not any(weight > 0 for weight in weights.values()):
        raise InputError("no score has a weight above 0: give at least one, such as predicted_peak: 1")


def combine(computed: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Weighted mean of scores: (n_nodes,) in [0, 100]. Only those with a weight above 0 need to be computed.

    computed : by name, (n_nodes,) each
    weights  : see `check_weights`
    """
    counted = {name: weight for name, weight in weights.items() if weight != 0}
    check_weights(counted, computed)
    return np.asarray(np.clip(weighted_mean(computed, counted), 0.0, MAX_NODE_SCORE))


def weighted_mean(computed: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """The same of values of any range: (n_nodes,). weights: 0 or more, at least one above."""
    weight_sum = sum(weights.values())
    counted = [(weight / weight_sum) * computed[name] for name, weight in weights.items() if weight]
    return np.asarray(np.add.reduce(counted))


def _score(
    name: str,
    compute: Compute,
    description: str,
    *,
    reads: Iterable[str],
    lowest: float = 0.0,
    falls_with: str | None = None,
    rises_with: str | None = None,
    raw: Compute | None = None,
    depends_on_other_nodes: bool = False,
) -> RegisteredScore:
    return RegisteredScore(
        name=name,
        compute=compute,
        range=(lowest, float(MAX_NODE_SCORE)),
        falls_with=frozenset({falls_with} if falls_with else ()),
        rises_with=frozenset({rises_with} if rises_with else ()),
        raw=raw,
        reads=frozenset(reads),
        depends_on_other_nodes=depends_on_other_nodes,
        description=description,
    )


def _predicted_peak(nodes: ScoredNodeColumns, pod: ScoredPodColumns, cluster: ClusterFigures) -> Floats:
    share = np.where(nodes.known, nodes.predicted_share, np.nan)
    return predicted_peak_score(share, nodes.exact_cost, nodes.out_of_memory)


def _most_available(parameters: ScoreParameters) -> Compute:
    weights = np.array([parameters.usage_weights.get(resource.name, 0.0) for resource in RESOURCES])

    def compute(nodes: ScoredNodeColumns, pod: ScoredPodColumns, cluster: ClusterFigures) -> Floats:
        score = most_available_score(nodes.virtual_available, pod.virtual_request, nodes.capacity, weights)
        judged = nodes.known & available_is_known(nodes.virtual_available, nodes.capacity, weights)
        return neutral_score_where_unknown(score, judged)

    return compute


def _by_true_requests(parameters: ScoreParameters, score: _OfRequests) -> Compute:
    def compute(nodes: ScoredNodeColumns, pod: ScoredPodColumns, cluster: ClusterFigures) -> Floats:
        weights = weights_for_pod(nodes.kinds, resource_weights(nodes.kinds, parameters.balance_weights), pod.requests)
        result = score(nodes.requested, pod.requests, nodes.allocatable, weights).astype(np.float64)
        return neutral_score_where_unknown(result, _allocatable_is_known(nodes, weights))

    return compute


def _by_nonzero_requests(parameters: ScoreParameters, score: _OfRequests) -> Compute:
    def compute(nodes: ScoredNodeColumns, pod: ScoredPodColumns, cluster: ClusterFigures) -> Floats:
        requested, pod_requests = _nonzero(nodes, pod)
        weights = weights_for_pod(nodes.kinds, resource_weights(nodes.kinds, parameters.request_weights), pod_requests)
        result = score(requested, pod_requests, nodes.allocatable, weights).astype(np.float64)
        return neutral_score_where_unknown(result, _allocatable_is_known(nodes, weights))

    return compute


def _spread_or_stack(parameters: ScoreParameters) -> Compute:
    def compute(nodes: ScoredNodeColumns, pod: ScoredPodColumns, cluster: ClusterFigures) -> Floats:
        return _by_nonzero_requests(
            parameters,
            lambda requested, pod, allocatable, weights: spread_or_stack_score(
                requested, pod, allocatable, weights, cluster.stack_weight
            ),
        )(nodes, pod, cluster)

    return compute


def _qos_balance(nodes: ScoredNodeColumns, pod: ScoredPodColumns, cluster: ClusterFigures) -> Floats:
    part = part_of_cluster(nodes.allocatable[:, :2], cluster.allocatable)
    return neutral_score_where_unknown(qos_balance_score(nodes.qos_pods, cluster.qos_pods, pod.qos, part), nodes.known)


def _qos_memory(nodes: ScoredNodeColumns, pod: ScoredPodColumns, cluster: ClusterFigures) -> Floats:
    part = part_of_cluster(nodes.allocatable[:, :2], cluster.allocatable)
    score = qos_balance_score(nodes.qos_memory, cluster.qos_memory, pod.qos, part)
    return neutral_score_where_unknown(score, nodes.known)


def _nonzero(nodes: ScoredNodeColumns, pod: ScoredPodColumns) -> tuple[Floats, Floats]:
    """Requests with CPU and memory as LeastAllocated counts them: (n_nodes, n_kinds), (n_kinds,)."""
    requested, pod_requests = nodes.requested.copy(), pod.requests.copy()
    requested[:, :2] = nodes.requested_nonzero
    pod_requests[:2] = pod.nonzero
    return requested, pod_requests


def _allocatable_is_known(nodes: ScoredNodeColumns, weights: Floats) -> Bools:
    """Whether a node has any of the resources that count: (n_nodes,)."""
    result = np.zeros(len(nodes), dtype=bool)
    for kind in np.flatnonzero(weights > 0).tolist():
        result |= limited(nodes.allocatable[:, kind])
    return nodes.known & result


SCORES: Mapping[str, RegisteredScore] = scores(ScoreParameters())
