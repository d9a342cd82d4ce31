"""EvictionRequests on a real API server with their gate on: a pod goes once, by its responder, and never by a request
that was withdrawn.

kube-controller-manager 1.37 has no controller of them: the test plays evictionrequest-controller and the default
responder, which asks the Eviction API.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

import pytest

from rebalancer.execution.eviction_requests import API_VERSION, REQUESTER
from testing.servers.applying import Applier, NotApplied
from testing.servers.control_plane.binaries import kubernetes_version
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.kustomize import built
from testing.servers.shipped_rights import Account, ShippedRights
from testing.waiting import eventually
from tests.live_cluster.custom_resources import CustomResources
from tests.rebalance.conftest import PLANS, Site

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(kubernetes_version() < "1.37", reason="EvictionRequests came with Kubernetes 1.37"),
]

REQUESTS: Final = f"/apis/{API_VERSION}/namespaces/default/evictionrequests"
_POLICY: Final = "forecast-scheduler-rebalancer"
GATES: Final = ("--feature-gates=EvictionRequestAPI=true", f"--runtime-config={API_VERSION}=true")


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(api_server_arguments=GATES) as running:
        yield running


@pytest.fixture(scope="module")
def rights(plane: ControlPlane) -> Iterator[ShippedRights]:
    """What deploy/ grants the rebalancer, with the policies that confine it; the tests make its plans."""
    shipped = [one for one in built("overlays/rebalancer") if one["metadata"]["name"] != f"{_POLICY}-plans"]
    with Applier(plane) as applier:
        yield ShippedRights(plane, applier, shipped)


@pytest.fixture
def site(site: Site, rights: ShippedRights) -> Site:
    """The drivers have the shipped account."""
    assert eventually(lambda: site.resources.request("GET", PLANS).status == 200)
    site.account = rights.kubeconfig("rebalancer")
    return site


class Responding:
    """Plays the controller and the responder, in a thread of its own: asked is what it has seen of intents."""

    def __init__(self, site: Site, *, evicts: bool) -> None:
        self._site, self._evicts, self._over = site, evicts, Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Responding:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with CustomResources(self._site.plane) as resources:
            while not self._over.wait(0.2):
                for one in resources.request("GET", REQUESTS).body.get("items", []):
                    self._answer(resources, one)

    def _answer(self, resources: CustomResources, one: dict[str, Any]) -> None:
        generation, status = one["metadata"]["generation"], one.get("status") or {}
        evicted, target = False, one["spec"]["target"]["pod"]
        if self._evicts and one["spec"]["intent"] == "Eviction" and not status.get("conditions"):
            body = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": target["name"], "namespace": "default"},
                "deleteOptions": {"preconditions": {"uid": target["uid"]}},
            }
            answer = resources.request("POST", f"/api/v1/namespaces/default/pods/{target['name']}/eviction", body)
            evicted = answer.status == 201
        if status.get("observedGeneration") == generation and not evicted:
            return
        condition = {
            "type": "TargetEvicted",
            "status": "True",
            "reason": "PodDeleted",
            "message": "",
            "lastTransitionTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        changed = {"observedGeneration": generation} | ({"conditions": [condition]} if evicted else {})
        answer = resources.request("PUT", f"{REQUESTS}/{one['metadata']['name']}/status", one | {"status": changed})
        assert answer.status in (200, 404, 409), answer.body


@contextmanager
def asked_evictions(site: Site) -> Iterator[list[dict[str, Any]]]:
    """The requests that there are when the block ends; they are removed, as the garbage collector would."""
    found: list[dict[str, Any]] = []
    yield found
    found += site.resources.request("GET", REQUESTS).body["items"]
    site.resources.request("DELETE", REQUESTS)


def test_the_responder_makes_pods_go_within_their_budget(site: Site) -> None:
    pods = site.deploy("cart", 2)
    site.budget("cart", 1)
    site.open_target()
    site.plan(pods)
    with asked_evictions(site) as asked, Responding(site, evicts=True):
        assert site.driven(patience=60) == 0
    assert site.states() == ["done", "done"], site.status()
    assert sorted(site.kubelets.gone) == sorted(one["metadata"]["uid"] for one in pods)
    assert {one["spec"]["target"]["pod"]["uid"] for one in asked} == set(site.kubelets.gone)
    assert {(one["spec"]["requester"], one["spec"]["intent"]) for one in asked} == {(REQUESTER, "Withdrawn")}


def test_a_request_that_is_not_carried_out_in_time_is_withdrawn(site: Site) -> None:
    pods = site.deploy("cart", 1)
    site.open_target()
    site.plan(pods)
    with asked_evictions(site) as asked, Responding(site, evicts=False):
        assert site.driven(patience=8) == 0
    assert site.states() == ["refused"], site.status()
    assert not site.kubelets.gone and [one["spec"]["intent"] for one in asked] == ["Withdrawn"]


def test_where_no_controller_looks_at_requests_the_eviction_api_is_asked(site: Site) -> None:
    pods = site.deploy("cart", 1)
    site.open_target()
    site.plan(pods)
    with asked_evictions(site) as asked:
        assert site.driven(patience=80) == 0
    assert site.states() == ["done"], site.status()
    assert list(site.kubelets.gone) == [pods[0]["metadata"]["uid"]]
    assert [one["spec"]["intent"] for one in asked] == ["Withdrawn"]


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"requester": "example.com/other"}},
        {"metadata": {"name": "another"}},
        {"metadata": {"ownerReferences": []}},
    ],
    ids=str,
)
def test_the_account_asks_for_evictions_of_its_own_moves_only(
    change: dict[str, dict[str, Any]], site: Site, rights: ShippedRights
) -> None:
    uid = "6e7b3b0e-6f0a-4c55-9a43-000000000001"
    plan = {"apiVersion": "forecast-scheduler.io/v1alpha1", "kind": "RebalancePlan", "name": "p", "uid": "u"}
    made: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "EvictionRequest",
        "metadata": {
            "name": f"move-{uid}",
            "ownerReferences": [plan],
        },
        "spec": {"target": {"pod": {"name": "any", "uid": uid}}, "requester": REQUESTER, "intent": "Eviction"},
    }
    token = rights.token("forecast-scheduler-rebalancer")
    changed = made | {part: made[part] | fields for part, fields in change.items()}
    with Applier(Account(site.plane.url, token, site.plane.ca_file)) as account:

        def is_refused() -> bool:
            try:
                account.send("POST", f"{REQUESTS}?dryRun=All", changed, kind="application/json")
            except NotApplied as error:
                return "of its own moves only" in error.message
            return False

        assert eventually(is_refused)
        account.send("POST", f"{REQUESTS}?dryRun=All", made, kind="application/json")
