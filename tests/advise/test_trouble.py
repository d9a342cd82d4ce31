"""The leader is killed, the API server ends, hangs up, loses answers or has no time: no pod stays held."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import urllib3

from testing.clusters.advised_site import Site
from testing.clusters.own_nodes import QUICK_LEASE
from testing.processes.scorer_process import ScorerProcess
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.waiting import eventually
from tests.advise.conftest import Started

ELECTED = {"enabled": True, **QUICK_LEASE}


@pytest.fixture
def kube_scheduler(site: Site) -> Iterator[KubeScheduler]:
    with KubeScheduler(site.plane) as running:
        yield running


@pytest.fixture
def proxy(site: Site) -> Iterator[TcpProxy]:
    with TcpProxy(site.plane.api_server.port, lag_seconds=0.001) as running:
        yield running


@pytest.mark.parametrize("n_pods", [200, pytest.param(2_000, marks=pytest.mark.long)])
def test_the_leader_is_killed_in_a_burst(
    site: Site, start: Started, kube_scheduler: KubeScheduler, n_pods: int
) -> None:
    """Its pods are released by the replica that waits, and bound once: a binding cannot be undone."""
    first = start(leader_election=ELECTED)
    assert eventually(lambda: first.metric("forecast_leader") == 1), first.log
    second = start(leader_election=ELECTED)
    site.pods("burst", n_pods)
    first.kill()
    assert eventually(lambda: not site.held()), second.log[-3000:]
    site.await_bound(n_pods, log=lambda: second.log)
    assert second.metric("forecast_leader") == 1


def test_the_api_server_is_killed_and_comes_back_in_a_burst(
    site: Site, start: Started, kube_scheduler: KubeScheduler, proxy: TcpProxy
) -> None:
    n_pods = 100
    process = start(url=proxy.url, in_flight=2)
    proxy.lag_new_connections(0.1)
    site.pods("burst", n_pods)
    assert eventually(lambda: process.metric("forecast_advice_pods_total") > 0), process.log
    site.plane.api_server.kill()
    assert process.metric("forecast_advice_pods_total") < n_pods, "it was not killed in the middle"
    time.sleep(1.0)
    proxy.lag_new_connections(0.001)
    site.plane.api_server.start()
    _assert_all_placed(site, process, n_pods)


def test_the_watch_lags_by_seconds(site: Site, start: Started, kube_scheduler: KubeScheduler, proxy: TcpProxy) -> None:
    """What was advised, or released, is not written again because the watch does not show it yet."""
    n_pods = 30
    process = start(url=proxy.url, follow_timeout="1s", gate_timeout="1s")
    site.pods("first", 1)
    site.await_bound(1, log=lambda: process.log)
    proxy.lag_open_connections(3.0)
    site.pods("slow", n_pods)
    _assert_all_placed(site, process, n_pods + 1)
    assert process.metric("forecast_advice_pods_total") == n_pods + 1


def _assert_all_placed(site: Site, process: ScorerProcess, n_pods: int) -> None:
    def is_over() -> bool:
        with suppress(urllib3.exceptions.HTTPError, RuntimeError):  # it may just be coming back
            return not site.held() and site.n_bound() == n_pods
        return False

    assert eventually(is_over), process.log[-3000:]
    assert eventually(lambda: process.metric("forecast_assumed_pods") == 0), process.log[-3000:]
