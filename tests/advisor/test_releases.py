"""Our gate is removed without advice: when, by whom, with which note, and again after a failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from advisor.pods_waiting_for_advice import GatedPods
from advisor.releases_without_advice import AdviceReports, ForecastUse, Outcome, Releases
from cluster.assuming_cluster import AssumingCluster
from kube.client.api_answer import ApiAnswer, answered, unanswered
from kube.objects.objects import PodInfo
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.gate_exemptions import ADVICE
from placement.gate_removal import release_body
from scorer.options import ScorerOptions
from testing.settable_clock import SettableClock
from tests.advisor.made_up import ANOTHER_UID, FORBIDDEN, INVALID, MISSING, OTHER_GATE, Session, gated

POD = gated("a")
PATH = "/api/v1/namespaces/shop/pods/a"
BUSY, SILENT = answered(503, b"busy"), unanswered(TimeoutError())
CONFLICT = answered(409, b'{"message":"the object has been modified"}')


class Scene:
    """A leader with a forecast, whose pods are overdue after 2 s. advised: pods so far"""

    def __init__(self, *pods: PodInfo, answers: tuple[ApiAnswer, ...] = (), seconds: float = 2.0) -> None:
        self.clock, self.session = SettableClock(100.0), Session(*answers)
        self.forecast, self.leads, self.advised = ForecastUse.USABLE, True, 0
        self.cluster = AssumingCluster(ScorerOptions(), now=0.0)
        self.gated = GatedPods(self.cluster, clock=self.clock)
        self.cluster.listeners.append(self.gated.apply)
        self.releases = Releases(
            self.session.as_session,
            self.gated,
            seconds=seconds,
            forecast=lambda: self.forecast,
            leads=lambda: self.leads,
            n_advised=lambda: self.advised,
            clock=self.clock,
        )
        for pod in pods or (POD,):
            self.cluster.put_pod(pod)

    def keep_up(self, *, later: float = 0.0) -> list[str]:
        """Names of the pods that were asked about."""
        self.clock.now += later
        before = len(self.session.asked)
        self.releases.keep_up()
        return [one.path.rpartition("/")[2] for one in self.session.asked[before:]]

    def note(self) -> Any:
        return msgspec.json.decode(self.session.asked[-1].body["metadata"]["annotations"][ADVICE])

    @property
    def is_free(self) -> bool:
        return bool(self.gated.held_for(0.0))


def test_without_a_forecast_no_pod_waits_for_a_leader() -> None:
    scene = Scene(POD, gated("b", OTHER_GATE))
    scene.forecast, scene.leads = ForecastUse.MISSING, False
    assert scene.keep_up() == [], "the leader may have one"
    scene.leads = True
    assert scene.keep_up() == ["a"]
    assert scene.note() == {"node": None, "because": "there is no usable forecast"}
    assert scene.releases.released == {Outcome.NO_FORECAST: 1}


def test_pods_that_were_overdue_before_the_model_was_read_are_released_as_overdue() -> None:
    """Failed before: a replica that had just begun released them as if there were no forecast."""
    old = replace(POD, created=time.time() - 60)
    scene = Scene(old, gated("b"), seconds=20.0)
    scene.forecast = ForecastUse.AWAITED
    assert scene.keep_up() == ["a"]
    assert scene.note()["because"] == "no advice within 20 s"
    assert scene.releases.released == {Outcome.OVERDUE: 1}
    scene.forecast = ForecastUse.MISSING
    assert scene.keep_up() == ["b"]
    assert scene.releases.released == {Outcome.OVERDUE: 1, Outcome.NO_FORECAST: 1}


def test_pods_wait_while_advice_is_made_and_five_seconds_if_none_is() -> None:
    scene = Scene(seconds=20.0)
    for _ in range(10):
        scene.advised += 1
        assert scene.keep_up(later=1.0) == []
    for _ in range(4):
        assert scene.keep_up(later=1.2) == []
    assert scene.keep_up(later=0.3) == ["a"]
    assert scene.note()["because"] == "no advice within 5 s"


def test_of_more_pods_than_can_be_advised_on_in_time_the_least_in_need_are_released_at_once() -> None:
    pods = [gated(f"p-{i}", nonzero_requests=(float(i), 1e9), priority=int(i == 0)) for i in range(30)]
    scene = Scene(*pods, seconds=3.0)
    for _ in range(10):  # 4 a second
        scene.keep_up(later=0.25)
        scene.advised += 1
    names = [one.path.rpartition("/")[2] for one in scene.session.asked]
    assert scene.releases.released.keys() == {Outcome.TOO_MANY}
    assert sorted(names) == sorted(f"p-{i}" for i in range(1, 7)), "24 of 30 may wait, of which one has a high priority"


def test_a_leader_that_ends_releases_what_comes_until_the_webhook_has_seen_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, n_looks = Scene(), 0

    def sleep(seconds: float) -> None:
        nonlocal n_looks
        n_looks += 1
        scene.clock.now += seconds
        if n_looks == 8:
            scene.cluster.put_pod(gated("late"))

    monkeypatch.setattr("advisor.releases_without_advice.time.sleep", sleep)
    began = scene.clock()
    scene.releases.end(lambda: False)
    assert scene.clock() - began >= 2.0 + 0.5 + 1.0, "two seconds past the longest look of the webhook"
    assert scene.releases.released == {Outcome.ENDING: 2}
    scene = Scene()
    scene.releases.end(lambda: True)
    assert scene.releases.released == {}, "another replica leads"


def test_a_leader_releases_what_is_overdue_and_others_a_second_later() -> None:
    scene = Scene()
    assert scene.keep_up() == scene.keep_up(later=1.5) == []
    assert scene.keep_up(later=0.5) == ["a"]
    (asked,) = scene.session.asked
    assert (asked.method, asked.path, asked.content_type) == ("PATCH", PATH, STRATEGIC_MERGE)
    body = msgspec.json.decode(release_body(POD, "?"))
    assert asked.body["spec"] == body["spec"] and asked.body["metadata"]["uid"] == "uid-a"
    assert scene.note() == {"node": None, "because": "no advice within 2 s"}
    assert scene.releases.released == {Outcome.OVERDUE: 1}
    assert scene.keep_up(later=1) == [], "it waits for the watch"
    scene = Scene()
    scene.leads = False
    assert scene.keep_up(later=2.5) == []
    assert scene.keep_up(later=0.5) == ["a"]
    assert scene.releases.released == {Outcome.OVERDUE: 1}
    assert scene.note()["because"] == "no advice within 2 s"
    scene = Scene(replace(POD, nominated_node="n3"))
    scene.keep_up(later=2)
    assert scene.note()["node"] == "n3"


def test_pods_are_released_without_a_node_unless_another_holds_them() -> None:
    scene = Scene()
    AdviceReports(scene.releases).failed(POD, "0/3 nodes are available")
    assert scene.note() == {"node": None, "because": "0/3 nodes are available"}
    assert scene.releases.released == {Outcome.NO_NODE: 1}
    bare, waiting = gated("b", gates=()), gated("c", OTHER_GATE)
    scene = Scene(bare, waiting)
    for pod in (bare, waiting, gated("unknown")):
        scene.releases.without_advice(pod, "no node")
    assert scene.keep_up(later=60) == [] and scene.session.asked == []
    scene = Scene()
    assert scene.gated.claim(POD.uid)
    assert scene.keep_up(later=60) == []
    scene.releases.without_advice(POD, "no node")
    assert scene.session.asked == []


@pytest.mark.parametrize("answer", [BUSY, SILENT, CONFLICT, answered(429, b"")])
def test_what_passes_is_tried_again(answer: ApiAnswer) -> None:
    scene = Scene(answers=(answer, answer))
    assert scene.keep_up(later=2) == ["a"] * 3
    assert scene.releases.released == {Outcome.OVERDUE: 1} and not scene.is_free


@pytest.mark.parametrize(("answer", "tries"), [(BUSY, 3), (SILENT, 3), (FORBIDDEN, 2)])
def test_what_fails_is_tried_again_the_next_time_and_logged_once(
    answer: ApiAnswer, tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(answers=(answer,) * 2 * tries)
    assert scene.keep_up(later=2) == ["a"] * tries
    assert scene.keep_up(later=0.5) == [], "it is left alone for a second"
    assert scene.keep_up(later=0.5) == ["a"] * tries
    assert scene.releases.released == {}
    scene.clock.now += 1.0
    assert scene.is_free
    assert [record.getMessage() for record in caplog.records] == ["our gate was not removed (grant patch on pods)"]
    assert scene.keep_up() == ["a"] and scene.releases.released == {Outcome.OVERDUE: 1}


def test_a_pod_that_takes_no_note_is_released_without_one() -> None:
    """Failed before: a pod with 256 KiB of annotations stayed held."""
    scene = Scene(answers=(INVALID,))
    assert scene.keep_up(later=2) == ["a", "a"]
    with_note, without = scene.session.asked
    assert ADVICE in with_note.body["metadata"]["annotations"]
    assert without.body == {"metadata": {"uid": "uid-a"}, "spec": with_note.body["spec"]}
    assert scene.releases.released == {Outcome.OVERDUE: 1}


@pytest.mark.parametrize("answer", [MISSING, ANOTHER_UID])
def test_a_pod_that_is_gone_is_no_failure(answer: ApiAnswer, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(answers=(answer,))
    assert scene.keep_up(later=2) == ["a"]
    assert scene.releases.released == {} and not caplog.records


def test_a_session_that_is_over_leaves_pods_to_others() -> None:
    scene = Scene(POD, gated("b"))
    scene.session.is_over = True
    assert scene.keep_up(later=2) == []
    scene.session.is_over = False
    assert scene.keep_up(later=1) == ["a", "b"]


def test_of_many_pods_some_are_released_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, works = Scene(*[gated(f"a-{number}") for number in range(200)]), list[Coroutine[Any, Any, Any]]()
    request, under_way, most = scene.session.request, 0, 0

    def submit(work: Coroutine[Any, Any, Any]) -> Future[Any]:
        works.append(work)
        return Future()

    async def slow(*arguments: Any, **options: Any) -> ApiAnswer:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return await request(*arguments, **options)

    async def run() -> None:
        await asyncio.gather(*works)

    monkeypatch.setattr(scene.session, "submit", submit)
    monkeypatch.setattr(scene.session, "request", slow)
    assert scene.keep_up(later=2) == [] and len(works) == 200
    asyncio.run(run())
    assert scene.releases.released == {Outcome.OVERDUE: 200} and most == 64


def test_a_mistake_is_logged_once_and_other_reports_ask_for_nothing(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()

    def mistake() -> None:
        raise KeyError("a mistake of ours")

    scene.session.before = mistake
    scene.keep_up(later=2)
    assert [record.getMessage() for record in caplog.records] == ["a pod was not released"]
    scene.session.before = lambda: None
    assert scene.keep_up(later=1) == ["a"]
    scene = Scene()
    reports = AdviceReports(scene.releases)
    reports.start()
    reports.paused(POD, "gates of others", by="SchedulingGates")
    reports.scheduled(POD, "n1")
    reports.preempted(POD, "evicted")
    reports.forget(POD.uid)
    reports.stop()
    assert scene.session.asked == [] and scene.is_free
