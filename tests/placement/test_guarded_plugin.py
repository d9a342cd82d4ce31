"""A plugin of others that raises, is late or answers with nonsense is reported, and skipped or fails the pod."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any, Literal

import numpy as np
import pytest

from base.arrays import Bools, Floats
from kube.objects.objects import PodInfo
from placement.filters.filter import rejected
from placement.guarded_plugin import GuardedPlugin, PluginCollector, PluginFailed, PluginFilter, PluginScore
from placement.node_plugin import NodeArrays, NodePlugin
from placement.status import Code
from tests.placement.small_cluster import node_of, pod_of, view_of


class Made(NodePlugin):
    """Does what it was made with."""

    name, reason, seconds, binding_seconds = "Made", "node(s) were not made", 0.05, 0.05

    def __init__(self, answer: Any, on_error: Literal["fail", "skip"] = "fail") -> None:
        super().__init__(None)
        self.answer, self.on_error = answer, on_error

    def filter(self, pod: PodInfo, nodes: NodeArrays) -> Bools:
        return self.answer(nodes)  # type: ignore[no-any-return]

    def score(self, pod: PodInfo, nodes: NodeArrays) -> Floats:
        return self.answer(nodes)  # type: ignore[no-any-return]

    def pre_bind(self, pod: PodInfo, node: str) -> str:
        return self.answer(node)  # type: ignore[no-any-return]

    def post_bind(self, pod: PodInfo, node: str) -> None:
        self.answer(node)


def raises(_: object) -> Any:
    raise ValueError("a mistake")


def hangs(_: object) -> Any:
    time.sleep(0.4)


VIEW = view_of([node_of("a"), node_of("b"), node_of("c")], [])
POD = pod_of("p")
ROWS = np.arange(3)


def of(answer: Any, on_error: Literal["fail", "skip"] = "fail") -> GuardedPlugin:
    return GuardedPlugin(Made(answer, on_error))


def filter_of(guard: GuardedPlugin) -> PluginFilter:
    assert guard.filter is not None
    return guard.filter


def score_of(guard: GuardedPlugin) -> PluginScore:
    assert guard.score is not None
    return guard.score


def test_it_sees_the_nodes_and_answers_in_their_order() -> None:
    guard = of(lambda nodes: np.array([name != "b" for name in nodes.names]))
    (found,) = filter_of(guard).filter(POD, VIEW)
    assert found.reason == "node(s) were not made" and found.preemptible
    assert [VIEW.state.names[row] for row in np.flatnonzero(found.nodes)] == ["b"]
    scored = of(lambda nodes: np.array([0.4, 99.6, 7])[: len(nodes)])
    assert score_of(scored).score(POD, VIEW, ROWS[:2]).tolist() == [0, 100]


WRONG = {
    "raises": (raises, "raised", "ValueError: a mistake"),
    "is late": (hangs, "late", "no answer within 0.05 s"),
    "wrong shape": (lambda nodes: np.ones(2, dtype=bool), "nonsense", "(2,) of bool, wanted (3,) bool"),
    "wrong type": (lambda nodes: np.ones(3), "nonsense", "(3,) of float64, wanted (3,) bool"),
    "no array": (lambda nodes: [True] * 3, "nonsense", "it returned list"),
}


@pytest.mark.parametrize(("answer", "kind", "why"), WRONG.values(), ids=WRONG)
def test_a_filter_that_fails_fails_the_pod_or_is_skipped(
    answer: Any, kind: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    guard, skipped = of(answer), of(answer, "skip")
    (found,) = filter_of(guard).filter(POD, VIEW)
    assert rejected([found], 3).all() and found.about_pod and not found.preemptible
    assert found.reason.startswith("plugin Made failed in filter: ") and why in found.reason
    assert guard.failures == {("filter", kind): 1}
    assert filter_of(skipped).filter(POD, VIEW) == () and skipped.failures == {("filter", kind): 1}
    assert [one.getMessage() for one in caplog.records] == [found.reason] * 2


@pytest.mark.parametrize("scores", [[0, 1, np.nan], [0, 1, 101], [-1, 0, 1]])
def test_scores_that_are_none_fail_the_pod_or_count_for_nothing(scores: list[float]) -> None:
    guard = of(lambda nodes: np.array(scores))
    with pytest.raises(PluginFailed, match="scores outside"):
        score_of(guard).score(POD, VIEW, ROWS)
    assert score_of(of(lambda nodes: np.array(scores), "skip")).score(POD, VIEW, ROWS).tolist() == [0, 0, 0]


def test_a_call_that_hangs_costs_its_budget_once_and_sees_no_tables_afterwards() -> None:
    go_on, seen = threading.Event(), list[str]()

    def waits(nodes: NodeArrays) -> Bools:
        go_on.wait(10)
        try:
            seen.extend(nodes.names)
        except RuntimeError as error:
            seen.append(str(error))
        return np.ones(3, dtype=bool)

    guard = of(waits)
    reasons = [filter_of(guard).filter(POD, VIEW)[0].reason for _ in range(3)]
    assert "no answer within" in reasons[0] and "an earlier call has not returned" in reasons[1] == reasons[2]
    go_on.set()
    while not seen:
        time.sleep(0.01)
    assert seen == ["the call that these nodes were for is over"]
    while filter_of(guard).filter(POD, VIEW):
        time.sleep(0.01)  # it is used again


def test_what_fails_again_is_counted_and_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    seconds = iter((0.0, 1.0, 59.0, 61.0))
    guard = GuardedPlugin(Made(raises), clock=lambda: next(seconds))
    for _ in range(4):
        filter_of(guard).filter(POD, VIEW)
    assert caplog.record_tuples[0][1] == logging.ERROR and len(caplog.records) == 2
    (family,) = PluginCollector([guard]).collect()
    (sample,) = family.samples
    assert (sample.labels, sample.value) == ({"plugin": "Made", "point": "filter", "kind": "raised"}, 4)


def test_what_pods_went_on_without_is_said_for_a_minute() -> None:
    now = [0.0]
    skipped, failing = (GuardedPlugin(Made(raises, on), clock=lambda: now[0]) for on in ("skip", "fail"))
    assert filter_of(skipped).trouble() == ""
    for guard in (skipped, failing):
        filter_of(guard).filter(POD, VIEW)
    said = "plugin Made failed in filter: ValueError: a mistake"
    assert filter_of(skipped).trouble() == score_of(skipped).trouble() == said
    assert filter_of(failing).trouble() == "", "pods did not go on: they say so themselves"
    now[0] = 60.0
    assert filter_of(skipped).trouble() == ""


def test_like_pods_go_together_if_it_says_that_it_reads_nodes_only() -> None:
    class OfNodes(Made):
        reads_nodes_only = True

    safe, fast = filter_of(of(raises)), filter_of(GuardedPlugin(OfNodes(raises)))
    assert (safe.ignores_like_pods(POD, VIEW), safe.tells_apart(POD), safe.needs_company(POD, VIEW)) == (
        False,
        POD.uid,
        True,
    )
    assert (fast.ignores_like_pods(POD, VIEW), fast.tells_apart(POD), fast.needs_company(POD, VIEW)) == (
        True,
        None,
        False,
    )


BINDINGS = {
    "goes on": (lambda node: "", Code.SUCCESS, ""),
    "says no": (lambda node: f"no licence for {node}", Code.UNSCHEDULABLE, "plugin Made: no licence for a"),
    "raises": (raises, Code.ERROR, "plugin Made failed in pre_bind: ValueError: a mistake"),
    "is late": (hangs, Code.ERROR, "plugin Made failed in pre_bind: no answer within 0.05 s"),
    "nonsense": (lambda node: None, Code.ERROR, "plugin Made failed in pre_bind: it returned None"),
}


@pytest.mark.parametrize(("answer", "code", "why"), BINDINGS.values(), ids=BINDINGS)
def test_work_before_binding_lets_the_pod_go_on_or_not(answer: Any, code: Code, why: str) -> None:
    guard, skipped = of(answer), of(answer, "skip")
    assert guard.pre_bind is not None and skipped.pre_bind is not None
    status = asyncio.run(guard.pre_bind.pre_bind(POD, "a"))
    assert status.code is code and status.reason.startswith(why)
    if code is Code.ERROR:
        assert asyncio.run(skipped.pre_bind.pre_bind(POD, "a")).is_success and len(skipped.failures) == 1


def test_what_fails_after_binding_is_only_reported() -> None:
    for answer, kind in ((raises, "raised"), (hangs, "late")):
        guard = of(answer)
        assert guard.post_bind is not None
        guard.post_bind.post_bind(POD, "a")
        assert guard.failures == {("post_bind", kind): 1}


def test_it_has_the_points_that_it_overrides() -> None:
    class Quiet(NodePlugin):
        name = "Quiet"

        def post_bind(self, pod: PodInfo, node: str) -> None: ...

    guard = GuardedPlugin(Quiet(None))
    assert (guard.filter, guard.score, guard.pre_bind) == (None, None, None) and guard.post_bind is not None
