"""A Reservation gets its node by a patch of its status; what the answer means, and what becomes of lost ones."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import Any

import pytest

from cluster.assuming_cluster import AssumingCluster
from kube.binding.binding_steps import BindingResult, BindingVerdict
from kube.client.api_answer import NO_ANSWER, ApiAnswer
from kube.objects.objects import PodInfo
from placement.reservations.reservations import Reservations
from placement.status import Code
from scheduler.binding.outcome import BindStatus, bind_status, outcome_of_binding
from scheduler.binding.reservation_binder import ReservationBinder
from scorer.options import ScorerOptions
from testing.objects import pod_info
from tests.placement.reservations.test_decoding import AVAILABLE, CREATED, reservation

PATH = "/apis/forecast-scheduler.io/v1alpha1/namespaces/shop/reservations"


class OfPods:
    """Binds pods, and remembers which."""

    name = "OfPods"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def bind(self, pod: PodInfo, node: str) -> BindStatus:
        self.asked.append(pod.name)
        return bind_status(self.name, BindingResult(BindingVerdict.BOUND))

    async def look(self, pod: PodInfo, node: str) -> BindStatus:
        return await self.bind(pod, node)


class World:
    """answers: what the API server says, request by request."""

    def __init__(self, *answers: ApiAnswer) -> None:
        cluster = AssumingCluster(ScorerOptions(), now=CREATED)
        self.answers, self.sent = list(answers), list[tuple[str, str, Any]]()
        self.now = CREATED + 60
        self.reservations = Reservations(lambda: nullcontext(cluster), clock=lambda: self.now, places=["ours"])
        self.reservations.put(reservation({"schedulerName": "ours"}))
        self.of_pods = OfPods()
        self.binder = ReservationBinder(
            self,
            self.reservations,
            self.of_pods,
            devices_of=lambda pod, node: {"forecast-scheduler.io/gpu-index": "1"},
            clock=lambda: self.now,
        )

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> ApiAnswer:
        self.sent.append((method, path, None if body is None else json.loads(body)))
        return self.answers.pop(0)

    def bind(self, pod: PodInfo | None = None, *, look: bool = False) -> Any:
        pod = pod or reservation().shape
        return asyncio.run(self.binder.look(pod, "a") if look else self.binder.bind(pod, "a"))


def listed(**status: Any) -> ApiAnswer:
    one = {
        "metadata": {"name": "release", "namespace": "shop", "uid": "uid-release", "resourceVersion": "8"},
        "spec": {"owners": {"matchLabels": {"app": "cart"}}, "resources": {"cpu": "2"}},
        "status": status,
    }
    return ApiAnswer(200, json.dumps({"metadata": {"resourceVersion": "9"}, "items": [one] if status else []}).encode())


def test_its_status_gets_the_node_and_the_cards_on_top_of_what_was_read() -> None:
    world = World(ApiAnswer(200))
    assert world.bind().is_success
    (method, path, body) = world.sent[0]
    assert (method, path) == ("PATCH", f"{PATH}/release/status")
    assert body == {
        "metadata": {"resourceVersion": "7"},
        "status": {
            "phase": "Available",
            "node": "a",
            "since": "2027-01-15T08:01:00Z",
            "message": None,
            "devices": {"forecast-scheduler.io/gpu-index": "1"},
        },
    }
    assert not world.of_pods.asked


@pytest.mark.parametrize("look", [False, True])
def test_pods_are_left_to_the_plugin_that_binds_them(look: bool) -> None:
    world = World()
    assert world.bind(pod_info("cart-1"), look=look).is_success
    assert world.of_pods.asked == ["cart-1"]
    assert not world.sent


@pytest.mark.parametrize(
    ("answer", "ends"),
    [(ApiAnswer(409, text="modified"), "failed"), (ApiAnswer(404), "gone"), (ApiAnswer(403, text="no"), "failed")],
    ids=["another version", "gone", "forbidden"],
)
def test_a_refusal_leaves_it_without_a_node(answer: ApiAnswer, ends: str) -> None:
    outcome = outcome_of_binding(World(answer).bind())
    assert (outcome.ending.value, outcome.is_gone) == ("failed", ends == "gone")


@pytest.mark.parametrize(
    ("now", "code", "is_gone"),
    [
        (listed(**AVAILABLE), Code.SUCCESS, False),
        (listed(phase="Pending"), Code.UNSCHEDULABLE, False),
        (listed(phase="Available", node="b"), Code.UNSCHEDULABLE, False),
        (listed(phase="Expired"), Code.UNSCHEDULABLE, True),
        (listed(), Code.UNSCHEDULABLE, True),
        (ApiAnswer(NO_ANSWER), Code.ERROR, False),
    ],
    ids=["written", "not written", "elsewhere", "over", "gone", "no answer again"],
)
def test_after_no_answer_what_is_there_decides(now: ApiAnswer, code: Code, is_gone: bool) -> None:
    world = World(ApiAnswer(NO_ANSWER), now)
    status = world.bind()
    assert status.code is code
    assert outcome_of_binding(status).is_gone is is_gone
    assert world.sent[1][:2] == ("GET", f"{PATH}?fieldSelector=metadata.name%3Drelease")


@pytest.mark.parametrize("end", ["deleted", "expired", "taken"])
def test_nothing_is_sent_for_what_waits_no_more(end: str) -> None:
    world = World()
    if end == "deleted":
        world.reservations.delete(reservation())
    elif end == "expired":
        world.now += 24 * 3600
    else:
        world.reservations.put(reservation(**(AVAILABLE | {"phase": "Taken"})))
    assert outcome_of_binding(world.bind()).is_gone
    assert not world.sent
