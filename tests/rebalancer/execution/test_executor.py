"""Plans are carried out once, whatever happens to the executor, its requests and the pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.client.api_answer import NO_ANSWER, ApiAnswer
from placement.reservations.watched_plans import MoveState
from rebalancer.execution.move_rooms import MoveRooms
from rebalancer.execution.plan_executor import Executor, MoveReport, StepResult
from rebalancer.execution.plan_progress import plan_step
from rebalancer.execution.plan_records import PlanRecords, RebalancePlan
from rebalancer.execution.plan_wire import (
    MoveSpec,
    MoveStatus,
    PlanMode,
    PlanPhase,
    PlanSpec,
    PlanStatus,
    Trigger,
    moment,
)
from rebalancer.rebalance_settings import ExecutionOptions
from testing.constants import with_constants
from tests.rebalancer.execution.small_cluster import Killed, SmallCluster, move_of, spec_of, states

T = TypeVar("T")

OPTIONS = with_constants(ExecutionOptions(), parallel=1, retry=2.0, refusal_deadline=40.0, ready_deadline=60)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end at once: the cluster is in memory, and pauses between tries are not waited for."""
    return asyncio.run(work)


def small_cluster(**fields: Any) -> SmallCluster:
    cluster = SmallCluster(**fields)
    for name in "abc":
        cluster.add_node(name)
    return cluster


def executor_of(cluster: SmallCluster, options: ExecutionOptions = OPTIONS, **arguments: Any) -> Executor:
    return Executor(cluster, PlanRecords(cluster), options, clock=lambda: cluster.now, **arguments)


def plan(cluster: SmallCluster, *moves: MoveSpec, name: str = "p", **fields: Any) -> None:
    run(PlanRecords(cluster).create(name, spec_of(cluster, *moves, **fields)))


def play(cluster: SmallCluster, executor: Executor, n_steps: int = 150, *, seconds: float = 1.0) -> StepResult:
    """Let the executor and the cluster take turns until all plans are over."""
    result = StepResult()
    for _ in range(n_steps):
        result = run(executor.step())
        if not result.active and not result.trouble:
            break
        cluster.tick(seconds)
    return result


def phase(cluster: SmallCluster, name: str = "p") -> str:
    return str(cluster.plans[name]["status"]["phase"])


def test_a_move_evicts_the_pod_and_ends_when_its_replacement_is_ready() -> None:
    cluster = small_cluster()
    (pod,) = cluster.add_app("cart", 1)
    reports: list[MoveReport] = []
    plan(cluster, move_of(pod))
    play(cluster, executor_of(cluster, report=reports.append))
    assert [one.record.state for one in reports] == ["evicting", "evicted", "replaced", "done"]
    (record,) = cluster.plans["p"]["status"]["moves"]
    assert record["node"] == "b" and record["replacement"] != pod["metadata"]["name"]
    assert record["evictedAt"] and record["endedAt"] and "known" not in record
    assert (phase(cluster), cluster.evicted) == (PlanPhase.COMPLETED, [pod["metadata"]["uid"]])


def test_the_intention_is_on_record_before_the_eviction_is_sent() -> None:
    cluster = small_cluster()
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod))
    seen: list[dict[str, str]] = []

    def note(number: int, when: str) -> bool:
        if cluster.requests[number].endswith("/eviction") and when == "before":
            seen.append(states(cluster))
        return False

    cluster.fault = note
    play(cluster, executor_of(cluster))
    assert seen == [{pod["metadata"]["name"]: "evicting"}]


def test_two_moves_of_a_service_are_never_under_way_together() -> None:
    cluster = small_cluster()
    pods = cluster.add_app("cart", 4)
    plan(cluster, *map(move_of, pods))
    executor = executor_of(cluster, OPTIONS.replace(parallel=4))
    for _ in range(200):
        run(executor.step())
        assert sum(one in ("evicting", "evicted", "replaced") for one in states(cluster).values()) <= 1
        cluster.tick()
    assert list(states(cluster).values()) == ["done"] * 4
    assert len({one["replacementUid"] for one in cluster.plans["p"]["status"]["moves"]}) == 4


def test_the_second_move_of_a_swap_waits_for_the_room() -> None:
    cluster = small_cluster(node_of=lambda pod: "b" if pod["metadata"]["labels"]["app"] == "cart" else "a")
    (first,), (second,) = cluster.add_app("cart", 1, "a"), cluster.add_app("mail", 1, "b")
    plan(cluster, move_of(first, "b", partner=1), move_of(second, "a", partner=0))
    executor = executor_of(cluster, OPTIONS.replace(parallel=2))
    run(executor.step())
    assert list(states(cluster)) == [first["metadata"]["name"]]
    play(cluster, executor)
    assert list(states(cluster).values()) == ["done", "done"]


def test_a_budget_that_says_no_is_asked_again_until_the_deadline() -> None:
    cluster = small_cluster(disruptions={"cart": 0})
    (pod,), (other,) = cluster.add_app("cart", 1), cluster.add_app("mail", 1, "b")
    plan(cluster, move_of(pod), move_of(other, "a", partner=0))
    play(cluster, executor_of(cluster, unsure_seconds=5))
    assert list(states(cluster).values()) == ["refused", "skipped"]
    assert not cluster.evicted and phase(cluster) == PlanPhase.COMPLETED
    refused, skipped = cluster.plans["p"]["status"]["moves"]
    assert refused["message"] == "needs it" and "is worth nothing without" in skipped["message"]
    assert sum(one.endswith("/eviction") for one in cluster.requests) > 10


def test_a_replacement_that_is_not_ready_stops_the_plan() -> None:
    cluster = small_cluster(is_ready=lambda pod: False)
    pods = [cluster.add_app(app, 1)[0] for app in ("cart", "shop", "mail")]
    plan(cluster, *map(move_of, pods))
    play(cluster, executor_of(cluster))
    assert list(states(cluster).values()) == ["stuck", "skipped", "skipped"]
    assert phase(cluster) == PlanPhase.STOPPED and len(cluster.evicted) == 1


def test_a_replacement_without_a_node_is_nominated_and_in_the_end_stuck() -> None:
    cluster = small_cluster(node_of=lambda pod: "")
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod))
    play(cluster, executor_of(cluster))
    (waiting,) = cluster.of_app("cart")
    assert waiting["status"]["nominatedNodeName"] == "b"
    assert list(states(cluster).values()) == ["stuck"]


def test_replacements_elsewhere_stop_the_plan_once_there_are_too_many() -> None:
    cluster = small_cluster(node_of=lambda pod: "c")
    pods = [cluster.add_app(f"app{n}", 1)[0] for n in range(4)]
    plan(cluster, *map(move_of, pods))
    play(cluster, executor_of(cluster))
    assert list(states(cluster).values()) == ["elsewhere", "elsewhere", "skipped", "skipped"]
    assert phase(cluster) == PlanPhase.STOPPED


def test_a_replacement_that_dies_is_replaced_by_the_next() -> None:
    cluster = small_cluster(is_ready=lambda pod: False)
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod))
    executor = executor_of(cluster)
    for _ in range(20):
        run(executor.step())
        cluster.tick()
    assert list(states(cluster).values()) == ["replaced"]
    (first,) = cluster.of_app("cart")
    first["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z"
    cluster.is_ready = lambda pod: True
    play(cluster, executor)
    (record,) = cluster.plans["p"]["status"]["moves"]
    assert record["state"] == "done" and record["replacement"] != first["metadata"]["name"]


def test_no_replacement_is_waited_for_if_the_service_was_scaled_down() -> None:
    cluster = small_cluster()
    pods = cluster.add_app("cart", 3, deployment=True)
    plan(cluster, move_of(pods[0]))
    executor = executor_of(cluster)
    while not cluster.evicted:
        run(executor.step())
        cluster.now += 1
    cluster.replicas["cart"] = 2
    play(cluster, executor)
    (record,) = cluster.plans["p"]["status"]["moves"]
    assert record["state"] == "done" and "no replacement is needed" in record["message"]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda cluster, pod: cluster.pods.clear(), "the pod is gone"),
        (lambda cluster, pod: pod["spec"].update(nodeName="c"), "the pod is on c"),
        (lambda cluster, pod: pod["metadata"].update(deletionTimestamp="2027-01-01T00:00:00Z"), "about to go"),
        (lambda cluster, pod: pod["metadata"].pop("ownerReferences"), "no controller"),
        (lambda cluster, pod: pod["metadata"].update(uid="another"), "the pod is gone"),
        (lambda cluster, pod: cluster.nodes.pop("b"), "there is no such node"),
        (lambda cluster, pod: cluster.add_node("b", ready=False), "the node is not ready"),
        (lambda cluster, pod: cluster.nodes["b"]["spec"].update(unschedulable=True), "cordoned"),
    ],
)
def test_a_move_that_is_not_as_planned_is_left_out(
    spoil: Callable[[SmallCluster, dict[str, Any]], object], why: str
) -> None:
    cluster = small_cluster()
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod))
    cluster.replicas.clear()
    spoil(cluster, pod)
    play(cluster, executor_of(cluster))
    (record,) = cluster.plans["p"]["status"]["moves"]
    assert record["state"] == "skipped" and why in record["message"]
    assert not cluster.evicted


def test_nothing_begins_against_the_caller_or_after_its_time() -> None:
    cluster = small_cluster()
    (first,), (second,) = cluster.add_app("cart", 1), cluster.add_app("mail", 1)
    plan(
        cluster,
        move_of(first),
        start_before=moment(cluster.now + 30),
    )
    executor = executor_of(cluster)
    assert run(executor.step(may_start=False)).active and not states(cluster)
    cluster.tick(60)
    run(executor.step())
    assert states(cluster) == {first["metadata"]["name"]: "skipped"}
    plan(cluster, move_of(second), name="q")
    play(cluster, executor_of(cluster, hindrance=lambda move: "its owner says never"))
    assert cluster.plans["q"]["status"]["moves"][0]["message"] == "its owner says never"


def test_a_budget_that_says_no_until_the_window_ends_keeps_the_pod() -> None:
    """Failed before: the eviction was tried for five minutes more, whatever the hour."""
    cluster = small_cluster(disruptions={"cart": 0})
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod), start_before=moment(cluster.now + 5))
    executor = executor_of(cluster)
    while cluster.now < 1_800_000_000 + 6:
        run(executor.step())
        cluster.tick()
    cluster.disruptions.clear()
    play(cluster, executor)
    (record,) = cluster.plans["p"]["status"]["moves"]
    assert (record["state"], cluster.evicted) == ("skipped", [])
    assert record["message"].endswith("ended before it went: needs it"), record


@pytest.mark.parametrize("part", ["GET /apis/forecast-scheduler.io/v1alpha1/rebalanceplans/p", "POST /apis/forecast"])
def test_a_process_that_stands_still_before_a_request_sends_it_no_more(part: str) -> None:
    """Between the decision and the eviction: while the plan is read once more, or while room is held."""
    cluster = small_cluster(reservations={})
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod), start_before=moment(cluster.now + 60))
    room = MoveRooms(cluster, lambda uid: {"cpu": 1.0}, clock=lambda: cluster.now)
    executor = executor_of(cluster, rooms=room)
    while list(states(cluster).values()) != ["evicting"]:
        run(executor.step())
    cluster.tick(1)

    def stands_still(number: int, when: str) -> bool:
        if when == "after" and cluster.requests[-1].startswith(part):
            cluster.now += 8 * 3600
        return False

    cluster.fault = stands_still
    play(cluster, executor)
    assert list(states(cluster).values()) == ["skipped"] and not cluster.evicted


def test_pods_that_cannot_be_listed_keep_no_place_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed before: a user who writes pods beyond what is read held one of two places until they were gone."""
    cluster = small_cluster()
    (first,), (second,) = cluster.add_app("cart", 1), cluster.add_app("mail", 1)
    plan(cluster, move_of(first), name="p")
    plan(cluster, move_of(second), name="q")
    answered = cluster._answer

    def refuses(method: str, path: str, body: dict[str, Any]) -> ApiAnswer:
        if method == "GET" and "pods?labelSelector=app%3Dcart" in path and cluster.evicted:
            return ApiAnswer(NO_ANSWER, text="larger than is read")
        return answered(method, path, body)

    monkeypatch.setattr(cluster, "_answer", refuses)
    play(cluster, executor_of(cluster))
    assert list(states(cluster).values()) == ["stuck"] and list(states(cluster, "q").values()) == ["done"]


def test_one_pod_that_breaks_a_request_fails_its_own_move_alone() -> None:
    cluster = small_cluster(reservations={})
    (first,), (second,) = cluster.add_app("cart", 1), cluster.add_app("mail", 1)
    plan(cluster, move_of(first), move_of(second))

    def requests_of(uid: str) -> dict[str, float]:
        if uid == first["metadata"]["uid"]:
            raise OverflowError("cannot convert float infinity to integer")
        return {"cpu": 1.0}

    rooms = MoveRooms(cluster, requests_of, clock=lambda: cluster.now)
    play(cluster, executor_of(cluster, rooms=rooms))
    assert list(states(cluster).values()) == ["refused", "done"]


@pytest.mark.parametrize(
    ("ended", "state", "stops"),
    [
        ({"a": ["stuck"]}, MoveState.STUCK, False),
        ({"a": ["stuck"], "b": ["stuck"]}, MoveState.STUCK, True),
        ({"a": ["elsewhere", "elsewhere", "elsewhere"]}, MoveState.ELSEWHERE, False),
        ({"a": ["elsewhere"], "b": ["elsewhere"]}, MoveState.ELSEWHERE, True),
    ],
)
def test_one_namespace_in_trouble_takes_the_night_from_no_other(
    ended: dict[str, list[str]], state: MoveState, stops: bool
) -> None:
    """Failed before: one pod that was never ready again stopped the plan of the whole cluster, every night."""
    moves = [
        MoveSpec(namespace, f"p{n}", f"{namespace}{n}", "Deployment/cart", source="x", to="y")
        for namespace in "abc"
        for n in range(4)
    ]
    at = moment(1.8e9)
    over = tuple(
        MoveStatus(f"{namespace}{n}", state, at) for namespace, all_ in ended.items() for n in range(len(all_))
    )
    spec = PlanSpec(at, Trigger.NIGHT, PlanMode.ON, tuple(moves))
    made = RebalancePlan("p", "uid", "1", at, spec, PlanStatus(moves=over))
    found = plan_step(made, 1.8e9, ExecutionOptions(parallel=9))
    assert {move.namespace for move in found.begin} == (set() if stops else set("abc") - set(ended))
    assert bool(found.status.stop) == stops
    left_out = {one.uid[0] for one in found.status.moves if one.state is MoveState.SKIPPED}
    assert left_out == (set("abc") if stops else set(ended))


def test_a_stopped_plan_ends_what_is_under_way() -> None:
    cluster = small_cluster()
    (first,), (second,) = cluster.add_app("cart", 1), cluster.add_app("mail", 1)
    plan(cluster, move_of(first), move_of(second))
    executor = executor_of(cluster)
    run(executor.step())
    run(executor.stop("p", "the peak begins"))
    play(cluster, executor)
    assert list(states(cluster).values()) == ["done", "skipped"] and phase(cluster) == PlanPhase.STOPPED


def test_an_executor_that_missed_a_change_of_the_record_evicts_nothing() -> None:
    """It led before, paused, and goes on while the next leader has given the move up."""
    cluster = small_cluster(disruptions={"cart": 0})
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod))
    paused = executor_of(cluster)
    run(paused.step())
    assert list(states(cluster).values()) == ["evicting"]
    play(cluster, executor_of(cluster, unsure_seconds=1))
    assert list(states(cluster).values()) == ["refused"]
    cluster.disruptions["cart"] = 1
    cluster.now -= 20  # its clock is behind: by its own deadline it may still evict
    assert "was changed by another client" in run(paused.step()).trouble
    assert not run(paused.step()).active and not cluster.evicted


@given(st.data())
def test_whatever_is_lost_no_pod_is_evicted_twice(data: st.DataObject) -> None:
    """Answers get lost, executors are killed, budgets change, and a second executor believes that it leads."""
    cluster = small_cluster(disruptions={"app0": 1, "app1": 0})
    pods = [cluster.add_app(f"app{n}", 2)[0] for n in range(3)]
    plan(cluster, *map(move_of, pods))
    faults = data.draw(st.dictionaries(st.integers(0, 250), st.sampled_from(["before", "after", "kill", "kill after"])))
    base = len(cluster.requests)

    def fault(at: int, when: str) -> bool:
        kind = faults.get(at - base, "")
        if kind == ("kill" if when == "before" else "kill after"):
            raise Killed
        return kind == when

    cluster.fault = fault
    options = OPTIONS.replace(parallel=data.draw(st.integers(1, 3)))
    executors = [executor_of(cluster, options), executor_of(cluster, options)]
    for _ in range(data.draw(st.integers(20, 60))):
        which = data.draw(st.integers(0, 3)) // 3  # mostly the first
        try:
            run(executors[which].step())
        except Killed:
            executors[which] = executor_of(cluster, options)
        if data.draw(st.integers(0, 19)) == 0:
            cluster.disruptions["app1"] = 1 - cluster.disruptions["app1"]
        cluster.tick(data.draw(st.sampled_from([0.2, 1.0, 5.0])))
        assert len(cluster.evicted) == len(set(cluster.evicted))
        assert all(n >= 0 for n in cluster.disruptions.values())
    cluster.fault = lambda at, when: False
    last = executor_of(cluster, options)
    play(cluster, last, 300)
    final = {"done", "skipped", "refused", "elsewhere", "stuck"}
    assert set(states(cluster).values()) <= final and len(states(cluster)) == 3
    assert len(cluster.evicted) == len(set(cluster.evicted)) <= 3
    assert set(cluster.evicted) <= {one["metadata"]["uid"] for one in pods}
    assert all(one["spec"].get("nodeName") for one in cluster.pods.values())


def test_a_plan_that_cannot_be_read_is_left_out_and_named(caplog: pytest.LogCaptureFixture) -> None:
    cluster = SmallCluster()
    cluster.plans["odd"] = {"metadata": {"name": "odd"}, "spec": {"moves": "none"}}
    assert asyncio.run(PlanRecords(cluster).list()) == ()
    assert [record.plan for record in caplog.records] == ["odd"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("forbidden", ["/eviction", "-00002/status"], ids=["evictions", "nominations"])
def test_a_request_of_a_move_that_is_forbidden_is_reported_until_it_passes(forbidden: str) -> None:
    cluster = small_cluster(node_of=lambda pod: pod["status"].get("nominatedNodeName", ""), forbidden=forbidden)
    (pod,) = cluster.add_app("cart", 1)
    plan(cluster, move_of(pod))
    executor, troubles = executor_of(cluster, unsure_seconds=1), []
    for _ in range(15):
        troubles.append(run(executor.step()).trouble)
        cluster.tick()
    assert "not allowed" in troubles[-1] and "shop/cart-6b7c9d8f5-0000" in troubles[-1], troubles
    cluster.forbidden = ""
    assert play(cluster, executor).trouble == ""
    assert list(states(cluster).values()) == ["done"]
