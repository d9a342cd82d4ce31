"""The node that kube-scheduler will probably take: its default scores and our points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forecast.service_key import Owner
from kube.objects.objects import NodeInfo, PodInfo
from placement.scores.default_scores import default_scores, expected_choice
from testing.placement.views import view_of
from tests.scorer.live_cluster import node, pod_of

GIB = 2.0**30


def sized(name: str, cores: float, gib: float) -> NodeInfo:
    amounts = {"cpu": cores, "memory": gib * GIB, "pods": 110.0}
    return replace(node(name), capacity=amounts, allocatable=amounts, labels={"kubernetes.io/hostname": name})


def asking(name: str, cores: float, gib: float, on: str = "", owner: str = "") -> PodInfo:
    owned = {"owner": Owner("ReplicaSet", owner), "owner_uid": owner} if owner else {}
    requests = {"cpu": cores, "memory": gib * GIB}
    return replace(
        pod_of(None, name, on),
        requests=requests,
        nonzero_requests=(cores, gib * GIB),
        **owned,  # type: ignore[arg-type]
    )


def test_default_scores_are_those_worked_out_by_hand() -> None:
    nodes = [sized("a", 4.0, 8.0), sized("b", 8.0, 8.0)]
    view = view_of(nodes, [asking("old", 1.0, 4.0, on="a")])
    # a: (4 - 2) * 100 / 4 = 50 and (8 - 6) * 100 / 8 = 25, mean 37; b: 87 and 75, mean 81.
    # Balance, the change: a from |1/4 - 4/8| / 2 = .125 (87) to |2/4 - 6/8| / 2 = .125 (87): 75;
    # b from 0 (100) to |1/8 - 2/8| / 2 = .0625 (93): 50 + (50 + 93 - 100) / 2 = 71.
    # Taints 3 x 100 on both; nothing else applies to a bare pod.
    assert default_scores(asking("new", 1.0, 2.0), view, np.arange(2)).tolist() == [37 + 75 + 300, 81 + 71 + 300]


def test_replicas_are_spread_over_nodes_by_default() -> None:
    nodes = [sized(name, 64.0, 512.0) for name in "ab"]
    view = view_of(nodes, [asking("one", 0.1, 0.1, on="a", owner="rs"), asking("other", 0.1, 0.1, on="b")])
    # One pod of the same owner on a: 1 * ln(2 + 2) + 2 = 3.39 -> 3, on b 2: 100 * (3 + 2 - s) / 3 = 66 and 100.
    scores = default_scores(asking("new", 0.1, 0.1, owner="rs"), view, np.arange(2))
    assert scores[1] - scores[0] == 2 * (100 - 66)


def test_points_decide_against_the_default_scores_by_weight() -> None:
    view = view_of([sized("a", 4.0, 8.0), sized("b", 8.0, 8.0)], [asking("old", 1.0, 4.0, on="a")])
    pod, rows = asking("new", 1.0, 2.0), np.arange(2)
    assert expected_choice(pod, view, rows, np.array([0, 0]), 1) == 1
    assert expected_choice(pod, view, rows, np.array([3, 0]), 1) == 1
    assert expected_choice(pod, view, rows, np.array([4, 0]), 1) == 0  # 40 against 40: the first of equals
    assert expected_choice(pod, view, rows, np.array([2, 0]), 3) == 0
    assert expected_choice(pod, view, np.array([1, 0]), np.array([0, 0]), 1) == 0
