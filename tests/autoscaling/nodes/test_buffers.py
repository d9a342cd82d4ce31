"""Buffers hold what autoscaled services will add before a new node could be there, and no more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.autoscale_settings import BufferOptions
from autoscaling.nodes.buffers import buffers
from autoscaling.services_ahead import BUFFER_LABEL, pods_ahead
from kube.objects.constraints import PodConstraints, Toleration
from testing.constants import with_constants
from tests.autoscaling.nodes.made_up import GIB, at, ramp, services_ahead

OPTIONS = with_constants(BufferOptions(), lead=1800, margin=0.0, most_share=1.0)


def test_a_buffer_holds_the_pods_that_come_within_the_lead() -> None:
    ahead = services_ahead([10], [ramp(10, 30)])
    (found,) = buffers(ahead, at(8.5), OPTIONS)
    assert (found.cpu_cores, found.memory_bytes) == (1.0, 1.1e9)  # up to two digits
    assert found.chunks == 6  # 20 pods in two hours, and the 2.5 that are missing now slowly come, too


def test_nothing_is_kept_on_the_plateau_in_the_valley_or_in_the_descent() -> None:
    assert [one.chunks for one in buffers(services_ahead([10], [ramp(10, 30)]), at(5), OPTIONS)] == [0]
    assert [one.chunks for one in buffers(services_ahead([30], [ramp(10, 30)]), at(15), OPTIONS)] == [0]
    assert [one.chunks for one in buffers(services_ahead([30], [ramp(30, 10)]), at(9), OPTIONS)] == [0]


def test_more_pods_than_expected_grow_by_as_many_as_the_forecast_does() -> None:
    assert buffers(services_ahead([16], [ramp(10, 30)]), at(8), OPTIONS)[0].chunks == pytest.approx(4, abs=1)


def test_pods_that_go_make_room_for_pods_that_come() -> None:
    assert buffers(services_ahead([10, 30], [ramp(10, 30), ramp(30, 10)]), at(9), OPTIONS)[0].chunks == 0


def test_errors_of_services_partly_cancel_out() -> None:
    options = with_constants(OPTIONS, margin=1.0)
    one = buffers(services_ahead([100], [100], error=0.1), at(8), options)[0].chunks
    many = buffers(services_ahead([10] * 10, [10] * 10, error=0.1), at(8), options)[0].chunks
    assert (one, many) == (10, 4)  # 0.1 * 100, and 0.1 * 10 * the root of 10, rounded up


def test_only_autoscaled_services_and_no_placeholders_count() -> None:
    fixed = services_ahead([10], [ramp(10, 30)], autoscaled=[False])
    placeholder = services_ahead([10], [ramp(10, 30)], pods=[{"labels": {BUFFER_LABEL: "x"}}])
    assert buffers(fixed, at(8), OPTIONS) == buffers(placeholder, at(8), OPTIONS) == ()


def test_all_buffers_together_are_bounded() -> None:
    ahead = services_ahead([10, 10], [ramp(10, 90), ramp(10, 90)], pods=[{}, {"scheduler_name": "other"}])
    found = buffers(ahead, at(8), OPTIONS.replace(most_share=0.5))
    assert [one.chunks for one in found] == [5, 5]


def test_each_kind_of_needs_has_a_buffer_with_a_name_that_stays() -> None:
    gpu = {"requests": {"cpu": 1.0, "memory": GIB, "nvidia.com/gpu": 1.0}}
    given_to_all = Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute")
    arm = {"constraints": PodConstraints(node_selector=(("kubernetes.io/arch", "arm64"),))}
    plain = {"constraints": PodConstraints(tolerations=(given_to_all,))}
    ahead = services_ahead([1] * 4, [1] * 4, pods=[{}, plain, gpu, arm])
    found = buffers(ahead, at(8), OPTIONS)
    assert len({one.name for one in found}) == 3
    again = services_ahead([2] * 3, [1] * 3, pods=[arm, gpu, {}])
    assert [one.name for one in buffers(again, at(9), OPTIONS)] == [one.name for one in found]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.floats(0, 50), st.floats(0, 50)), min_size=1, max_size=5),
    st.floats(0, 23),
    st.floats(0.01, 1),
)
def test_a_buffer_is_never_negative_and_never_above_the_bound(
    services: list[tuple[int, float, float]], hour: float, most_share: float
) -> None:
    ahead = services_ahead([one[0] for one in services], [ramp(*one[1:]) for one in services], error=0.3)
    options = with_constants(OPTIONS, most_share=most_share, margin=1.0)
    kept = sum(one.chunks * one.cpu_cores for one in buffers(ahead, at(hour), options))
    assert 0 <= kept <= most_share * ahead.replicas.sum() + 1.0  # a chunk of one core that is begun


def test_pods_begin_with_those_that_are_there() -> None:
    ahead = services_ahead([7, 3], [ramp(10, 30), 5], autoscaled=[True, False], error=0.2)
    coming = pods_ahead(ahead, at(9), np.array([at(9), at(10)]))
    assert coming.pods[:, 0].tolist() == pytest.approx([7, 3])
    assert coming.pods[1].tolist() == [3, 3] and coming.std[1].tolist() == [0, 0]
    assert coming.std[0].tolist() == pytest.approx((0.2 * coming.pods[0]).tolist())
