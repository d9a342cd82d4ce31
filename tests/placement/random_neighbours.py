"""Hypothesis strategies: small clusters whose pods mean each other by affinity terms and spread constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import strategies as st

from forecast.service_key import NO_OWNER, Owner
from kube.objects.constraints import (
    LabelSelector,
    NodeSelectorTerm,
    Operator,
    PodAffinityTerm,
    PodConstraints,
    PreferredPodTerm,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)
from kube.objects.objects import NodeInfo, PodInfo, Taint
from tests.placement.small_cluster import node_of, pod_of

NODES = tuple(f"n{i}" for i in range(6))
ZONE, HOSTNAME, RACK, NOBODY = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack", "nobody-has-it"
# Much is drawn more than once, so that most pods meet each other and most nodes have most labels.
NAMESPACES = ("default", "default", "default", "default", "shop", "not-listed")

keys = st.sampled_from((ZONE, ZONE, ZONE, HOSTNAME, HOSTNAME, HOSTNAME, RACK, RACK, NOBODY))
label_values = st.sampled_from(("a", "a", "b", ""))
labels = st.one_of(
    st.sampled_from(({"app": "a"}, {"app": "b"}, {"app": "a", "tier": "b"})),
    st.dictionaries(st.sampled_from(("app", "tier")), label_values, max_size=2),
)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from((Operator.IN, Operator.IN, *(o for o in Operator))))
    values = draw(st.lists(label_values, min_size=1, max_size=2, unique=True))
    match operator:
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            values = []
        case Operator.GT | Operator.LT:
            values = ["1"]
    return Requirement(draw(st.sampled_from(("app", "app", "tier", "nobody-has-it"))), operator, tuple(values))


app_a = LabelSelector((Requirement("app", Operator.IN, ("a",)),))
app_b = LabelSelector((Requirement("app", Operator.IN, ("b",)),))
selectors = st.builds(LabelSelector, st.lists(requirements(), max_size=2).map(tuple))
maybe_selectors = st.one_of(st.sampled_from((app_a, app_a, app_b, None)), st.just(app_a), selectors)

terms = st.builds(
    PodAffinityTerm,
    selector=maybe_selectors,
    topology_key=keys,
    namespaces=st.one_of(st.just(frozenset({"default"})), st.frozensets(st.sampled_from(NAMESPACES), max_size=2)),
    namespace_selector=st.one_of(
        st.none(),
        st.none(),
        st.none(),
        st.just(LabelSelector()),
        st.builds(LabelSelector, st.just((Requirement("team", Operator.IN, ("red",)),))),
    ),
)
preferred = st.builds(PreferredPodTerm, weight=st.integers(1, 100), term=terms)


def spreads(hard: st.SearchStrategy[bool]) -> st.SearchStrategy[TopologySpreadConstraint]:
    return st.builds(
        TopologySpreadConstraint,
        max_skew=st.sampled_from((1, 1, 1, 2, 3)),
        topology_key=keys,
        hard=hard,
        selector=maybe_selectors,
        min_domains=st.sampled_from((1, 1, 1, 2, 4)),
        honor_node_affinity=st.booleans(),
        honor_node_taints=st.booleans(),
    )


T = TypeVar("T")


def few(items: st.SearchStrategy[T], most: int) -> st.SearchStrategy[tuple[T, ...]]:
    """Often none: a pod that says everything fits nowhere, whatever the reason."""
    return st.one_of(st.just(()), st.lists(items, min_size=1, max_size=most).map(tuple))


@st.composite
def constraints(draw: st.DrawFn) -> PodConstraints:
    """Either of pods or of spread, rarely both."""
    about = draw(st.sampled_from(("pods", "spread", "both", "nothing")))
    preferences, required = few(preferred, 2), few(terms, 2)
    found = PodConstraints(
        node_selector=draw(st.sampled_from(((), (), (), (("rack", "1"),)))),
        required_node_terms=draw(
            st.sampled_from(
                (None, None, None, (NodeSelectorTerm((Requirement(ZONE, Operator.IN, ("z1", "z2")),)),), ())
            )
        ),
        tolerations=draw(st.sampled_from(((), (Toleration("dedicated", "Exists", "", ""),)))),
    )
    if about in ("pods", "both"):
        found = replace(
            found,
            affinity=draw(required),
            preferred_affinity=draw(preferences),
            anti_affinity=draw(required),
            preferred_anti_affinity=draw(preferences),
        )
    if about in ("spread", "both"):
        hard = draw(st.sampled_from((st.just(True), st.just(False), st.booleans())))
        found = replace(found, spread=draw(st.lists(spreads(hard), min_size=1, max_size=3).map(tuple)))
    return found


@st.composite
def pods(draw: st.DrawFn, name: str, node: str = "") -> PodInfo:
    owner_uid = draw(st.sampled_from(("", "rs-1", "rs-1", "rs-2")))
    kind = draw(st.sampled_from(("ReplicaSet", "StatefulSet", "Job")))
    return pod_of(
        name,
        draw(labels),
        node=node,
        namespace=draw(st.sampled_from(NAMESPACES)),
        constraints=draw(constraints()),
        terminating=draw(st.sampled_from((False, False, False, True))),
        owner=Owner(kind, owner_uid) if owner_uid else NO_OWNER,
        owner_uid=owner_uid,
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> NodeInfo:
    found = {
        ZONE: draw(st.sampled_from(("z1", "z1", "z2", "z2", "z3", "", None))),
        HOSTNAME: draw(st.sampled_from((name, name, name, name, "shared", None))),
        RACK: draw(st.sampled_from(("1", "1", "2", "2", None))),
    }
    tainted = draw(st.booleans()) and draw(st.booleans())
    return node_of(
        name,
        {key: value for key, value in found.items() if value is not None},
        (Taint("dedicated", "", "NoSchedule"),) if tainted else (),
    )


@dataclass(frozen=True)
class Neighbourhood:
    """nodes: some of NODES; pods sit on any of NODES, there or not; probe is to be placed."""

    nodes: tuple[NodeInfo, ...]
    pods: tuple[PodInfo, ...]
    probe: PodInfo
    namespaces: dict[str, dict[str, str]]


@st.composite
def neighbourhoods(draw: st.DrawFn, about: str = "") -> Neighbourhood:
    """about: the field of the probe's constraints that is not empty."""
    names = NODES[: draw(st.integers(2, len(NODES)))]
    places = draw(st.lists(st.sampled_from(NODES[:5]), max_size=6))
    return Neighbourhood(
        nodes=tuple(draw(nodes(name)) for name in names),
        pods=tuple(draw(pods(f"p{i}", place)) for i, place in enumerate(places)),
        probe=draw(pods("probe").filter(lambda pod: not about or bool(getattr(pod.constraints, about)))),
        namespaces={"default": {"team": draw(st.sampled_from(("red", "blue")))}, "shop": {}},
    )
