from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kube.objects.constraints import NodeSelectorTerm, Operator, Requirement
from kube.objects.labels import requirement_matches
from placement.index.node_labels import rows_meeting, rows_with_labels
from tests.placement.storage_cluster import StorageCluster
from tests.placement.storage_manifests import node

NODES = [{}, {"a": "1"}, {"a": "2", "b": "x"}, {"a": "10"}, {"b": "y"}, {"a": "x"}, {"a": ""}]


@pytest.fixture(scope="module")
def cluster() -> StorageCluster:
    cluster = StorageCluster(node(f"n{number}", **labels) for number, labels in enumerate(NODES))
    cluster.put(node("gone", a="1"))
    cluster.delete(node("gone"))
    return cluster


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement("a", Operator.IN, ("1", "x")),
        Requirement("a", Operator.IN, ()),
        Requirement("a", Operator.IN, ("nobody's",)),
        Requirement("a", Operator.IN, tuple(str(value) for value in range(20))),
        Requirement("a", Operator.IN, ("1", "2", "10", "x", "", "1", "2", "10", "x")),
        Requirement("a", Operator.NOT_IN, ("1",)),
        Requirement("a", Operator.NOT_IN, ("1", "2", "10", "x", "", "1", "2", "10", "x")),
        Requirement("a", Operator.EXISTS),
        Requirement("a", Operator.DOES_NOT_EXIST),
        Requirement("a", Operator.GT, ("1",)),
        Requirement("a", Operator.LT, ("10",)),
        Requirement("c", Operator.IN, ("1",)),
        Requirement("c", Operator.NOT_IN, ("1",)),
    ],
)
def test_rows_are_those_of_nodes_whose_labels_match(cluster: StorageCluster, requirement: Requirement) -> None:
    found = rows_meeting([requirement], cluster.index.labels, cluster.view.n_rows)
    assert found[: len(NODES)].tolist() == [requirement_matches(requirement, labels) for labels in NODES]
    assert found.shape == (cluster.view.n_rows,)


A1 = Requirement("a", Operator.IN, ("1",))
BX = Requirement("b", Operator.IN, ("x",))
NAMED = Requirement("metadata.name", Operator.IN, ("n1",))
NOT_NAMED = Requirement("metadata.name", Operator.NOT_IN, ("n1",))


@pytest.mark.parametrize(
    ("terms", "rows"),
    [
        (None, range(len(NODES))),
        ((), ()),
        ((NodeSelectorTerm(),), ()),
        ((NodeSelectorTerm((A1,)), NodeSelectorTerm()), (1,)),
        ((NodeSelectorTerm((A1,)), NodeSelectorTerm((BX,))), (1, 2)),
        ((NodeSelectorTerm((A1, BX)),), ()),
        # A volume's node affinity is held against labels only, so that the node seems to have no name.
        ((NodeSelectorTerm((A1,), (NAMED,)),), ()),
        ((NodeSelectorTerm((A1,), (NOT_NAMED,)),), (1,)),
        ((NodeSelectorTerm((), (NOT_NAMED,)),), range(len(NODES))),
    ],
)
def test_one_term_must_match(
    cluster: StorageCluster, terms: tuple[NodeSelectorTerm, ...] | None, rows: Sequence[int]
) -> None:
    found = rows_with_labels(terms, cluster.index.labels, cluster.view.n_rows)
    assert np.flatnonzero(found[: len(NODES)]).tolist() == list(rows)
