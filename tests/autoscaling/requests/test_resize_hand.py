"""Resizes against a real API server: opt-in only, recorded first, restored by a retreat, safe to kill at any write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from autoscaling.hand import Hand
from autoscaling.requests.options import RequestOptions, ResizeOptions
from autoscaling.requests.pod_resources import ORIGINAL, RESIZE_LABEL, RESIZED_LABEL
from autoscaling.requests.resize_hand import ResizeHand
from forecast.errors import ForecastError
from forecast.service_key import ServiceKey
from kube.client.api_answer import Answer
from kube.client.kubernetes_client import api_client
from kube.objects.quantity import parse_quantity
from kube.session.api_session import ApiSession
from kube.session.request_retries import Requests
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from tests.autoscaling.requests.made_up_ahead import RAMP, at, evening_ahead

AHEAD = evening_ahead((ServiceKey("default", "Deployment", "cart"), ServiceKey("own", "Deployment", "cart")))
VALLEY, BEFORE_RAMP = at(3), at(RAMP - 0.1)
FREE: Mapping[str, tuple[float, float]] = {"a": (50.0, 2.0**40)}
ASKS = {RESIZE_LABEL: "true"}
LONG = 60


class Killed(BaseException):
    """As if by SIGKILL: no code of ours runs after it."""


@dataclass
class Recorder:
    """A session that notes what is written, and ends the process right after the write of a number.

    before : called before each write of this number
    """

    session: ApiSession
    kill_after: int | None = None
    meddle: Any = None
    written: list[str] = field(default_factory=list)

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> Answer:
        if method == "PATCH":
            if self.meddle is not None:
                meddle, self.meddle = self.meddle, None
                await asyncio.to_thread(meddle)
            self.written.append(path)
        answer = await self.session.request(method, path, body, content_type=content_type, seconds=seconds)
        if method == "PATCH" and len(self.written) == self.kill_after:
            raise Killed
        return answer


def resizable() -> Manifest:
    """The status of a running pod whose kubelet can resize it: it says what its container got."""
    status = running()
    status["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return status


@dataclass
class Site:
    plane: ControlPlane
    writer: ClusterWriter
    session: ApiSession

    def pods(self, n: int = 1, *, namespace: str = "default", **changed: Any) -> list[Manifest]:
        """Running pods of the Deployment cart on node a, with a request of one core."""
        owner = self.writer.create(replica_set(f"cart-{namespace}", namespace=namespace, deployment="cart"))
        spec = {"cpu": "1", "memory": "1Gi", "labels": ASKS, "node": "a", "status": resizable()} | changed
        labels = {"pod-template-hash": namespace} | spec.pop("labels")
        return self.writer.create_many(
            pod(f"cart-{namespace}-{i}", namespace=namespace, owner=owner, labels=labels, **spec) for i in range(n)
        )

    def stored(self, name: str = "cart-default-0") -> Manifest:
        return next(one for one in self.writer.list_all("pods") if one["metadata"]["name"] == name)

    def cores(self, name: str = "cart-default-0") -> float:
        return parse_quantity(self.stored(name)["spec"]["containers"][0]["resources"]["requests"]["cpu"])

    def marks(self, name: str = "cart-default-0") -> tuple[str | None, str | None]:
        metadata = self.stored(name)["metadata"]
        return metadata.get("annotations", {}).get(ORIGINAL), metadata.get("labels", {}).get(RESIZED_LABEL)

    def hand(self, recorder: Requests | None = None, **options: Any) -> ResizeHand:
        """A new one, as after a restart."""
        asked = RequestOptions(resize=ResizeOptions(**{"enabled": True, "service_share": 1.0, **options}))
        return ResizeHand(recorder or self.session, asked, free=lambda: FREE)

    def act(self, hand: Hand, now: float) -> None:
        self.session.submit(hand.act(AHEAD, now)).result(LONG)

    def retreat(self, hand: Hand) -> None:
        self.session.submit(hand.retreat()).result(LONG)

    def killed(self, hand: Hand, now: float | None) -> bool:
        """Run a step (None = a retreat) that may be killed; whether it was."""

        async def dying() -> bool:
            try:
                await (hand.retreat() if now is None else hand.act(AHEAD, now))
            except Killed:
                return True
            return False

        return self.session.submit(dying()).result(LONG)


@pytest.fixture
def site() -> Iterator[Site]:
    with control_plane() as plane, ClusterWriter(plane) as writer:
        session = ApiSession(api_client(plane.kubeconfig))
        session.start()
        writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own"}})
        writer.create(node("a"))
        try:
            yield Site(plane, writer, session)
        finally:
            session.stop()


def test_pods_shrink_in_the_valley_grow_before_the_ramp_and_are_restored(site: Site) -> None:
    site.pods(2)
    hand = site.hand()
    site.act(hand, VALLEY)
    assert site.cores() == site.cores("cart-default-1") == pytest.approx(0.2)
    original, label = site.marks()
    assert original is not None
    assert json.loads(original) == {"main": {"cpu": 1.0, "memory": 2.0**30}}
    assert label == "true"
    assert site.stored()["status"]["qosClass"] == "Burstable"
    site.act(hand, BEFORE_RAMP)
    assert site.cores() == pytest.approx(1.0)
    site.act(hand, VALLEY)
    site.retreat(hand)
    site.retreat(hand)
    assert site.cores() == pytest.approx(1.0)
    assert site.marks() == (None, None)
    assert hand.done["restored"] == 2


def test_nothing_is_written_where_nothing_changes(site: Site) -> None:
    site.pods(2)
    site.act(site.hand(), VALLEY)
    recorder = Recorder(site.session)
    site.act(site.hand(recorder), VALLEY)
    assert not recorder.written


def test_only_pods_that_ask_are_resized(site: Site) -> None:
    site.pods(1, labels={})
    site.pods(1, namespace="own", labels={RESIZE_LABEL: "false"})
    site.act(site.hand(), VALLEY)
    assert site.cores() == site.cores("cart-own-0") == 1.0
    assert site.marks() == (None, None)


def test_a_namespace_asks_for_its_pods(site: Site) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own", "labels": ASKS}}
    site.writer.patch(space, {"metadata": {"labels": ASKS}})
    site.pods(1, labels={})
    site.pods(1, namespace="own", labels={})
    site.act(site.hand(), VALLEY)
    assert site.cores() == 1.0
    assert site.cores("cart-own-0") == pytest.approx(0.2)


def test_a_pod_that_asks_no_more_is_restored(site: Site) -> None:
    (one,) = site.pods()
    site.act(site.hand(), VALLEY)
    site.writer.patch(one, {"metadata": {"labels": {RESIZE_LABEL: None}}})
    site.act(site.hand(), VALLEY)
    assert site.cores() == 1.0
    assert site.marks() == (None, None)


def test_switched_off_it_takes_its_resizes_back(site: Site) -> None:
    site.pods()
    site.act(site.hand(), VALLEY)
    site.act(site.hand(enabled=False), VALLEY)
    assert site.cores() == 1.0
    assert site.marks() == (None, None)


@pytest.mark.parametrize("kill_after", [1, 2, 3])
@pytest.mark.parametrize("then", ["act", "retreat"])
def test_killed_after_any_write_the_next_leader_continues_or_restores(site: Site, kill_after: int, then: str) -> None:
    site.pods(2)
    assert site.killed(site.hand(Recorder(site.session, kill_after)), VALLEY)
    if then == "act":
        site.act(site.hand(), VALLEY)
        assert site.cores() == site.cores("cart-default-1") == pytest.approx(0.2)
    site.retreat(site.hand())
    assert site.cores() == site.cores("cart-default-1") == 1.0
    assert site.marks() == site.marks("cart-default-1") == (None, None)


@pytest.mark.parametrize("kill_after", [1, 2, 3])
def test_a_retreat_killed_after_any_write_is_completed_by_the_next(site: Site, kill_after: int) -> None:
    site.pods(2)
    site.act(site.hand(), VALLEY)
    assert site.killed(site.hand(Recorder(site.session, kill_after)), None)
    site.retreat(site.hand())
    assert site.cores() == site.cores("cart-default-1") == 1.0
    assert site.marks() == site.marks("cart-default-1") == (None, None)


def test_a_pod_that_changed_meanwhile_is_left_for_the_next_step(site: Site) -> None:
    (one,) = site.pods()
    recorder = Recorder(
        site.session, meddle=lambda: site.writer.patch(one, {"metadata": {"annotations": {"other": "1"}}})
    )
    hand = site.hand(recorder)
    site.act(hand, VALLEY)
    assert site.cores() == 1.0
    assert hand.done["conflict"] == 1
    site.act(hand, VALLEY)
    assert site.cores() == pytest.approx(0.2)


def test_a_retreat_gets_over_conflicts(site: Site) -> None:
    (one,) = site.pods()
    site.act(site.hand(), VALLEY)
    recorder = Recorder(
        site.session, meddle=lambda: site.writer.patch(one, {"metadata": {"annotations": {"other": "1"}}})
    )
    site.retreat(site.hand(recorder))
    assert site.cores() == 1.0
    assert site.marks() == (None, None)


def test_another_pod_of_the_same_name_is_left_alone(site: Site) -> None:
    (one,) = site.pods()

    def replaced() -> None:
        site.writer.delete(one)
        site.writer.create(pod("cart-default-0", cpu="1", labels={}, node="a"))

    hand = site.hand(Recorder(site.session, meddle=replaced))
    site.act(hand, VALLEY)
    assert site.cores() == 1.0
    assert site.marks() == (None, None)


def test_guaranteed_and_best_effort_pods_keep_their_requests(site: Site) -> None:
    site.pods(1, limits={"cpu": "1", "memory": "1Gi"})
    site.pods(1, namespace="own", requests={})
    hand = site.hand()
    site.act(hand, VALLEY)
    assert site.cores() == 1.0
    assert site.stored()["status"]["qosClass"] == "Guaranteed"
    assert sum(n for why, n in hand.kept.items() if "QoS class" in why) == 2


def test_a_pod_does_not_become_guaranteed(site: Site) -> None:
    site.pods(1, limits={"cpu": "600m", "memory": "1Gi"}, cpu="300m")
    site.act(site.hand(most=4.0), BEFORE_RAMP)
    assert site.cores() == pytest.approx(0.3)
    assert site.stored()["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize("reason", ["Infeasible", "Deferred"])
def test_a_resize_that_its_node_refused_is_not_repeated_at_once(site: Site, reason: str) -> None:
    (one,) = site.pods()
    site.act(site.hand(), VALLEY)
    condition = {
        "type": "PodResizePending",
        "status": "True",
        "reason": reason,
        "message": "no room",
        "lastTransitionTime": "2026-09-14T17:50:00Z",
    }
    site.writer.patch_status(one, {"conditions": [condition]})
    hand = site.hand()
    site.act(hand, BEFORE_RAMP)
    assert site.cores() == pytest.approx(0.2)
    assert hand.kept["its node could not carry out the last resize"] == 1
    site.act(site.hand(), at(RAMP + 1))
    assert site.cores() == pytest.approx(1.0)


def test_without_the_api_server_it_says_so_and_is_tried_again(site: Site) -> None:
    site.pods()
    hand = site.hand()
    site.act(hand, VALLEY)
    site.plane.api_server.kill()
    with pytest.raises(ForecastError, match="no answer"):
        site.act(hand, BEFORE_RAMP)
    with pytest.raises(ForecastError, match="no answer"):
        site.retreat(hand)
    site.plane.api_server.start()
    site.act(hand, BEFORE_RAMP)
    assert site.cores() == pytest.approx(1.0)
    site.retreat(hand)
    assert site.marks() == (None, None)


def test_a_node_without_support_for_resizes_is_not_asked_again_at_once(site: Site) -> None:
    site.pods(1, status=running())
    recorder = Recorder(site.session)
    hand = site.hand(recorder)
    site.act(hand, VALLEY)
    assert hand.done["refused"] == 1
    n_written = len(recorder.written)
    site.act(hand, VALLEY)
    assert len(recorder.written) == n_written
    site.retreat(hand)
    assert site.marks() == (None, None)


def test_a_replica_that_does_not_lead_writes_nothing(site: Site) -> None:
    site.pods()
    follower = ApiSession(api_client(site.plane.kubeconfig), may_write=lambda: False)
    follower.start()
    try:
        options = RequestOptions(resize=ResizeOptions(enabled=True))
        hand = ResizeHand(follower, options, free=lambda: FREE)
        with pytest.raises(ForecastError, match="does not lead"):
            follower.submit(hand.act(AHEAD, VALLEY)).result(LONG)
    finally:
        follower.stop()
    assert site.cores() == 1.0
    assert site.marks() == (None, None)


@dataclass
class Refusing:
    """A session with an API server whose quota refuses every write to one pod."""

    session: ApiSession
    pod: str
    written: int = 0

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "", seconds: float
    ) -> Answer:
        if method == "PATCH" and f"/{self.pod}" in path:
            self.written += 1
            return Answer(403, text="exceeded quota")
        return await self.session.request(method, path, body, content_type=content_type, seconds=seconds)


def test_a_pod_that_the_cluster_refuses_keeps_no_other_from_its_turn(site: Site) -> None:
    site.pods(2)
    refusing = Refusing(site.session, "cart-default-0")
    hand = site.hand(refusing)
    with pytest.raises(ForecastError, match="exceeded quota"):
        site.act(hand, VALLEY)
    assert site.cores("cart-default-1") == pytest.approx(0.2)
    site.act(hand, VALLEY)
    assert refusing.written == 1, "it is not asked again at once"
    site.act(site.hand(), VALLEY)
    with pytest.raises(ForecastError, match=r"1 pods keep our requests for now, such as cart-default-0 .*quota"):
        site.retreat(site.hand(refusing))
    assert site.cores() == pytest.approx(0.2) and site.cores("cart-default-1") == 1.0
    site.retreat(site.hand())
    assert site.cores() == 1.0
