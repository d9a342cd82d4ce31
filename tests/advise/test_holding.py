"""New pods from the webhook to their node: held only if they ask for advice, and only while an advisor is alive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.gate_exemptions import ADVICE
from testing.clusters.advised_site import Site, note_of
from testing.clusters.own_nodes import QUICK_LEASE
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import Manifest
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.waiting import eventually
from tests.advise.conftest import Started, webhook_in_front


@pytest.fixture
def api(site: Site, tmp_path: Path) -> Iterator[Api]:
    """With the webhook in front, as it is shipped, and a namespace whose pods ask for advice."""
    with Api(site.plane) as api:
        api.install_crds()
        with webhook_in_front(api, site.plane, tmp_path / "webhook", site.sets[0]["metadata"]["namespace"]):
            yield api


def test_pods_are_held_while_an_advisor_is_alive_and_placed_by_it(site: Site, start: Started, api: Api) -> None:
    assert not _would_be_held(site, api), "no advisor has been started"
    process = start(leader_election={"enabled": True, **QUICK_LEASE})
    assert eventually(lambda: _would_be_held(site, api)), process.log
    assert not _would_be_held(site, api, labels={ADVICE: "off"})
    assert not _would_be_held(site, api, spec={"schedulerName": "another"})
    assert not _would_be_held(site, api, spec={"hostNetwork": True})
    assert not _would_be_held(site, api, spec={"nodeName": "somewhere"})
    assert not _would_be_held(site, api, namespace="default")
    assert _would_be_held(site, api, namespace="default", labels={ADVICE: "advise"})
    with KubeScheduler(site.plane):
        site.pods("held", 12, gates=())
        site.await_bound(12, "held", log=lambda: process.log)
    assert all(note_of(one)["node"] == one["spec"]["nodeName"] for one in site.stored("held"))
    process.kill()
    site.pods("left", 12)
    assert eventually(lambda: not _would_be_held(site, api)), "the advisor is dead"
    assert eventually(lambda: not site.held()), "the webhook releases what it has left behind"


def _would_be_held(
    site: Site, api: Api, *, namespace: str = "", labels: Manifest | None = None, spec: Manifest | None = None
) -> bool:
    """Whether a pod that is created now gets our gate; it is not stored."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "tried",
            "namespace": namespace or site.sets[0]["metadata"]["namespace"],
            "labels": labels or {},
        },
        "spec": {"containers": [{"name": "main", "image": "app:1"}]} | (spec or {}),
    }
    made = api.create(pod, "?dryRun=All")
    return any(gate["name"] == ADVICE for gate in made["spec"].get("schedulingGates", []))
