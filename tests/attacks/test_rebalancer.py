"""Tenants, administrators and bad luck against the rebalancer, with the rights and policies that are shipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from testing.processes.attacked_rebalancer import MARK, SURGE, Night, Rebalancers, night
from testing.rebalancing.live_two_peaks import PLANS, budget
from testing.servers.applying import Applier
from testing.servers.kustomize import DEPLOY
from testing.waiting import eventually

HEALTH_SECONDS = 0.5
LONG = 100.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    with night(tmp_path_factory.mktemp("night")) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_plans_before(cluster: Night) -> None:
    cluster.delete_plans()
    cluster.kubelets.makes_ready = True
    if any(one["metadata"]["name"] == "node-new" for one in cluster.writer.list_all("nodes")):
        cluster.close_new_node()


def _limit_bytes() -> int:
    for one in yaml.safe_load_all((DEPLOY / "base" / "rebalancer" / "rebalancer.yaml").read_text()):
        if one["kind"] == "Deployment":
            text = one["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
            return int(text.removesuffix("Gi")) * 2**30
    raise LookupError("the rebalancer has no memory limit")


def _assert_healthy(processes: Rebalancers) -> None:
    watched = processes.watched
    print(f"/healthz p99 {watched.p99():.3f} s of {len(watched.probes)}, most {watched.most_bytes / 2**20:.0f} MiB")
    assert watched.most_bytes < _limit_bytes() and watched.p99() < HEALTH_SECONDS, watched.p99()


def test_no_pod_goes_outside_of_the_window(cluster: Night) -> None:
    """The leader stands still over the end, another takes over, a budget gives way after it, all are started anew."""
    cluster.tenant("shop")
    pods = [one for app in ("a", "b", "c") for one in cluster.deploy("shop", app, 4)[:2]]
    kept = cluster.deploy("shop", "kept", 2)[:1]
    cluster.writer.create(budget("kept", 2, namespace="shop"))
    assert eventually(lambda: all("currentHealthy" in one.get("status", {}) for one in _budgets(cluster)))
    cluster.open_new_node()
    name = cluster.plan([*kept, *pods], seconds=20)
    ends = time.time() + 20
    with cluster.rebalancers(2, parallel=3, refusal_deadline="5m") as processes:
        first = processes.leader()
        assert eventually(lambda: cluster.went(["shop"]).total() > 0, LONG), processes.logs()
        processes.pause(first)
        time.sleep(max(0.0, ends - time.time()))
        cluster.writer.delete_many(_budgets(cluster))
        time.sleep(3.0)
        processes.resume(first)
        assert eventually(lambda: cluster.is_over(name), LONG), processes.logs()
        for one in list(processes.all):
            processes.kill(one)
        processes.start()
        processes.leader()
        time.sleep(3.0)
        late = {uid: at for uid, at in cluster.gone.items() if at > ends}
        assert late == {}, (ends, late, processes.logs())
        assert [one["metadata"]["name"] for one in cluster.plans()] == [name], "the night has no second plan"
        _assert_healthy(processes)


def _budgets(cluster: Night) -> list[dict[str, Any]]:
    return cluster.writer.list_all("poddisruptionbudgets")


def test_no_owner_loses_more_pods_than_its_budget_whatever_dies(cluster: Night) -> None:
    """kill -9 after every eviction, an API server that does not answer, a plan that is deleted in the middle."""
    tenant = cluster.tenant("mall")
    apps = [f"app-{number}" for number in range(3)]
    pods = [cluster.deploy("mall", app, 6) for app in apps]
    cluster.open_new_node()
    # Each service in turn, and once more than it may.
    name = cluster.plan([of[turn] for turn in range(3) for of in pods], seconds=300)

    def n_gone() -> int:
        return cluster.went(["mall"]).total()

    with cluster.rebalancers(2) as processes:
        _assert_plans_are_out_of_reach(cluster, tenant, name)
        for _ in range(2):
            leader, before = processes.leader(), n_gone()
            assert eventually(lambda before=before: n_gone() > before, LONG), processes.logs()  # type: ignore[misc]
            processes.kill(leader)
            processes.start()
        cluster.plane.api_server.pause()
        time.sleep(12.0)  # longer than the timeout of an eviction
        cluster.plane.api_server.resume()
        assert eventually(lambda: n_gone() >= 4, LONG), processes.logs()
        # Whoever owns a service cannot make a second budget of it.
        tenant.send("DELETE", "/apis/apps/v1/namespaces/mall/deployments/app-2", {}, kind="application/json")
        cluster.delete_plans()
        time.sleep(5.0)
        processes.kill(processes.leader())
        processes.leader()
        time.sleep(10.0)
        went = cluster.went(["mall"])
        assert all(went["mall", app] <= 2 for app in apps[:2]), (went, processes.logs())
        assert cluster.plans() == [], "another plan was made in place of the deleted one"
        _assert_healthy(processes)


def _assert_plans_are_out_of_reach(cluster: Night, tenant: Applier, name: str) -> None:
    """Neither a namespace's administrator nor one of the cluster forges a plan or what it says."""
    (plan,) = cluster.plans()
    forged = {**plan, "metadata": {"name": "night-2026-01-01"}}
    for who in (tenant, cluster.admin):
        assert cluster.refused(who, "POST", PLANS, forged, "application/json")
        assert cluster.refused(who, "PATCH", f"{PLANS}/{name}/status", {"status": {"phase": "Planned", "moves": []}})
        assert cluster.refused(who, "PATCH", f"{PLANS}/{name}", {"spec": {"mode": "shadow"}})
    assert cluster.refused(tenant, "DELETE", f"{PLANS}/{name}", {}, "application/json")


Act = Callable[[Night, Applier, str], None]


def _path(app: str) -> str:
    return f"/apis/apps/v1/namespaces/{app}/deployments/{app}"


def _patch(change: dict[str, Any]) -> Act:
    return lambda cluster, tenant, app: _done(tenant.send("PATCH", _path(app), change, kind=_MERGE))


def _done(answer: object) -> None:
    """An answer that nobody reads."""


_MERGE = "application/merge-patch+json"


def _mark(end: str) -> Act:
    def act(cluster: Night, tenant: Applier, app: str) -> None:
        uid = cluster.mark(app, app).partition(":")[0]
        tenant.send("PATCH", _path(app), {"metadata": {"annotations": {MARK: uid + end}}}, kind=_MERGE)

    return act


def _autoscale(cluster: Night, tenant: Applier, app: str) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app}
    tenant.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": app, "namespace": app},
            "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3},
        }
    )


def _apply_two(cluster: Night, tenant: Applier, app: str) -> None:
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app, "namespace": app}}
    live = cluster.deployment(app, app)
    spec = {"replicas": 2, "selector": live["spec"]["selector"], "template": {"metadata": {}, "spec": {}}}
    container = {"name": "main", "image": "app:1"}
    spec["template"] = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}
    tenant.send("PATCH", f"{_path(app)}?fieldManager=flux&force=true", wanted | {"spec": spec})


def _delete(cluster: Night, tenant: Applier, app: str) -> None:
    tenant.send("DELETE", _path(app), {}, kind="application/json")


def _fill(cluster: Night, tenant: Applier, app: str) -> None:
    """The annotations of the new pod to their limit: our deletion cost does not fit any more; it never gets ready."""
    new = next(one for one in cluster.pods(app, app) if one["status"].get("phase") != "Running")
    path = f"/api/v1/namespaces/{app}/pods/{new['metadata']['name']}"
    room = 256 * 1024 - sum(len(k) + len(v) for k, v in new["metadata"].get("annotations", {}).items())
    tenant.send("PATCH", path, {"metadata": {"annotations": {"x": "y" * (room - 1)}}}, kind=_MERGE)
    tenant.send("PATCH", _path(app), {"metadata": {"annotations": {"never-ready": "true"}}}, kind=_MERGE)


def _nothing(cluster: Night, tenant: Applier, app: str) -> None:
    """The tenant of an honest workload does nothing."""


SURGES: dict[str, tuple[Act, int | None, set[str]]] = {
    "honest": (_nothing, 1, {"done"}),
    "scaled": (_patch({"spec": {"replicas": 3}}), 3, {"skipped"}),
    "to-zero": (_patch({"spec": {"replicas": 0}}), 0, {"skipped"}),
    "five": (_mark(":5"), 2, {"skipped"}),
    "zero-one": (_mark(":01"), 2, {"skipped"}),
    "no-number": (_mark(""), 2, {"skipped"}),
    "autoscaled": (_autoscale, 2, {"skipped"}),
    "applied": (_apply_two, 2, {"skipped"}),
    "deleted": (_delete, None, {"skipped", "done"}),
    "paused": (_patch({"spec": {"paused": True}}), 1, {"done", "stuck"}),
    "no-consent": (_patch({"metadata": {"annotations": {SURGE: "false"}}}), 1, {"done", "skipped"}),
    "full": (_fill, 1, {"done", "stuck"}),
}
"""By namespace and Deployment: what its owner does while it is scaled up, its replicas in the end, and the states."""


def test_no_surge_leaves_or_takes_a_replica_whatever_its_owner_does(cluster: Night) -> None:
    """kill -9 while all Deployments are scaled up; one more surge loses its plan as well."""
    tenants = {app: cluster.tenant(app) for app in (*SURGES, "orphan", "unasked")}
    pods = {app: cluster.deploy(app, app, 1, surge=app != "unasked") for app in tenants}
    cluster.open_new_node()
    cluster.kubelets.makes_ready = False
    first = cluster.plan([one for app in (*SURGES, "unasked") for one in pods[app]], seconds=600, surge=True)
    second = cluster.plan(pods["orphan"], seconds=600, number=2, surge=True)
    patience = {"refusal_deadline": "60s", "ready_deadline": "5m"}
    with cluster.rebalancers(1, parallel=20, **patience) as processes:
        asked = [*SURGES, "orphan"]
        assert eventually(lambda: all(cluster.mark(app, app) for app in asked), LONG), cluster.records(first)
        n_pods = dict.fromkeys(asked, 2)
        assert eventually(lambda: all(len(cluster.pods(app, app)) == n for app, n in n_pods.items()), LONG)
        processes.kill(processes.leader())
        cluster.admin.send("DELETE", f"{PLANS}/{second}", {}, kind="application/json")
        for app, (act, _, _) in SURGES.items():
            act(cluster, tenants[app], app)
        cluster.kubelets.makes_ready = True
        processes.start()
        assert eventually(lambda: cluster.is_over(first), LONG), (cluster.records(first), processes.logs())
        unmarked = set(tenants) - {"autoscaled", "applied"}  # there the mark goes with the next change of the replicas
        assert eventually(lambda: not any(cluster.mark(app, app) for app in unmarked), LONG), processes.logs()
        records = cluster.records(first)
        for app, (_, replicas, states) in SURGES.items():
            found = cluster.deployment(app, app)
            assert found.get("spec", {}).get("replicas") == replicas, (app, records[app], processes.logs())
            assert records[app]["state"] in states, records[app]
        for app in ("orphan", "unasked"):
            assert cluster.deployment(app, app)["spec"]["replicas"] == 1
        assert "generation" in cluster.deployment("unasked", "unasked")["metadata"]
        assert cluster.deployment("unasked", "unasked")["metadata"]["generation"] == 1, "it was written without consent"
        assert pods["orphan"][0]["metadata"]["uid"] not in cluster.gone, "no plan let this pod go"
        _assert_healthy(processes)
