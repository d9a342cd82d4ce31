"""What RBAC cannot refuse to the rebalancer its policies do, on a real API server with the token of its account: pod
templates, replicas of others, labels of pods. What it writes itself passes: its own requests are sent here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from kube.client.api_answer import ApiAnswer, answered
from kube.client.pod_writes import MERGE
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.move_requests import MoveRequests
from rebalancer.execution.move_rooms import MADE_BY
from rebalancer.execution.observation import DeploymentSeen, PodSeen, Reply
from rebalancer.execution.plan_wire import MoveSpec, MoveStatus
from rebalancer.execution.wire_seen import MOVE_BY_SURGE, SURGED_FOR, deployment_seen, pod_seen
from testing.servers.applying import Applier, NotApplied
from testing.waiting import eventually
from tests.deploy.conftest import JSON, Policed

PART: Final = "rebalancer"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
PODS: Final = "/api/v1/namespaces/default/pods"
COST: Final = "controller.kubernetes.io/pod-deletion-cost"


@dataclass(frozen=True)
class Sent:
    """Requests of the account, as rebalancer.execution sends them: implements Requests."""

    by: Applier

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "application/json", seconds: float
    ) -> ApiAnswer:
        try:
            found = self.by.send(method, path, None if body is None else msgspec.json.decode(body), kind=content_type)
        except NotApplied as error:
            return answered(error.status, msgspec.json.encode({"message": error.message}))
        return answered(200, msgspec.json.encode(found))


RESERVATIONS: Final = "/apis/forecast-scheduler.io/v1alpha1/namespaces/default/reservations"


def _reservation(name: str = "move-u", **changes: Any) -> dict[str, Any]:
    """One of a move, as the rebalancer makes it."""
    plan = {"apiVersion": "forecast-scheduler.io/v1alpha1", "kind": "RebalancePlan", "name": "p", "uid": "u"}
    metadata = {
        "namespace": "default",
        "name": name,
        "labels": {MADE_BY: "rebalancer"},
        "ownerReferences": [plan],
    }
    spec = {
        "owners": {"matchLabels": {"app": "web"}},
        "resources": {"cpu": "1"},
        "lifetime": "15m",
        "node": "to",
    }
    made = {"apiVersion": "forecast-scheduler.io/v1alpha1", "kind": "Reservation", "metadata": metadata, "spec": spec}
    for part, change in changes.items():
        made[part] = {key: value for key, value in ({**made[part], **change}).items() if value is not None}  # type: ignore[dict-item]
    return made


@pytest.fixture(scope="module")
def world(policed: Policed) -> Policed:
    policed.admin.path(_reservation())  # waits until they are served
    return policed


def _deployment(admin: Applier, name: str, *, allows: bool = True, mark: str = "", replicas: int = 1) -> str:
    """Make it anew; returns its path."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    annotations = {"kept": "yes"} | ({MOVE_BY_SURGE: "true"} if allows else {}) | ({SURGED_FOR: mark} if mark else {})
    metadata = {"namespace": "default", "name": name, "annotations": annotations}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    admin.delete(made)
    admin.send("POST", DEPLOYMENTS, made, kind="application/json")
    return f"{DEPLOYMENTS}/{name}"


def _pod(admin: Applier, name: str) -> str:
    """Make it anew; returns its path."""
    metadata = {"namespace": "default", "name": name, "labels": {"app": "t"}, "annotations": {"kept": "yes"}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    admin.delete(made)
    admin.send("POST", PODS, made, kind="application/json")
    return f"{PODS}/{name}"


DEPLOYMENT_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "pods under another account": {"spec": {"template": {"spec": {"serviceAccountName": "admin"}}}},
    "pods with the disks of nodes": {
        "spec": {"template": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}}
    },
    "annotations of pods": {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}},
    "another rollout": {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    "no more rollouts": {"spec": {"paused": True}},
    "more replicas": {"spec": {"replicas": 2}},
    "no replicas": {"spec": {"replicas": 0}},
    "two replicas more with the mark": {"spec": {"replicas": 3}, "metadata": {"annotations": {SURGED_FOR: "u:1"}}},
    "one less with the mark": {"spec": {"replicas": 0}, "metadata": {"annotations": {SURGED_FOR: "u:1"}}},
    "a mark of another number": {"spec": {"replicas": 2}, "metadata": {"annotations": {SURGED_FOR: "u:2"}}},
    "the mark alone": {"metadata": {"annotations": {SURGED_FOR: "u:1"}}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "the owner's consent": {"metadata": {"annotations": {MOVE_BY_SURGE: None}}},
    "labels": {"metadata": {"labels": {"team": "mine"}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/mine"]}},
    "an owner that is gone, for the garbage collector": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}]}
    },
}


@pytest.mark.parametrize("attack", DEPLOYMENT_ATTACKS)
def test_of_a_deployment_nothing_changes_but_one_replica_with_its_mark(attack: str, world: Policed) -> None:
    assert world.refuses(PART, _deployment(world.admin, "web"), DEPLOYMENT_ATTACKS[attack])


@pytest.mark.parametrize(
    ("replicas", "change"),
    [
        (4, {"spec": {"replicas": 2}, "metadata": {"annotations": {SURGED_FOR: None}}}),
        (4, {"spec": {"replicas": 5}, "metadata": {"annotations": {SURGED_FOR: None}}}),
        (4, {"spec": {"replicas": 3}}),
        (4, {"spec": {"replicas": 5}, "metadata": {"annotations": {SURGED_FOR: "u:4"}}}),
        (4, {"metadata": {"annotations": {SURGED_FOR: None}}}),
        (4, {"metadata": {"annotations": {SURGED_FOR: "u:4"}}}),
        (5, {"spec": {"replicas": 4}, "metadata": {"annotations": {SURGED_FOR: None}}}),
    ],
    ids=[
        "two less",
        "one more",
        "one less, and the mark stays",
        "a second surge",
        "its replica stays, for the next surge to add another",
        "another mark, to the same end",
        "one less of what others scaled",
    ],
)
def test_a_surge_ends_with_the_replica_less_that_it_added(
    replicas: int, change: dict[str, Any], world: Policed
) -> None:
    path = _deployment(world.admin, "web", mark="u:3", replicas=replicas)
    assert world.refuses(PART, path, change)
    world.admin.send("PATCH", path, change, kind=MERGE)  # others scale as before


def test_without_the_owners_consent_there_is_no_surge(world: Policed) -> None:
    path = _deployment(world.admin, "web", allows=False)
    surge = {"spec": {"replicas": 2}, "metadata": {"annotations": {SURGED_FOR: "u:1"}}}
    assert world.refuses(PART, path, surge)
    consent = {"spec": {"template": {"metadata": {"annotations": {MOVE_BY_SURGE: "true"}}}}}
    world.admin.send("PATCH", path, consent, kind=MERGE)
    world.write(PART, path, surge)


POD_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "another image": {"spec": {"containers": [{"name": "c", "image": "mine"}]}},
    "more tolerations": {"spec": {"tolerations": [{"operator": "Exists"}]}},
    "another Service, NetworkPolicy and controller": {"metadata": {"labels": {"app": "others"}}},
    "annotations of others": {"metadata": {"annotations": {"kept": None}}},
    "finalizers": {"metadata": {"finalizers": ["example.com/mine"]}},
}


@pytest.mark.parametrize("attack", POD_ATTACKS)
def test_of_a_pod_nothing_changes_but_its_deletion_cost(attack: str, world: Policed) -> None:
    path, body = _pod(world.admin, "web"), POD_ATTACKS[attack]
    if attack == "more tolerations":  # a merge replaces the list, and those of Kubernetes must stay
        there = world.admin.send("GET", path)["spec"].get("tolerations", [])
        body = {"spec": {"tolerations": [*there, {"operator": "Exists"}]}}
    assert world.refuses(PART, path, body)
    world.write(PART, path, {"metadata": {"annotations": {COST: "-5"}}})


@pytest.mark.parametrize(
    "body",
    [
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"status": {"phase": "Failed"}},
        {"status": {"podIP": "192.0.2.1"}},
        {"status": {"nominatedNodeName": "node"}, "metadata": {"labels": {"app": "others"}}},
        {"status": {"nominatedNodeName": "node"}, "metadata": {"annotations": {COST: "1"}}},
    ],
    ids=["not ready", "failed", "another address", "labels", "annotations"],
)
def test_of_a_status_nothing_changes_but_the_nomination(body: dict[str, Any], world: Policed) -> None:
    assert world.refuses(PART, f"{_pod(world.admin, 'web')}/status", body)


def _seen(world: Policed, name: str) -> tuple[MoveSpec, MoveStatus, PodSeen]:
    body = msgspec.json.encode(world.admin.send("GET", _pod(world.admin, name)))
    pod = pod_seen(body)
    move = MoveSpec("default", name, pod.uid, f"Deployment/{name}", "from", "to", surge=True)
    return move, MoveStatus(pod.uid, MoveState.SURGING, datetime.now(UTC), replicas=1), pod


def _read(world: Policed, path: str) -> DeploymentSeen:
    return deployment_seen(msgspec.json.encode(world.admin.send("GET", path)), b'{"items":[]}')


def test_its_own_requests_pass(world: Policed) -> None:
    """A surge that is carried out, one that is withdrawn, one that other clients interfere with; a nomination."""
    move, record, pod = _seen(world, "web")
    path, requests = _deployment(world.admin, "web"), MoveRequests(Sent(world.by(PART)), clock=lambda: 0.0)

    def attempt(made: Any) -> None:
        found = asyncio.run(made)
        assert found.reply is Reply.ACCEPTED, found.why

    attempt(requests.surge(move, record, _read(world, path)))
    assert (_read(world, path).replicas, _read(world, path).surged_for) == (2, move.uid)
    attempt(requests.scale_back(move, record, _read(world, path)))
    assert (_read(world, path).replicas, _read(world, path).surged_for) == (1, "")
    attempt(requests.surge(move, record, _read(world, path)))
    attempt(requests.withdraw(move, record, _read(world, path), pod))
    assert (_read(world, path).replicas, _read(world, path).surged_for) == (1, "")
    attempt(requests.surge(move, record, _read(world, path)))
    world.admin.send("PATCH", path, {"spec": {"replicas": 6}}, kind=MERGE)
    attempt(requests.withdraw(move, record, _read(world, path), pod))
    assert (_read(world, path).replicas, _read(world, path).surged_for) == (6, "")
    world.admin.send("PATCH", path, {"spec": {"replicas": 1}}, kind=MERGE)
    attempt(requests.surge(move, record, _read(world, path)))
    world.admin.send("PATCH", path, {"spec": {"replicas": 0}}, kind=MERGE)
    attempt(requests.withdraw(move, record, _read(world, path), pod))
    assert (_read(world, path).replicas, _read(world, path).surged_for) == (0, "")
    assert asyncio.run(requests.nominate(move, pod)) == ""
    assert world.admin.send("GET", f"{PODS}/web")["status"]["nominatedNodeName"] == "to"


RESERVATION_ATTACKS: Final[dict[str, dict[str, Any]]] = {
    "room for ever": {"spec": {"lifetime": "366d"}},
    "room on any node": {"spec": {"node": None}},
    "a template": {"spec": {"resources": None, "template": {"spec": {}}}},
    "without its label": {"metadata": {"labels": {"a": "b"}}},
    "without a plan": {"metadata": {"ownerReferences": None}},
    "of another owner": {
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}]}
    },
    "under another name": {"metadata": {"name": "release"}},
}


PLANS: Final = "/apis/forecast-scheduler.io/v1alpha1/rebalanceplans"
PLAN: Final = {
    "apiVersion": "forecast-scheduler.io/v1alpha1",
    "kind": "RebalancePlan",
    "metadata": {"name": "night-2026-03-01"},
    "spec": {"createdAt": "2026-03-01T02:00:00Z", "trigger": "night", "mode": "on"},
}


def test_nobody_but_the_rebalancer_makes_a_plan_or_says_how_far_it_is(world: Policed) -> None:
    """Also an account with all rights: what a plan says is acted upon."""

    def admin_is_refused(method: str, path: str, body: dict[str, Any], kind: str) -> bool:
        try:
            world.admin.send(method, path, body, kind=kind)
        except NotApplied as error:
            return "only the rebalancer" in error.message
        return False

    assert eventually(lambda: admin_is_refused("POST", PLANS, {**PLAN, "metadata": {"generateName": "x-"}}, JSON))
    world.write(PART, PLANS, PLAN, JSON, "POST")
    done = {"status": {"phase": "Completed"}}
    assert admin_is_refused("PATCH", f"{PLANS}/night-2026-03-01/status", done, MERGE)
    assert world.write(PART, f"{PLANS}/night-2026-03-01/status", done)["status"] == done["status"]
    world.admin.send("DELETE", f"{PLANS}/night-2026-03-01", {}, kind=JSON)


@pytest.mark.parametrize("attack", RESERVATION_ATTACKS)
def test_it_reserves_room_for_moves_only(attack: str, world: Policed) -> None:
    assert world.refuses(PART, RESERVATIONS, _reservation(**RESERVATION_ATTACKS[attack]), JSON, "POST")


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Available", "node": "elsewhere"},
        {"phase": "Expired"},
        {"phase": "Taken", "node": "to", "takenBy": {"name": "x", "uid": "x"}},
    ],
    ids=["another node", "ends it", "says that a pod has it"],
)
def test_of_the_status_of_its_reservation_it_writes_that_the_room_is_held(status: Any, world: Policed) -> None:
    world.admin.delete(_reservation())
    world.write(PART, RESERVATIONS, _reservation(), JSON, "POST")
    path = f"{RESERVATIONS}/move-u/status"
    assert world.refuses(PART, path, {"status": status})
    world.write(PART, path, {"status": {"phase": "Available", "node": "to"}})
    taken = {"status": {"phase": "Taken", "takenBy": {"name": "x", "uid": "x"}}}
    world.admin.send("PATCH", path, taken, kind=MERGE)
    assert world.refuses(PART, path, {"status": {"phase": "Available", "takenBy": None}}), "it is over"
    world.write(PART, f"{RESERVATIONS}/move-u", {}, JSON, "DELETE")


def test_reservations_of_users_stay_as_they_are(world: Policed) -> None:
    theirs = _reservation("release", metadata={"labels": {"team": "theirs"}})
    world.admin.delete(theirs)
    world.create(RESERVATIONS, theirs)
    assert world.refuses(PART, f"{RESERVATIONS}/release/status", {"status": {"phase": "Available", "node": "to"}})
    assert world.refuses(PART, f"{RESERVATIONS}/release", {}, JSON, "DELETE")
