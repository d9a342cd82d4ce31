"""The load of a node beside its pods."""

from __future__ import annotations

import numpy as np
import pytest

from forecast.calendar import Days
from forecast.node_base import fit_node_base

DAYS = Days(np.arange(14) % 7, np.select([np.arange(14) % 7 == 5, np.arange(14) % 7 == 6], [1, 2], 0))


def test_base_is_what_the_pods_leave_unexplained() -> None:
    total, pods = np.full((2, 5, 14, 48), 5.0), np.full((2, 5, 14, 48), 4.0)
    base = fit_node_base(total, pods, np.full((2, 5), 10.0), DAYS)
    assert base.profile == pytest.approx(np.ones((2, 5, 4, 48))) and base.std.max() < 1e-9


def test_a_node_without_data_gets_the_others_share_of_its_capacity() -> None:
    total, pods = np.full((3, 5, 14, 48), 5.0), np.full((3, 5, 14, 48), 4.0)
    total[2], pods[2] = np.nan, np.nan
    base = fit_node_base(total, pods, np.array([[10.0] * 5, [10.0] * 5, [40.0] * 5]), DAYS)
    assert base.profile[2] == pytest.approx(np.full((5, 4, 48), 4.0))


def test_pods_that_add_up_to_more_than_the_node_leave_no_negative_base() -> None:
    base = fit_node_base(np.ones((1, 5, 14, 48)), np.full((1, 5, 14, 48), 2.0), np.full((1, 5), 10.0), DAYS)
    assert (base.profile == 0).all()


def test_a_resource_never_measured_has_no_base() -> None:
    nothing = np.full((1, 5, 14, 48), np.nan)
    base = fit_node_base(nothing, nothing, np.full((1, 5), np.nan), DAYS)
    assert (base.profile == 0).all() and (base.std == 0).all()


def test_slots_whose_pods_went_unmeasured_do_not_count() -> None:
    total, pods = np.full((2, 5, 14, 48), 5.0), np.full((2, 5, 14, 48), 4.0)
    pods[0, :, 3:6] = np.nan
    pods[1] = np.nan  # a node whose pods are never measured takes the other's share
    base = fit_node_base(total, pods, np.array([[10.0] * 5, [20.0] * 5]), DAYS)
    assert base.profile[0] == pytest.approx(np.ones((5, 4, 48))) and base.std.max() < 1e-9
    assert base.profile[1] == pytest.approx(np.full((5, 4, 48), 2.0))


def test_the_base_of_a_resource_never_measured_per_pod_is_the_node_total() -> None:
    total, pods = np.full((2, 5, 14, 48), 5.0), np.full((2, 5, 14, 48), 4.0)
    pods[:, 3] = np.nan
    # The second node has no pods in the first week: their sum is 0 there, which is no measurement of any pod.
    total[1, :, :7], pods[1, :, :7] = 1.0, 0.0
    base = fit_node_base(total, pods, np.full((2, 5), 10.0), DAYS)
    assert base.profile[0, 3] == pytest.approx(np.full((4, 48), 5.0))
    assert base.profile[1, 3] == pytest.approx(np.full((4, 48), 3.0))
    assert base.profile[:, [0, 1, 2, 4]] == pytest.approx(np.ones((2, 4, 4, 48)))
