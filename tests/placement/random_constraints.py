"""Random words of a pod about where it may go: node affinity, tolerations, affinity to pods, spread."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from tests.placement.random_labels import (
    NAMESPACES,
    often,
    random_label_selector,
    random_namespace_selector,
    random_requirement,
    some_of,
)
from tests.placement.random_nodes import NODE_LABELS, TAINTS

Json = dict[str, Any]

TOPOLOGY_KEYS: Final = ("topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", "disk", "nobody-has-it")
_KEY_WEIGHTS: Final = (16, 16, 4, 4, 1)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NUMBERS: Final = ("0", "2", "3", "9", "010")
"""What is no number in a preferred term is an error to kube-scheduler (a required one matches nothing)."""
_MATCHED: Final = {key: values for key, values in NODE_LABELS.items() if key != "rack"}


def random_node_selector(rng: Random) -> dict[str, str]:
    """spec.nodeSelector."""
    return {key: rng.choice(NODE_LABELS[key]) for key in some_of(rng, list(_MATCHED), most=2)}


def random_node_affinity(rng: Random, nodes: Sequence[str], *, required: float = 0.9) -> Json:
    """spec.affinity.nodeAffinity with preferred terms, or, in that share of the cases, required ones."""
    affinity: Json = {}
    if often(rng, required):
        terms = [_node_term(rng, nodes, (*_NUMBERS, "few")) for _ in range(rng.choice((1, 1, 2, 3)))]
        affinity[_REQUIRED] = {"nodeSelectorTerms": terms}
    if often(rng, 0.4) or not affinity:
        affinity[_PREFERRED] = [{"weight": rng.randint(1, 100), "preference": _node_term(rng, nodes, _NUMBERS)}]
    return affinity


def random_tolerations(rng: Random) -> list[Json]:
    """spec.tolerations: one taint, one key, an effect, or everything."""
    return [_toleration(rng) for _ in range(rng.choice((1, 1, 2, 3)))]


def random_pod_affinity(rng: Random, *, required: float = 1.0, wide: float = 0.25, apart: bool = False) -> Json:
    """spec.affinity.podAffinity or podAntiAffinity, with required terms in that share of the cases.

    wide  : share of terms with a namespace selector, so that they mean more pods
    apart : mostly from other pods of the node, as more would leave no node
    """

    def term() -> Json:
        found = random_pod_term(rng, wide=wide)
        return found | {"topologyKey": "kubernetes.io/hostname"} if apart and often(rng, 0.6) else found

    affinity: Json = {}
    if often(rng, required):
        affinity[_REQUIRED] = [term() for _ in range(rng.choice((1, 1, 1, 2)))]
    if not affinity or often(rng, 0.2):
        affinity[_PREFERRED] = [{"weight": rng.randint(1, 100), "podAffinityTerm": term()}]
    return affinity


def random_pod_term(rng: Random, *, wide: float = 0.25) -> Json:
    """A term of pod affinity."""
    term: Json = {"topologyKey": _topology_key(rng)}
    selector = random_label_selector(rng)
    if selector is not None:
        term["labelSelector"] = selector
        if often(rng, 0.15):
            term[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = [rng.choice(("version", "nobody-has-it"))]
    if often(rng, 0.25):
        term["namespaces"] = some_of(rng, (*NAMESPACES, "not-there"))
    if often(rng, wide):
        term["namespaceSelector"] = random_namespace_selector(rng)
    return term


def random_spread(rng: Random, *, hard: float = 0.85) -> list[Json]:
    """spec.topologySpreadConstraints."""
    found: dict[tuple[str, str], Json] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        when = "DoNotSchedule" if often(rng, hard) else "ScheduleAnyway"
        constraint: Json = {
            "maxSkew": rng.choice((1, 1, 2, 3)),
            "topologyKey": _topology_key(rng),
            "whenUnsatisfiable": when,
        }
        selector = random_label_selector(rng)
        if selector is not None:
            constraint["labelSelector"] = selector
            if often(rng, 0.15):
                constraint["matchLabelKeys"] = [rng.choice(("version", "nobody-has-it"))]
        if when == "DoNotSchedule" and often(rng, 0.3):
            constraint["minDomains"] = rng.randint(1, 5)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if often(rng, 0.5):
                constraint[policy] = rng.choice(("Honor", "Ignore"))
        found[constraint["topologyKey"], when] = constraint
    return list(found.values())


def _topology_key(rng: Random) -> str:
    return rng.choices(TOPOLOGY_KEYS, _KEY_WEIGHTS)[0]


def _node_term(rng: Random, nodes: Sequence[str], numbers: Sequence[str]) -> Json:
    what = rng.random()
    if what < 0.04:
        return {}  # matches nothing
    if what < 0.2:
        fields = {"key": "metadata.name", "operator": rng.choice(("In", "NotIn")), "values": [rng.choice(nodes)]}
        term: Json = {"matchFields": [fields]}
        return term | ({"matchExpressions": [_node_requirement(rng, numbers)]} if often(rng, 0.4) else {})
    return {"matchExpressions": [_node_requirement(rng, numbers) for _ in range(rng.choice((1, 1, 2)))]}


def _node_requirement(rng: Random, numbers: Sequence[str]) -> Json:
    if often(rng, 0.3):
        return {"key": "rack", "operator": rng.choice(("Gt", "Lt")), "values": [rng.choice(numbers)]}
    return random_requirement(rng, NODE_LABELS if often(rng, 0.2) else _MATCHED)


def _toleration(rng: Random) -> Json:
    if often(rng, 0.1):
        return {"operator": "Exists"}
    if often(rng, 0.15):
        return {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"} | _effect(rng, ("NoSchedule",))
    key = rng.choice(list(TAINTS))
    if often(rng, 0.4):
        toleration = {"key": key, "operator": "Exists"}
    else:
        toleration = {"key": key, "value": rng.choice(TAINTS[key])}
        if often(rng, 0.5):
            toleration["operator"] = "Equal"
    return toleration | _effect(rng, ("NoSchedule", "NoExecute", "PreferNoSchedule"))


def _effect(rng: Random, effects: Sequence[str]) -> Json:
    return {"effect": rng.choice(effects)} if often(rng, 0.6) else {}
