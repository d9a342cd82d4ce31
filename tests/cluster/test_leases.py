"""Replicas that want to lead, on a real API server: one at a time, whatever ends or stops the other."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3

from kube.client.kubernetes_client import api_client
from kube.leader_election.lease import Lease
from kube.leader_election.options import LeaseOptions
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.waiting import eventually

SHORT = LeaseOptions(namespace="default", duration=3, renew_deadline=2, retry_period=0.3)
# Long enough that a leader does not lose it because the machine is busy.
CALM = LeaseOptions(namespace="default", duration=60, renew_deadline=40, retry_period=0.2)


Make = Callable[..., Lease]


@pytest.fixture
def name() -> str:
    """Of the Lease: each test has its own."""
    return f"lease-{secrets.token_hex(4)}"


@pytest.fixture
def make(plane: ControlPlane, name: str) -> Iterator[Make]:
    """Makes and starts replicas."""
    made: list[Lease] = []
    apis = []

    def of(
        identity: str,
        timing: LeaseOptions = SHORT,
        kubeconfig: Path = plane.kubeconfig,
        may_lead: Callable[[], bool] = lambda: True,
    ) -> Lease:
        api = api_client(kubeconfig)
        apis.append(api)
        lease = Lease(api, timing.replace(name=name), identity=identity, may_lead=may_lead)
        made.append(lease)
        lease.start()
        return lease

    yield of
    for lease in made:
        lease.stop()
    for api in apis:
        api.rest_client.pool_manager.clear()


def in_lease(plane: ControlPlane, name: str) -> dict[str, object]:
    with urllib3.PoolManager(ca_certs=str(plane.ca_file)) as pool:
        url = f"{plane.url}/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}"
        answer = pool.request("GET", url, headers={"Authorization": f"Bearer {plane.token}"})
        return dict(answer.json()["spec"])


def test_the_first_leads_the_second_waits_and_takes_over_when_it_is_given_back(
    make: Make, plane: ControlPlane, name: str
) -> None:
    """With a Lease of a minute: taking over at once is not its expiry."""
    first = make("first", CALM)
    assert eventually(first.may_write)
    second = make("second", CALM)
    assert eventually(lambda: second.status().holder == "first")
    assert not second.may_write()
    first.stop()
    assert not first.may_write()
    assert eventually(second.may_write)
    assert second.status().holder == "second"
    assert in_lease(plane, name)["holderIdentity"] == "second"


def test_one_that_must_not_lead_any_more_gives_the_lease_back_and_takes_it_again_when_it_may(
    make: Make, plane: ControlPlane, name: str
) -> None:
    """With a Lease of a minute: it is given back, it does not expire."""
    may_lead = threading.Event()
    replica = make("only", CALM, may_lead=may_lead.is_set)
    time.sleep(1.0)
    assert not replica.may_write()
    may_lead.set()
    assert eventually(replica.may_write)
    may_lead.clear()
    assert eventually(lambda: not in_lease(plane, name)["holderIdentity"])
    assert not replica.may_write()
    may_lead.set()
    assert eventually(replica.may_write)


def test_an_api_server_that_is_away_ends_leading_and_comes_back(plane: ControlPlane, make: Make) -> None:
    with TcpProxy(plane.api_server.port) as proxy:
        kubeconfig = plane.write_kubeconfig("admin", plane.token, url=proxy.url)
        cut_off = make("cut-off", SHORT, kubeconfig)
        assert eventually(cut_off.may_write)
        proxy.refuse(True)
        assert eventually(lambda: not cut_off.may_write())
        other = make("other")
        assert eventually(other.may_write)  # only now: `cut-off` stopped before its Lease expired
        assert not cut_off.may_write()
        other.stop()
        proxy.refuse(False)
        assert eventually(cut_off.may_write)
        cut_off.stop()
