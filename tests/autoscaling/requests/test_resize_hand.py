"""Resizes against a real API server: opt-in only, recorded first, restored by a retreat, safe to kill at any write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pytest

from autoscaling.autoscale_settings import RequestOptions, ResizeOptions
from autoscaling.autoscaler import Hand
from autoscaling.requests.pod_resources import ORIGINAL, PROOF, RESIZE_LABEL, RESIZED_LABEL
from autoscaling.requests.proven_records import SECRET, RecordKey, read_key
from autoscaling.requests.resize_hand import ResizeHand
from base.errors import ForecastError
from base.excluded import ExcludedOptions
from base.local_hours import ChangeWindows
from forecast.hot_share import HOT_SHARE
from forecast.service_key import ServiceKey
from kube.client.kubernetes_client import api_client
from kube.objects.quantity import parse_quantity
from kube.session.api_session import ApiSession
from kube.session.session_calls import Requests
from testing.constants import with_constants
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from tests.autoscaling.requests.made_up_ahead import RAMP, at, evening_ahead
from tests.autoscaling.sessions import Counting, Killed

AHEAD = evening_ahead((ServiceKey("default", "Deployment", "cart"), ServiceKey("own", "Deployment", "cart")))
VALLEY, BEFORE_RAMP = at(3), at(RAMP - 0.1)
FREE: Mapping[str, tuple[float, float]] = {"a": (50.0, 2.0**40)}
ASKS = {RESIZE_LABEL: "true"}
LONG = 60


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

    def hand(
        self,
        recorder: Requests | None = None,
        *,
        free: Mapping[str, tuple[float, float]] = FREE,
        excluded: ExcludedOptions = ExcludedOptions(),  # noqa: B008 - frozen
        changes: ChangeWindows = ChangeWindows(),  # noqa: B008 - frozen
        **options: Any,
    ) -> ResizeHand:
        """A new one, as after a restart."""
        asked = RequestOptions(
            resize=with_constants(ResizeOptions(), **{"enabled": True, "service_share": 1.0, **options})
        )
        return ResizeHand(
            recorder or self.session, asked, free=lambda: free, hot=HOT_SHARE, excluded=excluded, changes=changes
        )

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
        for name in ("own", "forecast-scheduler"):
            writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        writer.create(node("a"))
        session.submit(read_key(session, "forecast-scheduler", create=True)).result(LONG)
        try:
            yield Site(plane, writer, session)
        finally:
            session.stop()


def test_pods_shrink_in_the_valley_grow_before_the_ramp_and_are_restored(site: Site) -> None:
    site.pods(2)
    hand = site.hand()
    site.act(hand, VALLEY)
    assert site.cores() == site.cores("cart-default-1") == pytest.approx(0.2)
    recorder = Counting(site.session)
    site.act(site.hand(recorder), VALLEY)
    assert not recorder.writes, "nothing is written where nothing changes"
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


def test_a_namespace_asks_for_its_pods_and_a_pod_can_say_no(site: Site) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own", "labels": ASKS}}
    site.writer.patch(space, {"metadata": {"labels": ASKS}})
    site.pods(1, labels={})
    (one,) = site.pods(1, namespace="own", labels={})
    site.act(site.hand(), VALLEY)
    assert site.cores() == 1.0 and site.marks() == (None, None)
    assert site.cores("cart-own-0") == pytest.approx(0.2)
    site.writer.patch(one, {"metadata": {"labels": {RESIZE_LABEL: "false"}}})
    site.act(site.hand(), VALLEY)
    assert site.cores("cart-own-0") == 1.0


def test_a_pod_that_asks_no_more_and_all_once_it_is_switched_off_are_restored(site: Site) -> None:
    (one,) = site.pods()
    site.act(site.hand(), VALLEY)
    site.act(site.hand(enabled=False), VALLEY)
    assert site.cores() == 1.0 and site.marks() == (None, None)
    site.act(site.hand(), VALLEY)
    site.writer.patch(one, {"metadata": {"labels": {RESIZE_LABEL: None}}})
    site.act(site.hand(), VALLEY)
    assert site.cores() == 1.0
    assert site.marks() == (None, None)


def test_outside_of_change_windows_pods_are_not_resized_yet_restored(site: Site) -> None:
    (one,) = site.pods()
    closed = ChangeWindows.of((f"{(_hour(VALLEY) + 2) % 24:02}:00-{(_hour(VALLEY) + 3) % 24:02}:00",))
    hand = site.hand(changes=closed)
    site.act(hand, VALLEY)
    assert site.cores() == 1.0 and hand.kept == {f"it is outside of {closed}": 1}
    site.act(site.hand(), VALLEY)
    assert site.cores() == pytest.approx(0.2)
    site.writer.patch(one, {"metadata": {"labels": {RESIZE_LABEL: None}}})
    site.act(site.hand(changes=closed), VALLEY)
    assert site.cores() == 1.0 and site.marks() == (None, None)


def _hour(moment: float) -> int:
    return datetime.fromtimestamp(moment, AHEAD.horizon.zone).hour


def test_pods_of_an_excluded_service_are_not_resized_and_those_that_were_are_restored(site: Site) -> None:
    site.pods()
    site.act(site.hand(), VALLEY)
    assert site.cores() == pytest.approx(0.2)
    hand = site.hand(excluded=ExcludedOptions(services=("default/Deployment/cart",)))
    site.act(hand, VALLEY)
    assert site.cores() == 1.0 and site.marks() == (None, None)
    site.act(hand, VALLEY)
    assert site.cores() == 1.0 and hand.kept["excluded.services has default/Deployment/cart"] == 1


@pytest.mark.parametrize("dies_at", range(3))
def test_killed_after_any_write_the_next_leader_continues_or_restores(site: Site, dies_at: int) -> None:
    site.pods(2)
    assert site.killed(site.hand(Counting(site.session, dies_at=dies_at, after=True)), VALLEY)
    site.act(site.hand(), VALLEY)
    assert site.cores() == site.cores("cart-default-1") == pytest.approx(0.2)
    assert site.killed(site.hand(Counting(site.session, dies_at=dies_at, after=True)), None)
    site.retreat(site.hand())
    assert site.cores() == site.cores("cart-default-1") == 1.0
    assert site.killed(site.hand(Counting(site.session, dies_at=dies_at, after=True)), VALLEY)
    site.retreat(site.hand())
    assert site.cores() == site.cores("cart-default-1") == 1.0
    assert site.marks() == site.marks("cart-default-1") == (None, None)


def test_a_pod_that_changed_meanwhile_is_left_for_the_next_step_and_a_retreat_tries_again(site: Site) -> None:
    (one,) = site.pods()
    numbers = iter("12")

    def meddling() -> Counting:
        change = {"metadata": {"annotations": {"other": next(numbers)}}}
        return Counting(site.session, meddle=lambda: site.writer.patch(one, change))

    hand = site.hand(meddling())
    site.act(hand, VALLEY)
    assert site.cores() == 1.0
    assert hand.done["conflict"] == 1
    site.act(hand, VALLEY)
    assert site.cores() == pytest.approx(0.2)
    site.retreat(site.hand(meddling()))
    assert site.cores() == 1.0 and site.marks() == (None, None)


def test_another_pod_of_the_same_name_is_left_alone(site: Site) -> None:
    (one,) = site.pods()

    def replaced() -> None:
        site.writer.delete(one)
        site.writer.create(pod("cart-default-0", cpu="1", labels={}, node="a"))

    hand = site.hand(Counting(site.session, meddle=replaced))
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


def test_a_node_without_support_for_resizes_is_not_asked_again_at_once(site: Site) -> None:
    site.pods(1, status=running())
    recorder = Counting(site.session)
    hand = site.hand(recorder)
    site.act(hand, VALLEY)
    assert hand.done["refused"] == 1
    n_written = recorder.writes
    site.act(hand, VALLEY)
    assert recorder.writes == n_written
    site.retreat(hand)
    assert site.marks() == (None, None)


def test_a_pod_that_the_cluster_refuses_keeps_no_other_from_its_turn(site: Site) -> None:
    site.pods(2)
    refusing = Counting(site.session, refuses="/cart-default-0")
    hand = site.hand(refusing)
    with pytest.raises(ForecastError, match="exceeded quota"):
        site.act(hand, VALLEY)
    assert site.cores("cart-default-1") == pytest.approx(0.2)
    written = refusing.writes
    site.act(hand, VALLEY)
    assert refusing.writes == written, "it is not asked again at once"
    site.act(site.hand(), VALLEY)
    with pytest.raises(ForecastError, match=r"1 pods keep our requests for now, such as cart-default-0 .*quota"):
        site.retreat(site.hand(refusing))
    assert site.cores() == pytest.approx(0.2) and site.cores("cart-default-1") == 1.0
    site.retreat(site.hand())
    assert site.cores() == 1.0


FIVE_CORES: Final = json.dumps({"main": {"cpu": 5.0, "memory": 2.0**30}})
PROOF_OF_OTHERS: Final = RecordKey(b"of a tenant").proof("uid", FIVE_CORES)


@pytest.mark.parametrize("labels", [{}, ASKS], ids=["never asked", "asks"])
@pytest.mark.parametrize("record", [FIVE_CORES, '{"main":{"cpu":1e308}}'])
def test_a_record_that_a_user_wrote_is_reported_and_neither_raises_nor_stops_anything(
    site: Site, labels: dict[str, str], record: str
) -> None:
    site.pods(labels={**labels, RESIZED_LABEL: "true"}, annotations={ORIGINAL: record, PROOF: PROOF_OF_OTHERS})
    site.pods(namespace="own")
    before = site.stored()
    hand = site.hand()
    site.act(hand, VALLEY)
    assert site.cores("cart-own-0") == pytest.approx(0.2), "the honest one"
    assert hand.foreign == {"default/cart-default-0"}
    site.retreat(hand)
    assert site.cores("cart-own-0") == 1.0
    assert site.stored()["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"], "nothing is written"


def test_a_record_counts_in_its_own_pod_only(site: Site) -> None:
    site.pods(1)
    site.act(site.hand(), VALLEY)
    stolen = {key: site.stored()["metadata"]["annotations"][key] for key in (ORIGINAL, PROOF)}
    site.pods(1, namespace="own", cpu="500m", annotations=stolen, labels={RESIZED_LABEL: "true"})
    site.retreat(hand := site.hand())
    assert (site.cores(), site.cores("cart-own-0")) == (1.0, 0.5)
    assert hand.foreign == {"own/cart-own-0"}


def test_nothing_is_restored_beyond_the_room_of_its_node(site: Site) -> None:
    site.pods(2)
    site.act(site.hand(), VALLEY)
    hand = site.hand(free={"a": (1.0, 0.0)})
    with pytest.raises(ForecastError, match=r"1 pods keep our requests .*\(its node has no room for its original"):
        site.retreat(hand)
    assert site.cores() == 1.0
    assert site.cores("cart-default-1") == pytest.approx(0.4, abs=0.002), "as far as there is room"
    site.act(site.hand(), VALLEY)
    with pytest.raises(ForecastError, match="2 pods keep"):
        site.retreat(site.hand(free={}))
    site.retreat(site.hand())
    assert site.cores() == site.cores("cart-default-1") == 1.0


def test_without_the_key_nothing_is_written(site: Site) -> None:
    site.pods()
    path = f"/api/v1/namespaces/forecast-scheduler/secrets/{SECRET}"
    assert site.session.submit(site.session.request("DELETE", path, None, seconds=LONG)).result(LONG).is_success
    with pytest.raises(ForecastError, match=rf"needs create on secrets, forecast-scheduler/{SECRET}"):
        site.act(site.hand(Counting(site.session, refuses="/secrets")), VALLEY)
    assert site.cores() == 1.0 and site.marks() == (None, None)
    site.act(site.hand(), VALLEY)
    assert site.cores() == pytest.approx(0.2)
