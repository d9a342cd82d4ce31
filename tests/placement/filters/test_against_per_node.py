"""Filters and scores of one node, over all nodes at once, are those of the slow loop, whatever the pods and nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, target
from hypothesis import strategies as st

from kube.objects.constraints import (
    HostPort,
    NodeSelectorTerm,
    Operator,
    PodConstraints,
    PreferredNodeTerm,
    Requirement,
    Toleration,
)
from kube.objects.objects import PodInfo, Taint
from placement.filters.filter import ClusterView, Filter
from placement.filters.node_affinity import NodeAffinity
from placement.filters.node_ports import NodePorts
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.filters.node_unschedulable import NodeUnschedulable
from placement.filters.taint_toleration import TaintToleration
from placement.scores.node_affinity import NodeAffinityScore as NodeAffinityScore
from placement.scores.taint_toleration import TaintTolerationScore as TaintTolerationScore
from testing.placement import per_node
from testing.placement.views import Verdict, node_named, pod_with, scores, verdicts, view_of

NAMES = ["n0", "n1", "n2", "n3", "n4"]
KEYS, VALUES = ["zone", "rank", "example.com/disk"], ["", "a", "b", "3", "07", "-2", "+4"]
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]

values = st.sampled_from([*VALUES, *VALUES, "not valid", "x" * 64])
N_VALUES = {Operator.EXISTS: (0,), Operator.DOES_NOT_EXIST: (0,), Operator.GT: (1,), Operator.LT: (1,)}


@st.composite
def label_requirements(draw: st.DrawFn) -> Requirement:
    """One in eight with a number of values that its operator does not take."""
    operator = draw(st.sampled_from(Operator))
    n_values = draw(st.sampled_from(N_VALUES.get(operator, (1, 2)) if draw(st.integers(0, 7)) else (0, 1, 2)))
    if operator in (Operator.GT, Operator.LT) and draw(st.booleans()):
        return Requirement("rank", operator, tuple(draw(st.sampled_from(["3", "7", "-2"])) for _ in range(n_values)))
    return Requirement(draw(st.sampled_from(KEYS)), operator, tuple(draw(values) for _ in range(n_values)))


field_requirements = st.builds(
    Requirement,
    st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
    st.sampled_from([Operator.IN, Operator.IN, Operator.NOT_IN, Operator.EXISTS]),
    st.lists(st.sampled_from([*NAMES, ""]), min_size=0, max_size=2).map(tuple),
)
expressions, fields = (
    st.lists(label_requirements(), min_size=1, max_size=2).map(tuple),
    st.lists(field_requirements, min_size=1, max_size=2).map(tuple),
)
terms = st.one_of(
    st.builds(NodeSelectorTerm, expressions),
    st.builds(NodeSelectorTerm, expressions),
    st.builds(NodeSelectorTerm, st.just(()), fields),
    st.builds(NodeSelectorTerm, expressions, fields),
    st.just(NodeSelectorTerm()),
)
tolerations = st.builds(
    Toleration,
    st.sampled_from(["", "a", "b", "node.kubernetes.io/unschedulable"]),
    st.sampled_from(["Equal", "Equal", "Exists", "Gt", "Lt", "Odd"]),
    st.sampled_from(["", "1", "2"]),
    st.sampled_from(["", *EFFECTS]),
)
ports = st.builds(
    HostPort, st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"]), st.sampled_from(["TCP", "TCP", "UDP"]), st.just(80)
)
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"]),
    st.sampled_from([0.0, 0.001, 0.1, 0.3, 0.57, 1.0, 2.0, 3.0]),
)
PLAIN = pod_with()
tolerant = st.builds(
    lambda some: replace(PLAIN, constraints=PodConstraints(tolerations=tuple(some))), st.lists(tolerations, max_size=3)
)
choosy = st.builds(
    lambda labels, required, preferred: replace(
        PLAIN, constraints=PodConstraints(labels, required, tuple(preferred_terms(preferred)))
    ),
    st.sampled_from([(), (), (), *(((key, value),) for key in KEYS for value in ("a", "3"))]),
    st.one_of(st.none(), st.lists(terms, max_size=3).map(tuple)),
    st.lists(st.tuples(st.integers(1, 100), terms), max_size=2),
)
listening = st.builds(lambda some: replace(PLAIN, host_ports=tuple(some)), st.sets(ports, min_size=1, max_size=2))
requesting = st.builds(lambda some: replace(PLAIN, requests=some), amounts)


def preferred_terms(weighted: list[tuple[int, NodeSelectorTerm]]) -> list[PreferredNodeTerm]:
    return [PreferredNodeTerm(weight, term) for weight, term in weighted]


nodes = st.builds(
    lambda labels, taints, unschedulable, allocatable, n_pods: node_named(
        "",
        labels=labels,
        taints=taints,
        unschedulable=unschedulable,
        allocatable=allocatable if n_pods is None else {**allocatable, "pods": n_pods},
    ),
    st.fixed_dictionaries({}, optional={key: st.sampled_from(VALUES) for key in KEYS}),
    st.lists(
        st.builds(Taint, st.sampled_from(["a", "b"]), st.sampled_from(["", "1", "2"]), st.sampled_from(EFFECTS)),
        max_size=2,
    ),
    st.booleans(),
    amounts,
    st.sampled_from([None, 0.0, 1.0, 110.0, 110.0]),
)


@st.composite
def clusters(draw: st.DrawFn, pods: st.SearchStrategy[PodInfo] | None = None) -> list[per_node.OneNode]:
    made = []
    for name in NAMES[: draw(st.integers(1, 4))]:
        of_node = [] if pods is None else draw(st.lists(pods, max_size=2))
        there = [replace(pod, uid=f"{name}-{i}", name=f"{name}-{i}", node=name) for i, pod in enumerate(of_node)]
        made.append(per_node.OneNode(replace(draw(nodes), name=name), there))
    return made


def view(cluster: list[per_node.OneNode]) -> ClusterView:
    return view_of([one.node for one in cluster], [pod for one in cluster for pod in one.pods])


SlowFilter = Callable[[PodInfo, per_node.OneNode], Verdict]


def agree(tested: Filter, slow: SlowFilter, pod: PodInfo, cluster: list[per_node.OneNode]) -> None:
    expected = {one.node.name: slow(pod, one) for one in cluster}
    target(float(len(set(expected.values()))))  # nodes that differ tell more than nodes that all say the same

    assert verdicts(tested, pod, view(cluster)) == expected


@given(pod=tolerant, cluster=clusters())
def test_node_unschedulable(pod: PodInfo, cluster: list[per_node.OneNode]) -> None:
    agree(NodeUnschedulable(), per_node.unschedulable, pod, cluster)


@given(pod=tolerant, cluster=clusters())
def test_taint_toleration(pod: PodInfo, cluster: list[per_node.OneNode]) -> None:
    agree(TaintToleration(), per_node.taint_toleration, pod, cluster)


@given(pod=choosy, cluster=clusters())
def test_node_affinity(pod: PodInfo, cluster: list[per_node.OneNode]) -> None:
    agree(NodeAffinity(), per_node.node_affinity, pod, cluster)


@given(requirement=label_requirements(), labels=st.lists(st.sampled_from([None, *VALUES]), min_size=3, max_size=6))
def test_one_requirement(requirement: Requirement, labels: list[str | None]) -> None:
    """Alone in its term, so that no other hides what it says of a label that is missing, or equal."""
    pod = replace(PLAIN, constraints=PodConstraints(required_node_terms=(NodeSelectorTerm((requirement,)),)))
    of_nodes = [{} if value is None else {requirement.key: value} for value in (*labels, *requirement.values)]
    agree(
        NodeAffinity(),
        per_node.node_affinity,
        pod,
        [per_node.OneNode(node_named(f"n{i}", labels=of_node), ()) for i, of_node in enumerate(of_nodes)],
    )


@given(pod=listening, cluster=clusters(listening))
def test_node_ports(pod: PodInfo, cluster: list[per_node.OneNode]) -> None:
    agree(NodePorts(), per_node.node_ports, pod, cluster)


@given(pod=requesting, cluster=clusters(requesting))
def test_node_resources_fit(pod: PodInfo, cluster: list[per_node.OneNode]) -> None:
    agree(NodeResourcesFit(), per_node.node_resources_fit, pod, cluster)


@given(pod=tolerant, cluster=clusters())
def test_taint_toleration_score(pod: PodInfo, cluster: list[per_node.OneNode]) -> None:
    counts = {one.node.name: per_node.untolerated_soft_taints(pod, one.node) for one in cluster}
    most = max(counts.values())
    expected = {name: 100 - 100 * count // most if most else 100 for name, count in counts.items()}

    assert scores(TaintTolerationScore(), pod, view(cluster)) == expected


@given(pod=choosy, cluster=clusters())
def test_node_affinity_score(pod: PodInfo, cluster: list[per_node.OneNode]) -> None:
    sums = {one.node.name: per_node.preferred_weight(pod, one.node) for one in cluster}
    most = max(sums.values())
    expected = {name: 100 * total // most if most else 0 for name, total in sums.items()}

    assert scores(NodeAffinityScore(), pod, view(cluster)) == expected
