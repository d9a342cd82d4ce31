"""The webhook releases what no advisor does, and holds only what it could release. tests/advise has processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest

from admission.advice.advisor_lease import AdvisorLease
from admission.advice.holding import Holding, NotHeld
from admission.advice.quota_namespaces import QuotaNamespaces
from admission.advice.second_hands import HoldingTimes, SecondHands, longest_hold
from admission.webhook_settings import AdviceGateOptions
from base.excluded import ExcludedOptions
from kube.client.api_answer import ApiAnswer, answered
from placement.gate_exemptions import ADVICE
from placement.gate_removal import UNBOUND_PODS, PodWithGates
from tenants.elastic_quota import ElasticQuota
from testing.settable_clock import SettableClock
from tests.advisor.made_up import INVALID, MISSING, OTHER_GATE, Session

CONFLICT = answered(409, b'{"message":"the object has been modified"}')


class StubLease(AdvisorLease):
    """An advisor that was last alive at `seen`."""

    def __init__(self, clock: SettableClock[float]) -> None:
        self.clock, self.seen = clock, clock()

    def is_alive(self) -> bool:
        return self.clock() - self.seen <= 2.0

    def is_renewed(self, within: float) -> bool:
        return self.is_alive()

    def is_known(self) -> bool:
        return True

    def silent_for(self) -> float:
        return 0.0 if self.is_alive() else self.clock() - self.seen


def held(name: str = "a", *gates: str, namespace: str = "shop", created: float = 0.0) -> PodWithGates:
    return PodWithGates(namespace, name, f"uid-{name}", (ADVICE, *gates), created, "7")


class Scene:
    """A webhook whose advisors may hold pods for 20 s. Its clock stands at 100."""

    def __init__(self, *answers: ApiAnswer) -> None:
        self.clock, self.session = SettableClock(100.0), Session(*answers)
        self.lease = StubLease(self.clock)
        self.times = HoldingTimes(clock=self.clock, wall=lambda: 1000.0)
        self.quotas = QuotaNamespaces()
        self.quotas.replace([])
        self.may_patch = self.is_following = True
        self.hands = SecondHands(
            self.session.as_session,
            self.times,
            self.lease,
            gate_timeout=20.0,
            is_following=lambda: self.is_following,
            may_patch=lambda: self.may_patch,
            has_quota=self.quotas.has,
        )
        self.times.replace([])

    def keep_up(self, *, later: float = 0.0, alive: bool = True) -> list[str]:
        """Names of the pods that were asked about."""
        self.clock.now += later
        if alive:
            self.lease.seen = self.clock()
        before = len(self.session.asked)
        self.hands.keep_up()
        return [one.path.rpartition("/")[2] for one in self.session.asked[before:]]

    def figure(self, name: str) -> float:
        return next(sample.value for family in self.hands.collect() for sample in family.samples if sample.name == name)


@pytest.mark.parametrize(
    ("gate_timeout", "silent_for", "seconds"), [(20, 0, 22), (20, 4.9, 22), (20, 5, 2), (1, 60, 1), (1, 0, 3)]
)
def test_how_long_a_pod_may_be_held(gate_timeout: float, silent_for: float, seconds: float) -> None:
    assert longest_hold(gate_timeout, silent_for) == seconds


def test_pods_are_left_to_live_advisors_until_they_are_late_and_released_when_none_is_alive() -> None:
    scene = Scene()
    scene.times.put(held())
    assert scene.keep_up(later=21.9) == []
    assert scene.keep_up(later=0.1) == ["a"]
    (asked,) = scene.session.asked
    assert asked.body["metadata"]["resourceVersion"] == "7", "an advisor may be about to write"
    assert msgspec.json.decode(asked.body["metadata"]["annotations"][ADVICE])["because"].startswith("no advice in time")
    assert scene.keep_up(later=60) == [] and scene.figure("forecast_webhook_released_pods_total") == 1
    scene.times.put(held("b"))
    scene.times.put(held("c", OTHER_GATE))
    assert scene.keep_up(later=4.9, alive=False) == []
    assert scene.keep_up(later=0.1, alive=False) == ["b"], "the next replica would have taken over"
    assert scene.figure("forecast_gated_longest_seconds") == 0


def test_what_fails_is_tried_again_after_a_second_whatever_the_pod_has_become() -> None:
    scene = Scene(CONFLICT, CONFLICT, INVALID, INVALID)
    scene.times.put(held())
    assert scene.keep_up(later=30) == ["a"]
    assert scene.keep_up(later=0.5) == []
    assert scene.keep_up(later=0.5) == ["a"]
    assert scene.keep_up(later=1) == ["a", "a"], "with the note, and without"
    assert "resourceVersion" not in scene.session.asked[-1].body["metadata"]
    assert scene.keep_up(later=1) == ["a"] and not len(scene.times)
    scene = Scene(MISSING)
    scene.times.put(held())
    assert scene.keep_up(later=30) == ["a"] and not len(scene.times)
    scene.session.is_over = True
    scene.times.put(held("b"))
    assert scene.keep_up(later=30) == []
    assert not scene.hands.can_release(), "the session has ended"


def test_a_pod_is_written_once_at_a_time_and_not_once_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed before: while the API server was away each pod was submitted again every second."""
    scene, works = Scene(), list[Coroutine[Any, Any, Any]]()

    def submit(work: Coroutine[Any, Any, Any]) -> Future[Any]:
        works.append(work)
        return Future()

    monkeypatch.setattr(scene.session, "submit", submit)
    scene.times.put(held())
    for _ in range(60):
        scene.keep_up(later=1, alive=False)
    assert len(works) == 1
    scene.times.put(PodWithGates("shop", "a", "uid-a"))  # an advisor was faster
    asyncio.run(works[0])
    assert scene.session.asked == []


def test_pods_of_tenants_wait_for_an_advisor_somewhat_longer() -> None:
    scene = Scene()
    scene.quotas.put(ElasticQuota("shop", "of-shop", namespaces=("ads",)))
    for name, namespace in (("a", "shop"), ("b", "ads"), ("c", "free")):
        scene.times.put(held(name, namespace=namespace))
    assert scene.keep_up(later=9.9, alive=False) == ["c"]
    assert scene.keep_up(later=0.1, alive=False) == ["a", "b"]
    scene.quotas.delete(ElasticQuota("shop", "of-shop"))
    assert not scene.quotas.has("shop")
    assert QuotaNamespaces().has("anything"), "they have not been read"


def test_pods_that_came_unseen_have_waited_since_they_were_created() -> None:
    scene = Scene()
    scene.times = HoldingTimes(clock=scene.clock, wall=lambda: 1000.0)
    scene.times.replace([held("old", created=900.0), held("new", created=999.0), held("ahead", created=2000.0)])
    assert [pod.name for pod in scene.times.take(22.0)] == ["old"]
    scene.times.tried("uid-old")
    scene.times.replace([held("old", created=900.0), held("new", created=999.0), held("unseen", created=990.0)])
    scene.clock.now += 20.9
    assert [pod.name for pod in scene.times.take(21.0)] == ["old", "unseen", "new"]
    scene.times.delete(held("old"))
    scene.times.put(PodWithGates("shop", "new", "uid-new"))
    assert len(scene.times) == 1


def test_at_the_end_every_pod_is_released_unless_an_advisor_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr("admission.advice.second_hands.time.sleep", lambda seconds: None)
    monkeypatch.setattr("admission.advice.second_hands.time.monotonic", lambda: float(next(ticks)))
    scene = Scene()
    scene.times.put(held())
    scene.hands.end()
    assert scene.session.asked == []
    scene.lease.seen = -100.0
    scene.hands.end()
    assert len(scene.session.asked) == 1


class Webhook:
    """What decides about gates, in a scene."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.holding = Holding(AdviceGateOptions(), self.scene.lease, self.scene.hands, ExcludedOptions())

    def holds(self, *, dry_run: bool = False, mode: str = "advise") -> bool:
        pod: dict[str, Any] = {"metadata": {"labels": {ADVICE: mode}}, "spec": {}}
        return self.holding(pod, "shop", {}, dry_run=dry_run) is not None

    def unadvised(self) -> dict[str, float]:
        return {
            sample.labels["because"]: sample.value
            for family in self.holding.collect()
            for sample in family.samples
            if sample.name == "forecast_webhook_unadvised_pods_total"
        }


def test_a_pod_is_held_only_if_an_advisor_is_alive_and_this_process_could_release_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    webhook = Webhook()
    scene = webhook.scene
    assert webhook.holds() and not webhook.holds(mode="off")
    assert webhook.holding.abilities() == {"holds_pods": True, "holds_none_because": None}
    scene.may_patch = False
    assert not webhook.holds() and webhook.holding.why_not() is NotHeld.CANNOT_RELEASE
    scene.may_patch, scene.is_following = True, False
    assert not webhook.holds()
    webhook.holding.report()
    scene.is_following, scene.clock.now = True, scene.clock.now + 10
    assert not webhook.holds() and not webhook.holds(dry_run=True) and not webhook.holds(mode="off")
    assert webhook.holding.abilities()["holds_none_because"] == "no advisor is alive"
    webhook.holding.report()
    webhook.holding.report()
    assert webhook.unadvised() == {"no_advisor": 1.0, "cannot_release": 2.0}
    scene.lease.seen = scene.clock()
    webhook.holding.report()
    first, second, third = caplog.records
    assert "grant list, watch and patch on pods, list" in vars(first)["why"]
    assert vars(second)["why"] == "no advisor is alive"
    assert third.getMessage() == "new pods are held for advice again" and vars(third)["came_without_advice"] == 3


def test_of_a_pod_only_its_name_and_gates_are_read() -> None:
    metadata = {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels": 7}
    spec = {"schedulingGates": [{"name": OTHER_GATE}, {"name": ADVICE}], "containers": "none"}
    stored = {"metadata": metadata | {"creationTimestamp": "2026-11-29T17:00:00Z"}, "spec": spec, "status": []}
    pod, version = UNBOUND_PODS.decoded(msgspec.json.encode(stored))
    assert (pod.gates, pod.created, version) == ((OTHER_GATE, ADVICE), 1_795_971_600.0, "7")
    assert pod.has_ours and not pod.waits_for_us_alone
    ending = {"metadata": metadata | {"deletionTimestamp": "2026-11-29T17:00:00Z"}, "spec": spec}
    assert UNBOUND_PODS.decoded(msgspec.json.encode(ending))[0].gates == ()
