"""Quotas where an untouched kube-scheduler places: our gate stays on pods that their tenant's quota does not admit."""

from __future__ import annotations

import time

from testing.clusters.advised_site import Site
from testing.clusters.elastic_quotas import create_quota, elastic_quota, install_elastic_quotas
from testing.processes.webhook_process import Api
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.waiting import eventually
from tests.advise.conftest import Started

N_PODS, N_ADMITTED = 12, 7


def test_no_more_pods_start_than_the_quota_admits(site: Site, start: Started) -> None:
    """Pods of 0.1 cores. The advisor is killed on the way, and the timeout of its gate is short."""
    tenants = sorted({one["metadata"]["namespace"] for one in site.sets})
    with Api(site.plane) as api, KubeScheduler(site.plane):
        install_elastic_quotas(api)
        for tenant in tenants:
            limit = {"cpu": f"{100 * N_ADMITTED}m"}
            create_quota(api, elastic_quota(tenant, limit, limit))
        first = start(gate_timeout="1s")
        of_tenant = [one for one in site.sets if one["metadata"]["namespace"] == tenants[0]]
        site.sets = of_tenant
        site.pods("a", N_PODS)
        site.await_bound(N_ADMITTED, "a", log=lambda: first.log)
        assert eventually(lambda: first.metric("forecast_gated_by_quota_pods") == N_PODS - N_ADMITTED), first.log
        events = "/apis/events.k8s.io/v1/events?fieldSelector=reason=ForecastHeld"
        assert eventually(lambda: len(api.request("GET", events)["items"]) == N_PODS - N_ADMITTED), first.log
        assert all("until the quota admits it: tenant " in one["note"] for one in api.request("GET", events)["items"])
        first.kill()
        second = start(gate_timeout="1s")
        time.sleep(3)  # three times the timeout of the gate
        assert site.n_bound("a") == N_ADMITTED and len(site.held()) == N_PODS - N_ADMITTED
        gone = next(one for one in site.stored("a") if one["spec"].get("nodeName"))
        site.writer.delete(gone)
        site.await_bound(N_ADMITTED, "a", log=lambda: second.log)
        assert len(site.held()) == N_PODS - N_ADMITTED - 1
