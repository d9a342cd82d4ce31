"""By which label a store of several clusters is narrowed to ours, and when that is not clear."""

from __future__ import annotations

import pytest

from base.errors import InputError
from forecast_scheduler.discovery.known_nodes import Labels
from forecast_scheduler.discovery.own_cluster import own_cluster
from forecast_scheduler.discovery.services import ClusterNodes


def nodes(machines: str, n: int, **labels: str) -> list[Labels]:
    """kube_node_info of worker-0 ... of a cluster of kind: all have the same names and addresses."""
    return [
        {"node": f"worker-{i}", "internal_ip": f"172.18.0.{i}", "system_uuid": f"{machines}-{i}", **labels}
        for i in range(n)
    ]


OURS = ClusterNodes(
    {f"worker-{i}": frozenset({f"172.18.0.{i}"}) for i in range(6)},
    identities={f"worker-{i}": {"system_uuid": f"east-{i}"} for i in range(6)},
)


@pytest.mark.parametrize(
    ("series", "chosen"),
    [
        (nodes("east", 6), {}),
        (nodes("east", 6, cluster="a"), {}),  # there is no other one
        ([*nodes("east", 6, cluster="a"), *nodes("west", 6, cluster="b")], {"cluster": "a"}),
        ([*nodes("east", 6), *nodes("west", 9, cluster_name="b")], {"cluster_name": ""}),  # ours has none
        # The label that says cluster, though others part them as well.
        (
            [*nodes("east", 6, region="r1", k8s_cluster="a"), *nodes("west", 9, region="r2", k8s_cluster="b")],
            {"k8s_cluster": "a"},
        ),
        # A node that was rebuilt a minute ago, and machines outside of any cluster.
        ([*nodes("east", 6, cluster="a"), *nodes("before", 1, cluster="a")], {}),
        ([*nodes("east", 6), {"node": "database-1", "internal_ip": "10.1.1.1"}], {}),
        (nodes("west", 6, cluster="b"), {}),  # none of ours is there: the caller does not take such a store
    ],
)
def test_our_label_is_found(series: list[Labels], chosen: dict[str, str]) -> None:
    assert own_cluster(OURS, series) == chosen


@pytest.mark.parametrize(
    ("ours", "others", "said"),
    [
        ({}, {}, "no label says for sure which is which;"),
        ({"region": "r1"}, {"region": "r2"}, "region has r1, r2"),  # may be of several clusters tomorrow
        ({"prometheus_replica": "0"}, {"prometheus_replica": "1"}, "which is which;"),
    ],
)
def test_what_is_ambiguous_is_refused(ours: dict[str, str], others: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        own_cluster(OURS, [*nodes("east", 6, **ours), *nodes("west", 6, **others)])


def test_a_label_under_which_both_stand_is_no_choice() -> None:
    with pytest.raises(InputError, match="cluster has a, b"):
        own_cluster(
            OURS, [*nodes("east", 6, cluster="a"), *nodes("west", 6, cluster="a"), *nodes("west", 6, cluster="b")]
        )
