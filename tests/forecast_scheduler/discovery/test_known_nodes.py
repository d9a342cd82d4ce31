"""Which of the API server's nodes a store knows, by the names and addresses that its metrics have."""

from __future__ import annotations

import json

import pytest

from forecast_scheduler.discovery.known_nodes import KnownNodes, known_nodes
from forecast_scheduler.discovery.services import ClusterNodes, nodes_of, together

NODES = ClusterNodes(
    {f"n{i}": frozenset({f"10.0.0.{i}"}) for i in range(1, 5)},
    identities={"n1": {"system_uuid": "a1", "provider_id": "kind://docker/east/n1"}},
)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([{"node": f"n{i}", "internal_ip": f"10.0.0.{i}"} for i in range(1, 5)], KnownNodes(4, 4, 0)),
        ([{"node": "n1"}, {"node": "n2.example.org"}], KnownNodes(2, 4, 0)),
        # node-exporter and the kubelet without relabelling: by address.
        ([{"node": "10.0.0.1"}, {"node": "10.0.0.2"}], KnownNodes(2, 4, 0)),
        # Namesakes of another cluster, alone and beside ours.
        ([{"node": "n1", "internal_ip": "10.9.0.1"}], KnownNodes(0, 4, 0, 1)),
        (
            [{"node": "n1", "internal_ip": "10.9.0.1"}, {"node": "n1", "internal_ip": "10.0.0.1"}],
            KnownNodes(1, 4, 0, 1),
        ),
        # kind and k3d: names and addresses are the same, machines are not.
        ([{"node": "n1", "internal_ip": "10.0.0.1", "system_uuid": "b1"}], KnownNodes(0, 4, 0, 1)),
        ([{"node": "n1", "provider_id": "kind://docker/west/n1"}], KnownNodes(0, 4, 0, 1)),
        ([{"node": "n1", "system_uuid": "a1"}, {"node": "n2", "system_uuid": "unknown to us"}], KnownNodes(2, 4, 0)),
        ([{"node": "m1"}, {"node": "m2"}, {}], KnownNodes(0, 4, 2)),
        ([], KnownNodes(0, 4, 0)),
    ],
)
def test_nodes_are_known_by_name_and_address(series: list[dict[str, str]], expected: KnownNodes) -> None:
    assert known_nodes(NODES, series) == expected


def test_an_empty_cluster_is_known_by_no_store() -> None:
    assert known_nodes(ClusterNodes({}), [{"node": "n1"}]).share == 0


def test_pages_of_nodes_are_put_together() -> None:
    def page(name: str, address: str, token: str) -> bytes:
        addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
        status = {"addresses": addresses, "nodeInfo": {"systemUUID": f"uuid-{name}"}}
        node = {"metadata": {"name": name}, "spec": {"providerID": "aws:///a/i-1"}, "status": status}
        return json.dumps({"items": [node], "metadata": {"continue": token}}).encode()

    first, second = nodes_of(page("n1", "10.0.0.1", "more")), nodes_of(page("n2", "10.0.0.2", ""))
    assert (first[1], second[1]) == ("more", "")
    expected = {"n1": frozenset({"10.0.0.1"}), "n2": frozenset({"10.0.0.2"})}
    identities = {name: {"system_uuid": f"uuid-{name}", "provider_id": "aws:///a/i-1"} for name in expected}
    assert together([first[0], second[0]]) == ClusterNodes(expected, frozenset({"aws"}), identities)
