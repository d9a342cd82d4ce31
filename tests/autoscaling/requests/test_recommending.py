"""Requests by the forecast cover the busy hours, leave some services alone, and follow the clock where it pays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.autoscale_settings import RequestOptions
from autoscaling.requests.recommendation_report import savings_of
from autoscaling.requests.recommending import ALWAYS, LeftAlone, error_shares, recommend
from base.excluded import ExcludedOptions
from forecast.resources import CPU
from testing.constants import with_constants
from tests.autoscaling.requests.made_up_use import EVENING, GIB, N_SLOTS, use_with

CONSTANT = np.full(N_SLOTS, 0.4)
EVENINGS = np.where(EVENING, 0.8, 0.1)
NIGHTS = np.where(EVENING, 0.1, 0.4)
NONE = ExcludedOptions()
ONE_NUMBER = with_constants(RequestOptions(), clock_pays=1.0, errors=0.0)


def test_a_constant_service_requests_its_use_over_the_hot_limit() -> None:
    (found,) = recommend(use_with({"a": CONSTANT}), ONE_NUMBER, 0.8, NONE)
    assert found.cores == {ALWAYS: pytest.approx(0.5)}
    assert not found.has_clock
    (cautious,) = recommend(use_with({"a": CONSTANT}), ONE_NUMBER, 0.4, NONE)
    assert cautious.cores == {ALWAYS: pytest.approx(1.0)}


def test_pods_of_a_full_node_cover_its_error_together() -> None:
    std, errors = 0.08, 3.0
    (found,) = recommend(use_with({"a": CONSTANT}, std=std), with_constants(ONE_NUMBER, errors=errors), 0.8, NONE)
    pods = 20 // found.once  # on a node of 20 cores
    assert 0.5 < found.once < (0.4 + errors * std) / 0.8
    assert pods * 0.4 + errors * np.sqrt(pods) * std <= 0.8 * 20
    use = use_with({"calm": CONSTANT, "bursty": CONSTANT})
    use.std[0, CPU], use.std[1, CPU] = 0.02, 0.2
    calm, bursty = error_shares(use, CPU, 0.8)[:, 0]
    assert bursty == pytest.approx(100 * calm), "who bursts bears most of it"


def test_a_service_of_the_night_requests_what_it_adds_to_the_busy_evening() -> None:
    use = use_with({"evening": EVENINGS, "night": NIGHTS})
    night = recommend(use, ONE_NUMBER, 0.8, NONE)[1]
    alike = recommend(use, with_constants(ONE_NUMBER, quiet_discount=0.0), 0.8, NONE)[1]
    assert alike.once == pytest.approx(0.5)
    assert night.once == pytest.approx(0.5), "its median is the floor"
    lower = recommend(use, with_constants(ONE_NUMBER, least_quantile=0.0), 0.8, NONE)[1]
    assert 0.1 / 0.8 <= lower.once < 0.2


def test_nodes_full_of_these_requests_stay_cool_in_the_busy_hours() -> None:
    use = use_with({"evening": EVENINGS, "night": NIGHTS, "constant": CONSTANT})
    requested = np.array([one.once for one in recommend(use, ONE_NUMBER, 0.8, NONE)])
    for pods in ([3.0, 1.0, 2.0], [1.0, 0.0, 1.0]):
        times = use.allocatable[CPU] / (requested @ pods)
        evening = (use.mean[:, CPU] * times * np.array(pods)[:, None]).sum(axis=0)[EVENING]
        assert evening.max() <= 0.8 * use.capacity[CPU] * (1 + 1e-9)


def test_a_request_stands_for_a_part_of_the_disk() -> None:
    # 4 of 1000 bytes/s of the cluster at the hot limit: 0.5 of its 100 cores.
    use = use_with({"a": np.full(N_SLOTS, 0.1)}, disk={"a": np.full(N_SLOTS, 4.0)})
    assert recommend(use, with_constants(ONE_NUMBER, carried=1.0), 0.8, NONE)[0].once == pytest.approx(0.5)
    assert recommend(use, with_constants(ONE_NUMBER, carried=0.5), 0.8, NONE)[0].once == pytest.approx(0.25)
    assert recommend(use, with_constants(ONE_NUMBER, carried=0.0), 0.8, NONE)[0].once == pytest.approx(0.13)


def test_memory_has_a_margin_and_is_never_below_what_was_used() -> None:
    use = replace(use_with({"a": CONSTANT}), highest_memory=np.array([3 * GIB]))
    (found,) = recommend(use, RequestOptions(), 0.8, NONE)
    assert found.memory_bytes is not None
    assert 3.3 * GIB <= found.memory_bytes <= 3.4 * GIB


def test_the_clock_is_used_where_it_pays() -> None:
    use = use_with({"evening": EVENINGS, "constant": CONSTANT})
    evening, constant = recommend(use, with_constants(RequestOptions(), errors=0.0), 0.8, NONE)
    assert evening.has_clock
    assert not constant.has_clock
    assert evening.cores["17-24"] == evening.once == pytest.approx(1.0)
    assert evening.cores["00-07"] == pytest.approx(0.13)
    assert evening.by_slot[EVENING].min() == evening.once
    assert (evening.by_slot >= EVENINGS / 0.8 - 1e-9).all()
    weekends = np.where(np.arange(N_SLOTS) < 5 * 48, 0.8, 0.1)
    (found,) = recommend(use_with({"a": weekends}), with_constants(RequestOptions(), errors=0.0), 0.8, NONE)
    assert set(found.cores) == {"workdays", "weekends"}


@pytest.mark.parametrize(
    ("kind", "because"),
    [("CronJob", LeftAlone.ENDS), ("Job", LeftAlone.ENDS), ("DaemonSet", LeftAlone.NODES_OWN), ("Deployment", None)],
)
def test_some_kinds_and_services_without_measurements_or_pods_are_left_alone(
    kind: str, because: LeftAlone | None
) -> None:
    use = use_with({"a": CONSTANT, "b": CONSTANT, "c": CONSTANT}, kind=kind)
    use.measured[0] = False
    use.replicas[1] = 0
    use.measured[2, 1] = False
    a, b, c = recommend(use, RequestOptions(), 0.8, NONE)
    if because is None:
        assert (a.because, b.because, c.because) == (LeftAlone.NOT_MEASURED, LeftAlone.ABSENT, None)
        assert c.memory_bytes is None and c.request[1] == c.today[1]
    else:
        assert c.because is because and c.request == c.today


def test_an_excluded_service_is_left_alone() -> None:
    use = use_with({"a": CONSTANT, "b": CONSTANT})
    service = use.services[1]
    a, b = recommend(use, RequestOptions(), 0.8, ExcludedOptions(services=(f"{service.namespace}/{service.name}",)))
    assert (a.because, b.because) == (None, LeftAlone.EXCLUDED) and b.request == b.today


@given(st.floats(0.0, 10.0), st.floats(0.0, 1.0), st.floats(0.0, 3.0))
def test_a_request_is_never_below_the_quantile_of_its_own_use(discount: float, quantile: float, errors: float) -> None:
    use = use_with({"evening": EVENINGS, "night": NIGHTS})
    options = with_constants(RequestOptions(), quiet_discount=discount, least_quantile=quantile, errors=errors)
    for row, found in enumerate(recommend(use, with_constants(options, clock_pays=1.0), 0.8, NONE)):
        assert found.once >= np.quantile(use.mean[row, CPU], quantile) * (1 - 1e-9)


def test_savings_count_pods_and_what_more_would_fit() -> None:
    use = use_with({"a": CONSTANT})
    savings = savings_of(use, recommend(use, ONE_NUMBER, 0.8, NONE))
    assert savings.today == (10.0, 20 * GIB)
    assert savings.recommended[0] == pytest.approx(5.0)
    assert savings.fit_today == pytest.approx(100.0)
    assert savings.fit_recommended == pytest.approx(200.0)
    assert savings.to_json()["pods_fit_recommended"] == 200


def test_throttled_services_request_what_their_pods_used_at_all_hours() -> None:
    use = use_with({"free": EVENINGS, "held": EVENINGS})
    use.hidden.throttled[1], use.hidden.cores[1] = 0.31, 1.5
    free, held = recommend(use, with_constants(ONE_NUMBER, clock_pays=0.1), 0.8, NONE)
    assert free.has_clock and free.once == pytest.approx(1.0) and free.hidden == ()
    assert held.cores == {ALWAYS: pytest.approx(1.5)} and held.once == pytest.approx(1.5)
    assert held.hidden == (
        "throttled in 31 % of its peak half hours: real demand is hidden, at least 1.5 cores per pod",
    )


def test_what_throttled_pods_used_lowers_no_request() -> None:
    use = use_with({"a": CONSTANT})
    use.hidden.throttled[0], use.hidden.cores[0] = 0.1, 0.2
    assert recommend(use, ONE_NUMBER, 0.8, NONE)[0].once == pytest.approx(0.5)


def test_memory_is_at_least_that_of_an_oom_kill_and_the_margin() -> None:
    use = use_with({"a": CONSTANT, "b": CONSTANT, "c": CONSTANT})
    use.hidden.oom_kills[:2], use.hidden.oom_bytes[0] = 3, 2 * GIB
    killed, unknown, calm = recommend(use, ONE_NUMBER, 0.8, NONE)
    assert killed.memory_bytes is not None and calm.memory_bytes is not None
    assert 2.2 * GIB <= killed.memory_bytes < 2.3 * GIB
    assert unknown.memory_bytes == calm.memory_bytes and unknown.hidden and not calm.hidden
