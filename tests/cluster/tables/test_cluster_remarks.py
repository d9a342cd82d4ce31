"""What a cluster file lacks is said, and a complete one has no remark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.tables.cluster_file import parse_cluster

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def node(name: str, room: dict[str, str] | None = ROOM) -> dict[str, Any]:
    status = {} if room is None else {"status": {"allocatable": room}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} | status


def pod(name: str, on: str = "n1", namespace: str = "shop", kind: str = "Pod", **spec: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": on, "containers": [{"name": "main"}], **spec},
    }


def remarks(*objects: dict[str, Any]) -> tuple[str, ...]:
    return parse_cluster(json.dumps(objects).encode()).remarks


def test_a_complete_file_has_none() -> None:
    done = pod("done", on="gone") | {"status": {"phase": "Succeeded"}}
    assert remarks(node("n1"), pod("a"), pod("b", priorityClassName="system-node-critical"), done) == ()


@pytest.mark.parametrize(
    ("objects", "remark"),
    [
        ([node("n1")], "it has no pods: every node counts as empty; export pods, too, with kubectl get nodes,pods"),
        ([node("n1"), pod("a", namespace="default")], "its 1 pods are all in default: "),
        (
            [node("n1"), pod("a", namespace="default"), pod("b", namespace="kube-system")],
            "its 2 pods are all in default and kube-system: if the cluster has other namespaces",
        ),
        (
            [node("n1", None), node("n2"), pod("a")],
            "1 of 2 nodes have no status.allocatable (n1): their capacity is unk",
        ),
        ([node("n1", {"cpu": "4", "pods": "9"}), pod("a")], "1 of 1 nodes have no memory in status.allocatable (n1)"),
        ([node("n1"), pod("a", on="n7")], "1 pods (shop/a) are bound to nodes that it does not hold (n7)"),
        (
            [node("n1"), pod("a", priorityClassName="high")],
            "pods name the PriorityClasses high, which it does not hold",
        ),
        (
            [node("n1"), pod("a"), pod("b", kind="pod")],
            "1 objects of kind pod are not read (shop/b): did you mean Pod?",
        ),
        (
            [node("n1"), pod("a"), pod("b", kind="Job")],
            "1 objects of kind Job say no apiVersion and are not read (shop/b)",
        ),
        ([node("n1"), pod("a"), pod("b", kind="")], "1 objects say no kind and are not read (shop/b)"),
    ],
)
def test_what_lacks_is_one_remark_that_names_it(objects: list[dict[str, Any]], remark: str) -> None:
    (found,) = remarks(*objects)
    assert found.startswith(remark)
