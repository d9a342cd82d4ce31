from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from extender.answer_settings import ExtenderServiceOptions
from extender.service.extender_app import create_app
from extender.service.workers import AnswerDeadline, Late, Workers
from testing.app_client import AppClient
from testing.constants import with_constants
from tests.extender.service.questions import BINDING, count_of, nodes_question, victims_question
from tests.extender.service.simple_extender import SimpleBinder, SimpleExtender
from tests.serving.event_loop import in_loop

SHORT = with_constants(ExtenderServiceOptions(), deadline=0.1, bind_timeout=0.1, threads=2)


def _wait(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


@pytest.fixture
def release(extender: SimpleExtender, binder: SimpleBinder) -> threading.Event:
    """Answers wait for it."""
    event = threading.Event()

    def wait() -> None:
        event.wait(60)

    extender.fail = binder.fail = wait
    return event


def test_past_the_deadline_answers_are_neutral(extender: SimpleExtender, release: threading.Event) -> None:
    with AppClient(create_app(extender, with_constants(ExtenderServiceOptions(), deadline=0.1, threads=4))) as client:
        began = time.monotonic()
        filtered = client.post("/filter", json=nodes_question("a", "hot-1"))
        assert filtered.status_code == 200 and filtered.json()["NodeNames"] == ["a", "hot-1"]
        assert client.post("/prioritize", json=nodes_question("good")).json() == []
        kept = client.post("/preempt", json=victims_question(a=["u1"], gpu=["u2"], b=[])).json()
        assert set(kept["NodeNameToMetaVictims"]) == {"a", "gpu"}
        assert time.monotonic() - began < 30  # not when the work is done, a minute later
        for verb in ("filter", "prioritize", "preempt"):
            assert count_of(client, f'forecast_extender_late_total{{verb="{verb}"}}') == 1
            assert count_of(client, f'forecast_extender_requests_total{{outcome="late",verb="{verb}"}}') == 1
        release.set()


def test_a_pod_may_have_a_shorter_deadline_of_its_own(extender: SimpleExtender, release: threading.Event) -> None:
    extender.deadlines["cart-1"] = 0.05
    with AppClient(create_app(extender, with_constants(ExtenderServiceOptions(), deadline=600, threads=4))) as client:
        assert client.post("/filter", json=nodes_question("hot-1")).json()["NodeNames"] == ["hot-1"]  # neutral
        assert client.post("/prioritize", json=nodes_question("good")).json() == []
        assert client.post("/preempt", json=victims_question(gpu=["u2"])).json()["NodeNameToMetaVictims"]
        release.set()


@in_loop
async def test_a_deadline_may_be_moved_while_the_work_is_under_way() -> None:
    """Later, as for a pod whose policy takes its time; and earlier, to a moment that has passed."""
    workers = Workers(1, "test")
    deadline = AnswerDeadline(2)

    def long_work() -> str:
        deadline.move(600)
        time.sleep(2.2)
        return "done"

    assert await workers.run(long_work, deadline) == "done"
    short, ended = AnswerDeadline(600), threading.Event()

    def hanging_work() -> None:
        short.move(0)
        ended.wait(60)

    with pytest.raises(Late):
        await workers.run(hanging_work, short)
    ended.set()


def test_work_that_hangs_takes_a_thread_and_not_the_service(extender: SimpleExtender, release: threading.Event) -> None:
    """With every thread hanging, answers are neutral at once and no further work begins; then all is as before."""
    with AppClient(create_app(extender, SHORT)) as client:
        for _ in range(5):
            assert client.post("/filter", json=nodes_question("hot-1")).json()["NodeNames"] == ["hot-1"]
        assert len(extender.asked) == 2  # as many as there are threads
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503  # so that another replica is asked
        release.set()
        extender.fail = lambda: None
        _wait(lambda: client.post("/filter", json=nodes_question("hot-1")).json()["NodeNames"] == [])
        assert client.get("/readyz").status_code == 200
        assert count_of(client, 'forecast_extender_late_total{verb="filter"}') >= 5


def test_a_binding_that_takes_too_long_is_an_error(
    extender: SimpleExtender, binder: SimpleBinder, release: threading.Event
) -> None:
    with AppClient(create_app(extender, SHORT, binder=binder)) as client:
        answer = client.post("/bind", json=BINDING)
        assert answer.status_code == 200 and "did not confirm the binding within 0.1 s" in answer.json()["Error"]
        release.set()


def test_an_api_server_that_hangs_does_not_slow_filters(
    extender: SimpleExtender, binder: SimpleBinder, release: threading.Event
) -> None:
    extender.fail = lambda: None
    options = with_constants(ExtenderServiceOptions(), deadline=20, bind_timeout=0.1, bind_threads=2)
    with AppClient(create_app(extender, options, binder=binder)) as client:
        for _ in range(4):
            assert client.post("/bind", json=BINDING).json()["Error"]
        assert client.post("/filter", json=nodes_question("hot-1")).json()["NodeNames"] == []
        release.set()


@in_loop
async def test_work_that_was_given_up_while_it_waited_is_never_begun() -> None:
    begun: list[str] = []
    release = threading.Event()
    workers = Workers(1, "test")
    hanging = asyncio.ensure_future(workers.run(lambda: release.wait(60), AnswerDeadline(60)))
    await asyncio.sleep(0.05)
    with pytest.raises(Late):
        await workers.run(lambda: begun.append("late"), AnswerDeadline(0.05))
    release.set()
    await hanging
    await workers.run(lambda: begun.append("next"), AnswerDeadline(20))
    assert begun == ["next"]


@in_loop
async def test_a_client_that_leaves_gives_up_its_work() -> None:
    begun: list[str] = []
    release = threading.Event()
    workers = Workers(1, "test")
    first = asyncio.ensure_future(workers.run(lambda: release.wait(60), AnswerDeadline(60)))
    second = asyncio.ensure_future(workers.run(lambda: begun.append("left"), AnswerDeadline(60)))
    await asyncio.sleep(0.05)
    first.cancel()
    second.cancel()
    await asyncio.sleep(0)
    with pytest.raises(Late):  # the only thread works for nobody: new work would wait for nothing
        await workers.run(lambda: begun.append("stuck"), AnswerDeadline(20))
    release.set()
    while True:
        try:
            await workers.run(lambda: begun.append("next"), AnswerDeadline(20))
            break
        except Late:
            await asyncio.sleep(0.01)
    assert begun == ["next"]


def test_threads_end_with_their_workers() -> None:
    async def main() -> None:
        workers = Workers(2, "short-lived")
        await workers.run(lambda: None, AnswerDeadline(20))

    asyncio.run(main())
    _wait(lambda: not any(t.name.startswith("short-lived") for t in threading.enumerate()))
