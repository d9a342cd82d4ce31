"""What follows from what the API server answers, by tables and against a small model of the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.binding.binding_steps import (
    BindingRequest,
    BindingResult,
    BindingVerdict,
    Pause,
    Send,
    Steps,
    binding_steps,
    looking_steps,
)
from kube.client.api_answer import NO_ANSWER, ApiAnswer, answered, not_sent
from testing.settable_clock import SettableClock

REQUEST = BindingRequest("shop", "cart-1", "uid-1", "node-1")

BOUND = answered(201, b"{}")
NOT_FOUND = answered(404, b'{"reason":"NotFound","message":"pods cart-1 not found"}')
PROXYS_404 = answered(404, b"<html>no such page")
CONFLICT = answered(409, b'{"message":"already assigned"}')
TOO_MANY = answered(429, b"{}", "1")
UNAVAILABLE = answered(503, b"{}")
FORBIDDEN = answered(403, b"{}")
INVALID = answered(422, b"{}")
LOST = ApiAnswer(NO_ANSWER, text="no answer: reset")
FENCED = not_sent("not the leader")


def pod(node: str = "", uid: str = "uid-1", deleted: str | None = None) -> ApiAnswer:
    metadata = {"uid": uid, "deletionTimestamp": deleted}
    return answered(200, json.dumps({"metadata": metadata, "spec": {"nodeName": node or None}}).encode())


def carried_out(steps: Steps, clock: SettableClock[float], answer: Callable[[Send], ApiAnswer]) -> BindingResult:
    """The result; every request takes a moment."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, Pause):
                clock.now += step.seconds
                step = steps.send(step.because)
            else:
                clock.now += 0.01
                step = steps.send(answer(step))
    except StopIteration as end:
        result: BindingResult = end.value
        return result


def with_answers(*answers: ApiAnswer, seconds: float = 10.0) -> tuple[BindingResult, list[str], SettableClock[float]]:
    """Result, methods used and the clock; the last answer is repeated."""
    clock, methods = SettableClock(0.0), list[str]()
    left: Iterator[ApiAnswer] = iter(answers)

    def answer(step: Send) -> ApiAnswer:
        methods.append(step.method)
        return next(left, answers[-1])

    steps = binding_steps(REQUEST, seconds=seconds, attempt_seconds=2.0, clock=clock)
    return carried_out(steps, clock, answer), methods, clock


@pytest.mark.parametrize(
    ("answers", "verdict", "methods"),
    [
        pytest.param([BOUND], BindingVerdict.BOUND, "POST", id="bound"),
        pytest.param([NOT_FOUND], BindingVerdict.GONE, "POST", id="gone"),
        pytest.param([PROXYS_404], BindingVerdict.REFUSED, "POST", id="a 404 of something else"),
        pytest.param([FORBIDDEN], BindingVerdict.REFUSED, "POST", id="forbidden"),
        pytest.param([INVALID], BindingVerdict.REFUSED, "POST", id="gated"),
        pytest.param([FENCED], BindingVerdict.REFUSED, "POST", id="not the leader"),
        pytest.param([LOST, pod("node-1")], BindingVerdict.BOUND, "POST GET", id="answer lost"),
        pytest.param([LOST, pod(), BOUND], BindingVerdict.BOUND, "POST GET POST", id="request lost"),
        pytest.param([LOST, LOST, BOUND], BindingVerdict.BOUND, "POST GET POST", id="a look lost, too"),
        pytest.param([LOST, pod("node-2")], BindingVerdict.ELSEWHERE, "POST GET", id="another was faster"),
        pytest.param([LOST, NOT_FOUND], BindingVerdict.GONE, "POST GET", id="gone in between"),
        pytest.param([LOST, pod(uid="uid-2")], BindingVerdict.GONE, "POST GET", id="replaced"),
        pytest.param(
            [CONFLICT, pod(deleted="2026-01-01T00:00:00Z")], BindingVerdict.GONE, "POST GET", id="being deleted"
        ),
        pytest.param([CONFLICT, pod("node-1")], BindingVerdict.BOUND, "POST GET", id="bound before"),
        pytest.param([CONFLICT, pod("node-2")], BindingVerdict.ELSEWHERE, "POST GET", id="on another node"),
        pytest.param(
            [CONFLICT, pod(), CONFLICT, pod()], BindingVerdict.REFUSED, "POST GET POST GET", id="conflicts for ever"
        ),
        pytest.param([TOO_MANY, BOUND], BindingVerdict.BOUND, "POST POST", id="too many requests"),
        pytest.param([UNAVAILABLE, pod(), BOUND], BindingVerdict.BOUND, "POST GET POST", id="unavailable"),
        pytest.param([LOST, FORBIDDEN], BindingVerdict.UNKNOWN, "POST GET", id="may not look"),
        pytest.param([LOST, answered(200, b"\xff{")], BindingVerdict.UNKNOWN, "POST GET", id="unreadable"),
        # The first may still arrive: a later refusal does not tell.
        pytest.param([LOST, pod(), FORBIDDEN], BindingVerdict.UNKNOWN, "POST GET POST", id="refused after a lost one"),
        pytest.param([LOST, pod(), FENCED], BindingVerdict.UNKNOWN, "POST GET POST", id="fenced after a lost one"),
        pytest.param([LOST, pod(), NOT_FOUND], BindingVerdict.GONE, "POST GET POST", id="gone after a lost one"),
        pytest.param(
            [LOST, pod(), CONFLICT, pod()], BindingVerdict.UNKNOWN, "POST GET POST GET", id="conflicts after a lost one"
        ),
    ],
)
def test_what_follows_from_answers(answers: Sequence[ApiAnswer], verdict: BindingVerdict, methods: str) -> None:
    result, made, _ = with_answers(*answers)
    assert (result.verdict, " ".join(made)) == (verdict, methods)
    assert bool(result.reason) == (verdict is not BindingVerdict.BOUND)
    assert result.node == ("node-2" if verdict is BindingVerdict.ELSEWHERE else "")


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(LOST, BindingVerdict.UNKNOWN), (UNAVAILABLE, BindingVerdict.UNKNOWN), (TOO_MANY, BindingVerdict.REFUSED)],
)
def test_it_ends_in_time(answer: ApiAnswer, verdict: BindingVerdict) -> None:
    result, methods, clock = with_answers(answer, seconds=10.0)
    assert result.verdict is verdict and "10 s" in result.reason
    assert clock.now <= 10.1 and len(methods) > 5


def test_the_time_that_the_server_asks_for_is_left_to_it() -> None:
    _, methods, clock = with_answers(answered(429, b"", "3"), answered(429, b"", "3"), BOUND)
    assert clock.now >= 6.0 and methods == ["POST"] * 3


@pytest.mark.parametrize("annotations", [{}, {"example.com/index": "3"}])
def test_the_binding_names_that_very_pod_and_gives_it_annotations(annotations: dict[str, str]) -> None:
    request = replace(REQUEST, annotations=annotations)
    step = next(binding_steps(request, seconds=10.0, attempt_seconds=2.0, clock=SettableClock(0.0)))
    assert isinstance(step, Send)
    assert (step.path, step.seconds) == ("/api/v1/namespaces/shop/pods/cart-1/binding", 2.0)
    metadata = {"namespace": "shop", "name": "cart-1", "uid": "uid-1"}
    assert json.loads(step.body) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata | ({"annotations": annotations} if annotations else {}),
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    }


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([pod("node-1")], BindingVerdict.BOUND),
        ([LOST, UNAVAILABLE, pod()], BindingVerdict.REFUSED),
        ([pod("node-2")], BindingVerdict.ELSEWHERE),
        ([LOST], BindingVerdict.UNKNOWN),
    ],
)
def test_asking_binds_nothing(answers: Sequence[ApiAnswer], verdict: BindingVerdict) -> None:
    clock, left = SettableClock(0.0), iter(answers)

    def answer(step: Send) -> ApiAnswer:
        assert step.method == "GET" and not step.body
        return next(left, answers[-1])

    assert (
        carried_out(looking_steps(REQUEST, seconds=5, attempt_seconds=1, clock=clock), clock, answer).verdict is verdict
    )


@dataclass
class Model:
    """One pod as the API server keeps it. late: bindings that nobody got an answer to and that come later."""

    node: str = ""
    uid: str = "uid-1"
    exists: bool = True
    terminating: bool = False
    late: list[str] = field(default_factory=list)
    bound: list[tuple[str, str]] = field(default_factory=list)

    def bind(self, node: str, uid: str) -> ApiAnswer:
        if not self.exists:
            return NOT_FOUND
        if uid != self.uid or self.terminating or self.node:
            return CONFLICT
        self.node = node
        self.bound.append((uid, node))
        return BOUND

    def look(self) -> ApiAnswer:
        if not self.exists:
            return NOT_FOUND
        return pod(self.node, self.uid, "2026-01-01T00:00:00Z" if self.terminating else None)

    def now_the_late_ones(self) -> None:
        for node in self.late:
            self.bind(node, "uid-1")
        self.late.clear()


EVENTS = st.sampled_from(["", "", "", "", "rival", "terminate", "delete", "replace", "late"])
FATES = st.sampled_from(["", "answer lost", "request lost", "late", "429", "503", "503 done", "409", "403", "fenced"])


@given(script=st.lists(st.tuples(EVENTS, FATES), max_size=30))
def test_no_verdict_is_wrong_whatever_happens(script: list[tuple[str, str]]) -> None:
    model, clock, left = Model(), SettableClock(0.0), iter(script)

    def answer(step: Send) -> ApiAnswer:
        event, fate = next(left, ("", ""))
        if event == "rival":
            model.bind("node-2", model.uid)
        elif event == "terminate":
            model.terminating = True
        elif event == "delete":
            model.exists = False
        elif event == "replace":
            later = f"uid-{int(model.uid.removeprefix('uid-')) + 1}"  # no two pods ever have the same
            model.node, model.uid, model.exists, model.terminating = "", later, True, False
        elif event == "late":
            model.now_the_late_ones()
        if step.method == "GET":
            return model.look() if fate in ("", "late", "409", "fenced") else LOST
        if fate in ("", "answer lost", "503 done"):
            done = model.bind("node-1", "uid-1")
            return {"": done, "answer lost": LOST}.get(fate, UNAVAILABLE)
        if fate == "late":
            model.late.append("node-1")
        answers = {"429": TOO_MANY, "503": UNAVAILABLE, "409": CONFLICT, "403": FORBIDDEN, "fenced": FENCED}
        return answers.get(fate, LOST)

    result = carried_out(binding_steps(REQUEST, seconds=10, attempt_seconds=2, clock=clock), clock, answer)
    if result.verdict is BindingVerdict.BOUND:
        assert ("uid-1", "node-1") in model.bound
    model.now_the_late_ones()
    if result.verdict in (BindingVerdict.GONE, BindingVerdict.ELSEWHERE, BindingVerdict.REFUSED):
        # Bound and deleted before anybody looked is gone all the same.
        assert not (model.exists and model.uid == "uid-1" and model.node == "node-1")
    assert len({uid for uid, _ in model.bound}) == len(model.bound), "a pod was bound twice"
    assert clock.now < 10.5 + 0.1
