"""What is moved, and what is left where it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from base.errors import InputError
from rebalancer.planning.planner import plan
from rebalancer.rebalance_settings import PlanningOptions
from tests.rebalancer.planning.small_problem import cpu_problem

OPTIONS = PlanningOptions()


def test_a_pod_leaves_the_hot_node_for_the_coolest() -> None:
    found = plan(cpu_problem([(0, 5.0), (0, 5.0), (1, 3.0)], [10.0, 10.0, 10.0]), OPTIONS)
    assert [(move.source, move.target) for move in found.moves] == [(0, 2)]
    assert (found.hot_before, found.hot_after) == (4, 0)
    assert found.heat_after == 0.0
    assert found.heat_before == pytest.approx(4 * 1.8)
    assert "node 0 is expected at 100% of cpu in slot 0" in found.moves[0].reason


def test_the_target_is_chosen_by_share_of_its_own_capacity() -> None:
    found = plan(cpu_problem([(0, 10.0), (0, 10.0), (1, 1.0), (2, 20.0)], [20.0, 10.0, 80.0]), OPTIONS)
    assert [move.target for move in found.moves] == [2]


def test_a_gain_within_the_price_is_left() -> None:
    hot = cpu_problem([(0, 5.0), (0, 5.0)], [10.0, 10.0])
    assert len(plan(hot, OPTIONS).moves) == 1
    assert plan(hot, replace(OPTIONS, least_gain=8.0)).moves == ()
    assert plan(replace(hot, pods=replace(hot.pods, cost=np.full(2, 8.0))), OPTIONS).moves == ()
    assert plan(replace(hot, pods=replace(hot.pods, cost=np.full(2, np.inf))), OPTIONS).most_gain == 0.0


def test_columns_that_do_not_fit_together_are_refused() -> None:
    good = cpu_problem([(0, 5.0)], [10.0])
    with pytest.raises(InputError, match="margin of the problem has the axes"):
        plan(replace(good, margin=good.margin[:, :, :2]), OPTIONS)
    with pytest.raises(InputError, match="usage of the problem holds values that are not finite"):
        plan(replace(good, usage=good.usage * np.nan), OPTIONS)
    with pytest.raises(InputError, match="write NaN where a resource is no limit"):
        plan(replace(good, capacity=good.capacity * 0), OPTIONS)
