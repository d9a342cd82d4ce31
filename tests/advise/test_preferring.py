"""New pods prefer the nodes that an advisor names, on a real API server with webhook and kube-scheduler."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from placement.gate_exemptions import ADVICE
from placement.preferred_nodes import PREFERRED
from testing.clusters.advised_site import Site, note_of
from testing.clusters.own_nodes import QUICK_LEASE
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api, WebhookProcess, configuration, metric, plain_pod
from testing.servers.cluster_objects import Manifest
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.waiting import eventually
from tests.advise.conftest import Started

ELECTED = {"enabled": True, **QUICK_LEASE}
OWN = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}


_POLICIES = """
policies: {wishing: {advice: prefer}}
rules: [{policy: wishing, namespaces: [default], selector: {matchLabels: {app: wish}}}]
"""


@contextmanager
def _webhook(site: Site, directory: Path, advisor: ScorerProcess) -> Iterator[tuple[Api, WebhookProcess]]:
    """The webhook as it is shipped, in front of the API server, and a namespace whose pods prefer nodes."""
    advice = {"alive_for": "2s", "advisor": {"url": advisor.url, "timeout": "2s"}}  # of a machine that has much to do
    with ExitStack() as running:
        api = running.enter_context(Api(site.plane))
        api.install_crds()
        directory.mkdir()
        (directory / "policies.yaml").write_text(_POLICIES)
        settings = {"webhook": {"advice": advice}, "policies": {"file": str(directory / "policies.yaml")}}
        webhook = running.enter_context(
            WebhookProcess(directory, site.plane.kubeconfig, settings=settings, forked=True)
        )
        api.create(configuration(webhook, failurePolicy="Fail"))
        api.patch(
            {"kind": "Namespace", "metadata": {"name": site.sets[0]["metadata"]["namespace"]}},
            {"metadata": {"labels": {ADVICE: "prefer"}}},
        )
        assert eventually(lambda: bool(_preferred(_new(site, api, "?dryRun=All")))), webhook.log + advisor.log
        yield api, webhook


def _new(site: Site, api: Api, query: str = "", *, labels: Manifest | None = None, **spec: Any) -> Manifest:
    """A pod as its ReplicaSet creates it, without a name."""
    owner = site.sets[0]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "made-",
            "namespace": owner["metadata"]["namespace"],
            "labels": {**owner["spec"]["selector"]["matchLabels"], **(labels or {})},
            "ownerReferences": [reference | {key: owner["metadata"][key] for key in ("name", "uid")}],
        },
        "spec": {"containers": [{"name": "main", "image": "app:1"}]} | spec,
    }
    return dict(api.create(pod, query))


def _preferred(pod: Manifest) -> list[Any]:
    """Terms of preferred node affinity."""
    return list(pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(PREFERRED, []))


def _node_of(term: Manifest) -> str:
    (field,) = term["preference"]["matchFields"]
    (node,) = field["values"]
    return str(node)


def test_pods_go_to_nodes_that_they_prefer_and_every_replica_reckons_with_them(
    site: Site, start: Started, tmp_path: Path
) -> None:
    first = start("--decisions", str(tmp_path / "decisions.jsonl"), leader_election=ELECTED)
    second = start(leader_election=ELECTED)
    with _webhook(site, tmp_path / "webhook", first) as (api, webhook):
        assert first.metric("forecast_preferences_total") > 0 and first.metric("forecast_assumed_pods") == 0, "dry runs"
        made = [_new(site, api) for _ in range(3)]
        assert [one["metadata"]["name"][:5] for one in made] == ["made-"] * 3
        own = _new(site, api, affinity={"nodeAffinity": {PREFERRED: [OWN]}})
        assert _preferred(own)[0] == OWN and _node_of(_preferred(own)[1]) == note_of(own)["node"]
        assert not _preferred(_new(site, api, "?dryRun=All", labels={ADVICE: "off"}))
        assert not _preferred(_new(site, api, "?dryRun=All", hostNetwork=True))
        assert _preferred(api.create(plain_pod("by-policy", "wish"), "?dryRun=All"))
        assert not _preferred(api.create(plain_pod("by-policy", "other"), "?dryRun=All"))
        for replica in (first, second):
            assert eventually(lambda one=replica: one.metric("forecast_assumed_pods") == 4), replica.log  # type: ignore[misc]
        with KubeScheduler(site.plane):
            site.pods("burst", 20, gates=())
            site.await_bound(24, log=lambda: webhook.log)
        stored = site.stored()
        assert all(_node_of(_preferred(one)[-6]) == note_of(one)["node"] for one in stored), webhook.log
        followed = [one for one in stored if one["spec"]["nodeName"] == note_of(one)["node"]]
        assert len(followed) > len(stored) / 2
        for replica in (first, second):
            assert eventually(lambda one=replica: one.metric("forecast_assumed_pods") == 0), replica.log  # type: ignore[misc]
        # They were not held, so nothing was released; and what was preferred is decided about as advice is.
        assert first.metric("forecast_advice_pods_total") == 0
        lines = tmp_path / "decisions.jsonl"
        assert eventually(lambda: len(lines.read_text().splitlines()) == len(stored)), first.log
        assert metric(webhook, 'forecast_webhook_preferences_total{outcome="failed"}') == 0


def test_without_the_advisor_pods_are_created_as_they_are_and_at_once(
    site: Site, start: Started, tmp_path: Path
) -> None:
    advisor = start(leader_election=ELECTED)
    with _webhook(site, tmp_path / "webhook", advisor) as (api, webhook):
        advisor.kill()
        began = time.monotonic()
        made = [_new(site, api) for _ in range(10)]
        assert time.monotonic() - began < 10.0
        assert not any(_preferred(one) or note_of(one) for one in made)
        failed, paused = (
            metric(webhook, f'forecast_webhook_preferences_total{{outcome="{outcome}"}}')
            for outcome in ("failed", "paused")
        )
        assert 1 <= failed <= 4 and failed + paused <= 10


def test_an_advisor_without_a_forecast_names_no_nodes_and_refuses_what_it_cannot_use(
    site: Site, start: Started, tmp_path: Path
) -> None:
    advisor = start(models=tmp_path / "none")
    answer = advisor.post(
        "/v1/preferences",
        {"pod": {"metadata": {"name": "a", "uid": "q"}, "spec": {"containers": []}}, "seconds": 5.0},
    )
    assert answer == {"nodes": [], "note": "", "because": "there is no usable forecast"}
    unusable = {
        b"{": 400,
        b'{"seconds": 1}': 422,
        b'{"pod": {"metadata": {"name": "a"}}, "seconds": 0}': 422,
        b'{"pod": {"metadata": {"name": "a"}}, "seconds": 1e-9}': 503,
    }
    for body, status in unusable.items():
        assert advisor.http.post("/v1/preferences", content=body).status_code == status
