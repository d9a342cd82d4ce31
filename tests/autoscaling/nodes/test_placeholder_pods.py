"""Buffers on an API server without CapacityBuffers: Deployments of placeholder pods, which give way to real pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from autoscaling.autoscale_settings import BufferKind, BufferOptions
from autoscaling.nodes.buffer_hand import BufferHand
from testing.constants import with_constants
from testing.servers.cluster_objects import ClusterWriter, node, pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.controller_manager.controller_manager import ControllerManager
from testing.waiting import eventually
from tests.autoscaling.conftest import Api, refusal
from tests.autoscaling.nodes.conftest import DEPLOYMENTS, NAMESPACE, POD_TEMPLATES
from tests.autoscaling.nodes.made_up import at, ramp, services_ahead
from tests.autoscaling.sessions import Counting

OPTIONS = with_constants(BufferOptions(), lead=1800, margin=0.0, most_share=1.0)
AHEAD = services_ahead([15], [ramp(10, 30)])
VALLEY, RAMP = at(3), at(8.5)
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def priority_class(api: Api, value: int = -10) -> None:
    api.request(
        "POST",
        _CLASSES,
        {"metadata": {"name": OPTIONS.priority_class}, "value": value, "preemptionPolicy": "Never"},
    )


@pytest.fixture(autouse=True)
def empty(api: Api) -> Iterator[None]:
    yield
    api.request("DELETE", DEPLOYMENTS)
    found = [one["metadata"]["name"] for one in api.items(_CLASSES)]
    if OPTIONS.priority_class in found:
        api.request("DELETE", f"{_CLASSES}/{OPTIONS.priority_class}")


def sizes(api: Api) -> list[int]:
    return [one["spec"]["replicas"] for one in api.items(DEPLOYMENTS)]


def test_placeholders_are_written_resized_and_taken_back(api: Api) -> None:
    priority_class(api)
    hand = BufferHand(api.session, OPTIONS)
    api.run(hand.act(AHEAD, RAMP))
    (made,) = api.items(DEPLOYMENTS)
    spec = made["spec"]["template"]["spec"]
    assert made["spec"]["replicas"] == 5
    assert (spec["priorityClassName"], spec["terminationGracePeriodSeconds"]) == (OPTIONS.priority_class, 0)
    api.run(hand.act(AHEAD, VALLEY))
    assert sizes(api) == [0]
    api.run(hand.act(services_ahead([15], [ramp(10, 30)], cpu=[2.0]), RAMP))
    (made,) = api.items(DEPLOYMENTS)
    assert made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    api.run(hand.retreat())
    assert api.items(DEPLOYMENTS) == []


@pytest.mark.parametrize("is_the_end", [False, True])
def test_a_controller_that_writes_meanwhile_leaves_no_placeholders(api: Api, is_the_end: bool) -> None:
    priority_class(api)
    api.run(BufferHand(api.session, OPTIONS).act(AHEAD, RAMP))
    (made,) = api.items(DEPLOYMENTS)
    path = f"{DEPLOYMENTS}/{made['metadata']['name']}"

    def write() -> None:
        """Between our reading and our write."""
        change = {"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}}}
        api.request("PATCH", path, change, merge=True)

    hand = BufferHand(Counting(api.session, meddle=write), OPTIONS)
    api.run(hand.retreat() if is_the_end else hand.act(AHEAD, VALLEY))
    assert sizes(api) == ([] if is_the_end else [0])


def test_a_controller_that_writes_all_the_time_is_an_error(api: Api) -> None:
    priority_class(api)
    api.run(BufferHand(api.session, OPTIONS).act(AHEAD, RAMP))
    hand = BufferHand(Counting(api.session, conflicts=True), OPTIONS)
    assert "others wrote to them 5 times: try again" in refusal(api.session, hand.retreat())
    assert sizes(api) == [5]


def test_a_deployment_of_others_stays_untouched(api: Api) -> None:
    priority_class(api)
    labels = {"app.kubernetes.io/managed-by": "forecast-scheduler", "app": "scorer"}
    container = {"name": "scorer", "image": "scorer:1"}
    theirs = {
        "metadata": {"name": "scorer", "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": "scorer"}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    made = api.request("POST", DEPLOYMENTS, theirs)
    hand = BufferHand(api.session, OPTIONS)
    api.run(hand.act(AHEAD, RAMP))
    api.run(hand.retreat())
    assert [one["metadata"]["resourceVersion"] for one in api.items(DEPLOYMENTS)] == [
        made["metadata"]["resourceVersion"]
    ]


def test_what_is_needed_and_not_there_is_an_error(api: Api) -> None:
    hand = BufferHand(api.session, OPTIONS)
    assert "there is no PriorityClass forecast-scheduler-buffer" in refusal(api.session, hand.act(AHEAD, RAMP))
    hand = BufferHand(api.session, OPTIONS.replace(kind=BufferKind.CAPACITY_BUFFER))
    assert "the API server has no CapacityBuffer" in refusal(api.session, hand.act(AHEAD, RAMP))
    assert sizes(api) == []


@pytest.mark.parametrize("value", [-11, 0, 5])
def test_a_priority_class_that_cannot_work_is_an_error(api: Api, value: int) -> None:
    priority_class(api, value)
    hand = BufferHand(api.session, OPTIONS)
    assert f"has the value {value}; placeholder pods need -10 to -1" in refusal(api.session, hand.act(AHEAD, RAMP))


def test_placeholders_give_way_to_real_pods(plane: ControlPlane, api: Api) -> None:
    """The real kube-scheduler: a node full of placeholders takes a real pod at once, and the valley leaves it empty."""

    def pods() -> list[dict[str, Any]]:
        return api.items(f"/api/v1/namespaces/{NAMESPACE}/pods")

    def bound() -> int:
        return sum(1 for one in pods() if one["spec"].get("nodeName") and "deletionTimestamp" not in one["metadata"])

    def is_running_real_pod() -> bool:
        found = api.request("GET", "/api/v1/namespaces/default/pods/real")
        return bool(found["spec"].get("nodeName"))

    priority_class(api)
    with ClusterWriter(plane) as writer, ControllerManager(plane), KubeScheduler(plane):
        writer.create(node("a", cpu="5.2"))
        hand = BufferHand(api.session, OPTIONS)
        api.run(hand.act(AHEAD, RAMP))
        assert eventually(lambda: bound() == 5), pods()
        writer.create(pod("real", cpu="2"))
        assert eventually(is_running_real_pod), pods()
        assert eventually(lambda: bound() == 3 and len(pods()) == 5), pods()  # two wait for a new node
        api.run(hand.act(AHEAD, VALLEY))
        assert eventually(lambda: not pods()), pods()
        writer.delete_many([*writer.list_all("pods"), *writer.list_all("nodes")])
    assert api.items(POD_TEMPLATES) == []
