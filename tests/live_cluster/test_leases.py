"""A replica whose API server is away, on a real one; tests/schedule has those that take over from one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kube.client.kubernetes_client import api_client
from kube.leader_election.lease import Lease
from kube.leader_election.lease_options import LeaseOptions
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.waiting import eventually

SHORT = LeaseOptions(namespace="default", duration=3, renew_deadline=2, retry_period=0.3)


@pytest.fixture
def make(plane: ControlPlane) -> Iterator[Callable[[str, Path], Lease]]:
    """Makes and starts replicas that want the same Lease."""
    made: list[Lease] = []
    apis = []

    def of(identity: str, kubeconfig: Path) -> Lease:
        apis.append(api_client(kubeconfig))
        made.append(Lease(apis[-1], SHORT, identity=identity))
        made[-1].start()
        return made[-1]

    yield of
    for lease in made:
        lease.stop()
    for api in apis:
        api.rest_client.pool_manager.clear()


def test_an_api_server_that_is_away_ends_leading_and_comes_back(
    plane: ControlPlane, make: Callable[[str, Path], Lease]
) -> None:
    with TcpProxy(plane.api_server.port) as proxy:
        cut_off = make("cut-off", plane.write_kubeconfig("admin", plane.token, url=proxy.url))
        assert eventually(cut_off.may_write)
        proxy.refuse(True)
        assert eventually(lambda: not cut_off.may_write())
        other = make("other", plane.kubeconfig)
        assert eventually(other.may_write)  # only now: `cut-off` stopped before its Lease expired
        assert not cut_off.may_write()
        other.stop()
        proxy.refuse(False)
        assert eventually(cut_off.may_write)
        cut_off.stop()
