"""A single replica moves by a surge of its Deployment, whose replicas are in the end as before."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from rebalancer.execution.executor import Executor
from rebalancer.execution.plan_records import PlanRecords
from rebalancer.execution.wire import Phase
from tests.rebalancer.execution.small_cluster import Killed, SmallCluster, move_of, states
from tests.rebalancer.execution.test_executor import OPTIONS, phase, plan, play, run, small_cluster


def executor_of(cluster: SmallCluster, **arguments: Any) -> Executor:
    return Executor(cluster, PlanRecords(cluster), OPTIONS, clock=lambda: cluster.now, unsure_seconds=3, **arguments)


def surged(**fields: Any) -> tuple[SmallCluster, dict[str, Any]]:
    """A cluster with a Deployment of one pod, and a plan that moves it by a surge."""
    cluster = small_cluster(**fields)
    (pod,) = cluster.add_app("cart", 1, deployment=True)
    plan(cluster, move_of(pod, surge=True))
    cluster.requests.clear()
    return cluster, pod


def _assert_as_before(cluster: SmallCluster) -> None:
    assert cluster.replicas["cart"] == 1
    assert "forecast-scheduler.io/surged-for" not in cluster.deployments["cart"]["metadata"]["annotations"]
    cluster.tick()
    cluster.tick()
    assert len(cluster.of_app("cart")) == 1


def test_the_new_pod_is_ready_on_the_target_before_the_old_one_goes() -> None:
    cluster, pod = surged()
    executor = executor_of(cluster)
    for _ in range(40):
        run(executor.step())
        cluster.tick()
        ready = [one for one in cluster.of_app("cart") if one["status"]["phase"] == "Running"]
        assert ready, "the service had no pod for a moment"
    assert list(states(cluster).values()) == ["done"] and not cluster.evicted
    _assert_as_before(cluster)
    (left,) = cluster.of_app("cart")
    assert left["metadata"]["uid"] != pod["metadata"]["uid"] and left["spec"]["nodeName"] == "b"


def test_budgets_are_asked_before_the_old_pod_goes() -> None:
    cluster, pod = surged(disruptions={"cart": 0})
    play(cluster, executor_of(cluster))
    assert list(states(cluster).values()) == ["refused"]
    _assert_as_before(cluster)
    assert [one["metadata"]["uid"] for one in cluster.of_app("cart")] == [pod["metadata"]["uid"]]


@pytest.mark.parametrize(
    ("fields", "state", "a_phase"),
    [
        ({"node_of": lambda pod: "c"}, "elsewhere", Phase.COMPLETED),
        ({"is_ready": lambda pod: False}, "stuck", Phase.STOPPED),
        ({"node_of": lambda pod: ""}, "stuck", Phase.STOPPED),
        ({"forbidden": "PATCH /apis/apps"}, "refused", Phase.COMPLETED),  # it could not be scaled up
    ],
)
def test_a_surge_that_fails_is_withdrawn(fields: dict[str, Any], state: str, a_phase: Phase) -> None:
    cluster, pod = surged(**fields)
    play(cluster, executor_of(cluster))
    assert list(states(cluster).values()) == [state] and phase(cluster) == a_phase
    _assert_as_before(cluster)
    assert [one["metadata"]["uid"] for one in cluster.of_app("cart")] == [pod["metadata"]["uid"]]


def test_an_autoscaler_or_an_owner_without_the_annotation_is_left_alone() -> None:
    cluster, _ = surged()
    target = {"kind": "Deployment", "name": "cart"}
    cluster.autoscalers.append({"metadata": {"name": "cart-hpa"}, "spec": {"scaleTargetRef": target}})
    play(cluster, executor_of(cluster))
    assert "HorizontalPodAutoscaler cart-hpa decides" in cluster.plans["p"]["status"]["moves"][0]["message"]
    cluster, _ = surged()
    cluster.deployments["cart"]["metadata"]["annotations"].clear()
    play(cluster, executor_of(cluster))
    assert "does not allow a surge" in cluster.plans["p"]["status"]["moves"][0]["message"]
    assert cluster.replicas["cart"] == 1


@pytest.mark.parametrize("state", ["surging", "evicting"])
def test_a_plan_that_is_deleted_in_the_middle_of_a_surge_leaves_no_replica_too_many(state: str) -> None:
    """Failed before: nothing knew of the additional replica any more."""
    cluster, pod = surged(disruptions={"cart": 0})  # so that `evicting` lasts
    executor = executor_of(cluster)
    for _ in range(20):
        run(executor.step())
        cluster.tick()
        if list(states(cluster).values()) == [state] and cluster.replicas["cart"] == 2:
            break
    assert list(states(cluster).values()) == [state]
    del cluster.plans["p"]
    play(cluster, executor)
    _assert_as_before(cluster)
    assert [one["metadata"]["uid"] for one in cluster.of_app("cart")] == [pod["metadata"]["uid"]]


def test_replicas_that_another_client_sets_meanwhile_stay() -> None:
    cluster, _ = surged(is_ready=lambda pod: False)
    executor = executor_of(cluster)
    while cluster.replicas["cart"] == 1:
        run(executor.step())
        cluster.tick()
    cluster.replicas["cart"] = 5
    play(cluster, executor)
    assert list(states(cluster).values()) == ["skipped"] and cluster.replicas["cart"] == 5
    assert "forecast-scheduler.io/surged-for" not in cluster.deployments["cart"]["metadata"]["annotations"]


@pytest.mark.parametrize("replicas", [0, 5])
def test_replicas_that_its_owner_sets_while_the_old_pod_goes_stay(replicas: int) -> None:
    cluster, pod = surged()
    executor = executor_of(cluster)
    while list(states(cluster).values()) != ["evicting"]:
        run(executor.step())
        cluster.tick()
    cluster.replicas["cart"] = replicas
    pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"
    play(cluster, executor)
    assert list(states(cluster).values()) == ["skipped"] and cluster.replicas["cart"] == replicas
    assert "forecast-scheduler.io/surged-for" not in cluster.deployments["cart"]["metadata"]["annotations"]


@pytest.mark.parametrize("is_kill", [True, False], ids=["kill", "lost answer"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_or_loss_at_any_request_of_a_surge_ends_with_the_recorded_number(when: str, is_kill: bool) -> None:
    cluster, _ = surged()
    play(cluster, executor_of(cluster))
    n_requests = len(cluster.requests)
    for number in range(n_requests):
        cluster, _ = surged()

        def fault(at: int, now: str, number: int = number) -> bool:
            if (at, now) == (number, when) and is_kill:
                raise Killed
            return (at, now) == (number, when)

        cluster.fault = fault
        with pytest.raises(Killed) if is_kill else nullcontext():
            play(cluster, executor_of(cluster))
        cluster.tick()
        cluster.fault = lambda at, now: False
        play(cluster, executor_of(cluster))
        assert list(states(cluster).values()) == ["done"], (number, cluster.plans["p"]["status"])
        _assert_as_before(cluster)
