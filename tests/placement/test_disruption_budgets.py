"""Which pods a budget means, and what it allows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.decoding.watched_kinds import UndecodableObject
from placement.disruption_budgets import WATCHED_BUDGETS, DisruptionBudget, DisruptionBudgets
from tests.scheduler.preemption.made_up import budget, pod


def decoded(spec: Any = None, status: Any = None) -> DisruptionBudget:
    body = {"metadata": {"name": "b", "namespace": "shop", "resourceVersion": "7"}, "spec": spec, "status": status}
    found, version = WATCHED_BUDGETS.decoded(json.dumps(body).encode())
    assert version == "7"
    return found


def test_what_matters_of_a_budget_is_read() -> None:
    selector = {"matchLabels": {"app": "db"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    status = {"disruptionsAllowed": 2, "disruptedPods": {"db-1": "2026-01-01T00:00:00Z"}, "expectedPods": 3}
    found = decoded({"minAvailable": "50%", "selector": selector}, status)
    assert (found.namespace, found.name, found.allowed, found.disrupted) == ("shop", "b", 2, frozenset({"db-1"}))
    assert found.means(pod("p", labels={"app": "db", "tier": "x"}))
    assert not found.means(pod("p", labels={"app": "db"}))


@pytest.mark.parametrize("spec", [None, {}, {"selector": None}, {"selector": {}}])
def test_a_budget_without_a_selector_means_no_pod(spec: Any) -> None:
    assert not decoded(spec).means(pod("p", labels={"app": "db"}))


def test_other_namespaces_and_pods_without_labels_are_not_meant() -> None:
    unlabelled = decoded({"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}})
    assert unlabelled.means(pod("p", labels={"x": "y"}))
    assert not unlabelled.means(pod("p"))
    assert not DisruptionBudget("other", "b", unlabelled.selector).means(pod("p", labels={"x": "y"}))


def test_an_operator_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(UndecodableObject, match="shop/b"):
        decoded({"selector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}})


def test_budgets_come_change_and_go() -> None:
    budgets = DisruptionBudgets()
    db, web = pod("db-1", labels={"app": "db"}), pod("web-1", labels={"app": "web"})
    budgets.replace([budget("db", allowed=1, app="db"), budget("web", allowed=0, app="web")])
    assert (budgets.numbers_of(db), budgets.numbers_of(web)) == ((0,), (1,))
    assert budgets.status() == {"shop/db": 1, "shop/web": 0}
    seen = budgets.selected
    budgets.put(budget("db", allowed=5, app="db"))
    assert budgets.selected == seen and budgets.allowed() == [5, 0]  # only what it allows has changed
    budgets.put(budget("db", allowed=5, app="web"))
    assert budgets.selected != seen and budgets.numbers_of(web) == (0, 1) and budgets.numbers_of(db) == ()
    budgets.replace([budget("new", allowed=3, app="db")])
    assert len(budgets) == 1 and sorted(budgets.allowed()) == [0, 3]
    assert len(budgets.numbers_of(db)) == 1 and budgets.numbers_of(web) == ()
    budgets.delete(budget("never-heard-of", allowed=0))
    budgets.delete(budget("new", allowed=0))
    assert len(budgets) == 0 and budgets.numbers_of(db) == ()


def test_what_is_allowed_for_a_pod_is_the_least_of_its_budgets() -> None:
    budgets = DisruptionBudgets()
    budgets.replace([budget("db", allowed=3, app="db"), budget("small", allowed=1, app="db")])
    assert budgets.allowed_for(pod("db-1", labels={"app": "db"})) == 1
    assert budgets.allowed_for(pod("web-1", labels={"app": "web"})) is None


def test_a_pod_of_several_budgets_uses_all_of_them_up() -> None:
    budgets = DisruptionBudgets()
    budgets.replace([budget("one", allowed=1, app="db"), budget("two", allowed=2, app="db")])
    pods = [pod(f"db-{i}", labels={"app": "db"}) for i in range(3)]
    assert budgets.violated_by(pods) == [False, True, True]
    assert budgets.violated_by(pods[1:], also_gone=pods[:1]) == [True, True]
    budgets.put(budget("one", allowed=1, disrupted=("db-0", "db-1"), app="db"))
    assert budgets.violated_by(pods) == [False, False, True]
