"""What a Reservation says: its room as a stand-in, its owners, and until when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.objects.constraints import Operator, Requirement
from placement.pod_groups.group_of_pod import group_of
from placement.reservations.reservation import HIGHEST_PRIORITY, Reservation, ReservationPhase, Situation, status_change
from placement.reservations.watched_reservations import WATCHED_RESERVATIONS

CREATED = 1_800_000_000.0


def reservation(spec: dict[str, Any] | None = None, name: str = "release", **status: Any) -> Reservation:
    """One of shop for pods of cart, as the watch hands it in."""
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2027-01-15T08:00:00Z",
    }
    given = {"owners": {"matchLabels": {"app": "cart"}}, "resources": {"cpu": "2", "memory": "4Gi"}}
    body = {"metadata": metadata, "spec": given | (spec or {}), "status": status}
    return WATCHED_RESERVATIONS.decoded(json.dumps(body).encode())[0]


def of_template(template: dict[str, Any], **spec: Any) -> Reservation:
    return reservation({"resources": None, "template": template, **spec})


AVAILABLE: dict[str, Any] = {"phase": "Available", "node": "a", "since": "2027-01-15T08:00:05Z"}


def test_bare_resources_are_the_requests_of_a_pod() -> None:
    one = reservation()
    assert one.shape.requests == {"cpu": 2, "memory": 4 * 2**30}
    assert (one.shape.uid, one.shape.namespace, one.shape.node) == ("uid-release", "shop", "")
    assert one.until == CREATED + 24 * 3600
    assert one.phase is ReservationPhase.PENDING
    assert one.room() is None


def test_its_room_is_held_on_the_node_of_its_status() -> None:
    room = reservation({"lifetime": "1h30m"}, **AVAILABLE, devices={"forecast-scheduler.io/gpu-index": "3"}).room()
    assert room is not None
    assert (room.stand_in.node, room.since, room.until) == ("a", CREATED + 5, CREATED + 5400)
    assert room.stand_in.annotations == {"forecast-scheduler.io/gpu-index": "3"}
    assert room.owners.requirements == (Requirement("app", Operator.IN, ("cart",)),)


def test_a_stand_in_is_nothing_that_may_be_evicted_or_that_can_be_taken_for_a_pod() -> None:
    room = reservation(**AVAILABLE).room()
    assert room is not None
    assert room.stand_in.stands_in
    assert room.stand_in.priority == HIGHEST_PRIORITY
    assert ":" in room.stand_in.name, "no pod can have the name"
    assert room.stand_in.owner.kind == "Reservation"


def test_of_a_template_all_counts_that_decides_about_the_node() -> None:
    annotations = {"forecast-scheduler.io/policy": "spread", "forecast-scheduler.io/min-member": "4"}
    labels = {"app": "train", "scheduling.x-k8s.io/pod-group": "train"}
    container = {
        "name": "main",
        "image": "i",
        "ports": [{"hostPort": 80, "containerPort": 80}],
        "resources": {"requests": {"cpu": "8"}},
    }
    shape = of_template(
        {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": {
                "nodeSelector": {"pool": "batch"},
                "tolerations": [{"key": "batch", "operator": "Exists"}],
                "containers": [container],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                "schedulingGates": [{"name": "a-gate"}],
                "priority": 7,
                "nodeName": "b",
            },
        }
    ).shape
    assert shape.requests == {"cpu": 8}
    assert shape.constraints.node_selector == (("pool", "batch"),)
    assert len(shape.constraints.tolerations) == 1
    assert shape.annotations == {"forecast-scheduler.io/policy": "spread"}
    assert (group_of(shape), shape.labels) == (None, {"app": "train"})
    assert (shape.volumes, shape.host_ports, shape.gates, shape.node, shape.priority) == ((), (), (), "", 0)
    assert not shape.may_preempt


@pytest.mark.parametrize("has_terms", [False, True])
def test_the_node_is_added_to_each_term(has_terms: bool) -> None:
    expression = {"key": "zone", "operator": "In", "values": ["z"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}, {}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    spec = {"affinity": affinity if has_terms else {}}
    terms = of_template({"spec": spec}, node="c").shape.constraints.required_node_terms
    name = Requirement("metadata.name", Operator.IN, ("c",))
    assert terms is not None
    assert [term.fields for term in terms] == [(name,)], "a term that matches nothing has to go on doing so"
    assert [len(term.expressions) for term in terms] == [int(has_terms)]


UNREADABLE: dict[str, dict[str, Any]] = {
    "spec.lifetime": {"lifetime": "soon"},
    "at most 366d": {"lifetime": "999999999h"},
    "'a lot' cannot be read": {"resources": {"cpu": "a lot"}},
    "beyond 1e30": {"resources": {"cpu": "1e99999"}},
    "node": {"node": "../../x"},
    "owners": {"owners": None},
    "containers": {"resources": None, "template": {"spec": {"containers": 7}}},
    "template": {"resources": None, "template": [[]]},
}


@pytest.mark.parametrize("why", UNREADABLE)
def test_what_cannot_be_read_holds_no_room_and_its_status_says_why(why: str) -> None:
    one = reservation(UNREADABLE[why], **AVAILABLE)
    assert why in one.problem and one.room() is None
    change = status_change(one, Situation(), CREATED)
    assert change is not None and change["phase"] == "Pending" and why in change["message"]
    said = reservation(UNREADABLE[why], phase="Pending", message=change["message"])
    assert status_change(said, Situation(why_waiting="no room"), CREATED) is None
    over = status_change(said, Situation(), CREATED + 24 * 3600)
    assert over is not None and over["phase"] == "Expired"


def test_a_status_that_cannot_be_read_counts_as_missing() -> None:
    one = reservation(phase="Free", node=7)
    assert (one.problem, one.phase, one.node) == ("", ReservationPhase.PENDING, "")
