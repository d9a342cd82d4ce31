"""A pod is not bound to a node that is gone by then, or is another one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from extender.framework.node_guard import NodeGuard
from extender.framework.status import Code, Status
from scorer.cluster.decoding import Kind
from scorer.cluster.objects import Taint
from scorer.scorer import Scorer
from tests.extender.framework.gangs.made_up import member
from tests.extender.small_cluster import node_of


def test_only_a_node_that_is_there_is_left_to_the_next_plugin() -> None:
    scorer = Scorer(clock=lambda: 0.0)
    scorer.replace(Kind.NODES, [node_of("a"), node_of("b")])
    with scorer.reading() as cluster:
        guard = NodeGuard(cluster.state)

    def said(node: str) -> Status:
        return asyncio.run(guard.bind(member("p", of=""), node))

    gone = Code.UNSCHEDULABLE
    assert said("a").code is said("b").code is Code.SKIP
    assert said("nowhere") == Status(gone, "NodeGuard", "node nowhere is gone")
    scorer.delete(Kind.NODES, node_of("a"))
    assert said("a") == Status(gone, "NodeGuard", "node a is gone")
    scorer.put(Kind.NODES, node_of("c"))  # takes the row over
    assert (said("a").code, said("b").code, said("c").code) == (gone, Code.SKIP, Code.SKIP)
    scorer.put(Kind.NODES, node_of("a"))
    assert said("a").code is Code.SKIP


CHANGES = [
    {"allocatable": {"cpu": 1.0}},
    {"labels": {"zone": "b"}},
    {"taints": (Taint("k", "v", "NoSchedule"),)},
    {"unschedulable": True},
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_node_made_anew_under_the_name_is_another_one(change: dict[str, Any]) -> None:
    scorer = Scorer(clock=lambda: 0.0)
    scorer.replace(Kind.NODES, [node_of("a")])
    with scorer.reading() as cluster:
        guard = NodeGuard(cluster.state)
    pods = [replace(member(name, of=""), uid=name) for name in "pqr"]
    for pod in pods:
        assert guard.reserve(pod, "a").is_success

    def said(at: int) -> Code:
        return asyncio.run(guard.bind(pods[at], "a")).code

    scorer.delete(Kind.NODES, node_of("a"))
    scorer.put(Kind.NODES, node_of("a"))
    assert said(0) is Code.SKIP, "it is as it was"
    scorer.put(Kind.NODES, replace(node_of("a"), **change))
    assert said(1) is Code.UNSCHEDULABLE
    guard.unreserve(pods[2], "a")
    guard.reserve(pods[2], "a")
    assert said(2) is Code.SKIP, "it was chosen as it is now"
