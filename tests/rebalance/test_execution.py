"""Plans on a real control plane: budgets are honoured, and no kill evicts a pod twice or leaves one without a node."""

from __future__ import annotations

import signal
import time

import pytest

from rebalancer.execution.plan_wire import MoveSpec, PlanMode, PlanSpec, Trigger, moment
from testing.waiting import eventually
from tests.rebalance.conftest import PLANS, Site, plan_object


def _uids(pods: list[dict[str, object]]) -> set[str]:
    return {one["metadata"]["uid"] for one in pods}  # type: ignore[index]


def _assert_moved(site: Site, app: str, before: list[dict[str, object]], n_moved: int) -> None:
    """Just the pods of the plan went, each once: no replacement was evicted, and all run on the target."""
    assert site.states() == ["done"] * n_moved, site.status()
    assert set(site.kubelets.gone) == _uids(before[:n_moved])
    now = site.pods(app)
    assert len(now) == len(before)
    assert all(one["spec"].get("nodeName") == "b" for one in now if one["metadata"]["uid"] not in _uids(before))


def test_a_budget_decides(site: Site) -> None:
    pods = site.deploy("cart", 2)
    site.budget("cart", 2)
    site.open_target()
    site.plan(pods[:1])
    assert site.driven(patience=10) == 0
    assert site.states() == ["refused"], site.status()
    assert "disruption budget" in site.status()["moves"][0]["message"] and not site.kubelets.gone
    found = site.writer.list_all("poddisruptionbudgets")[0]
    site.writer.delete({"kind": "PodDisruptionBudget"} | found)
    site.budget("cart", 1)
    site.plan(pods, "q")  # of both replicas, one after the other
    lowest = 2
    process = site.drive()
    while process.is_alive():
        lowest = min(lowest, len(site.ready("cart")))
        time.sleep(0.05)
    assert site.states("q") == ["done", "done"] and lowest >= 1
    assert set(site.kubelets.gone) == _uids(pods)


@pytest.mark.long
def test_a_kill_at_every_write_costs_nothing(site: Site) -> None:
    """Each driver dies at its first write, in turn before and after it: the plan passes all boundaries."""
    n_moves, pods = 3, site.deploy("cart", 4)
    site.budget("cart", 3)
    site.open_target()
    site.plan(pods[:n_moves])
    n_kills = 0
    while True:
        if (code := site.driven("after" if n_kills % 2 else "before")) == 0:
            break
        assert code == -signal.SIGKILL
        n_kills += 1
    assert n_kills >= 10 * n_moves - 2, n_kills  # evicting, the eviction, evicted, replaced, done: each twice
    _assert_moved(site, "cart", pods, n_moves)


@pytest.mark.long
def test_a_single_replica_moves_by_a_surge(site: Site) -> None:
    pods = site.deploy("cart", 1, **{"forecast-scheduler.io/move-by-surge": "true"})
    site.budget("cart", 1)  # an eviction alone would be refused for ever
    site.open_target()
    site.plan(pods, surge=True)
    process = site.drive()
    while process.is_alive():
        assert site.ready("cart")
        time.sleep(0.05)
    assert eventually(lambda: len(site.pods("cart")) == 1)
    _assert_moved(site, "cart", pods, 1)
    (deployment,) = site.writer.list_all("deployments")
    assert deployment["spec"]["replicas"] == 1
    assert "forecast-scheduler.io/surged-for" not in deployment["metadata"].get("annotations", {})


def _spec(n_moves: int) -> PlanSpec:
    moves = tuple(
        MoveSpec(
            "n" * 63,
            "p" * 253,
            f"{n:064d}",
            f"{'s' * 126}/{'s' * 126}",
            source="a" * 253,
            to="b" * 253,
            reason="r" * 512,
        )
        for n in range(n_moves)
    )
    return PlanSpec(created_at=moment(1.8e9), trigger=Trigger.NIGHT, mode=PlanMode.ON, moves=moves)


@pytest.mark.long
def test_a_plan_as_large_as_the_schema_allows_is_accepted_and_never_changes(site: Site) -> None:
    largest = plan_object("largest", _spec(500))
    answer = site.resources.request("POST", f"{PLANS}?fieldValidation=Strict", largest)
    assert (answer.status, answer.warnings) == (201, ()), answer.message
    changed = answer.body | {"spec": answer.body["spec"] | {"mode": "shadow"}}
    refused = site.resources.request("PUT", f"{PLANS}/largest", changed)
    assert refused.status == 422 and "a plan cannot be changed" in refused.message
    beyond = site.resources.request("POST", PLANS, plan_object("beyond", _spec(501)))
    assert beyond.status == 422 and "spec.moves" in beyond.message
