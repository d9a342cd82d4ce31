"""Usage from a history played as if it were now, and how a service's pods are found in Prometheus."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from forecast.service_key import ServiceKey
from forecast_scheduler.commands.scorer.usage_sources import PrometheusUsage, RecordedUsage, pods_of_service
from tests.synthetic import synthetic_history

HISTORY = synthetic_history(n_days=3)
MIDNIGHT = HISTORY.calendar.midnight(HISTORY.days[1])


def source(hours: float) -> RecordedUsage:
    return RecordedUsage(HISTORY, clock=lambda: MIDNIGHT.timestamp() + 3600 * hours)


MIDDLE = (
    0.25 + 150 / 3600
)  # hours from the start of a half hour until the middle of the window is that of the half hour


@pytest.mark.parametrize(
    ("hours", "day", "slot", "part"),
    [(17.0 + MIDDLE, 1, 34, 0), (17.25 + MIDDLE, 1, 34, 0.5), (17.0, 1, 33, 0.5 - 1 / 12), (MIDDLE - 0.5, 0, 47, 0)],
)
def test_usage_now_goes_over_evenly_between_half_hours(hours: float, day: int, slot: int, part: float) -> None:
    read = source(hours).read()
    assert read.nodes == HISTORY.nodes
    usage = HISTORY.node_usage[:, :, day]
    expected = usage[:, :, slot] if not part else (1 - part) * usage[:, :, slot] + part * usage[:, :, slot + 1]
    np.testing.assert_allclose(read.usage, expected, rtol=1e-5)
    assert (read.sampled == MIDNIGHT.timestamp() + 3600 * hours).all()


@pytest.mark.parametrize(
    ("kind", "its_own", "others"),
    [
        ("Deployment", ["cart.v2-7d9f8b6c5d-x2x4z"], ["cart.v2-api-7d9f8b6c5d-x2x4z", "cart-v2-7d9f8b6c5d-x2x4z"]),
        ("StatefulSet", ["cart.v2-0", "cart.v2-17"], ["cart.v2-a", "xcart.v2-0", "cart.v2-0-1"]),
        ("DaemonSet", ["cart.v2-x2x4z"], ["cart.v2-7d9f8b6c5d-x2x4z"]),
        ("CronJob", ["cart.v2-28540000-x2x4z"], ["cart.v2-x2x4z"]),
        ("Job", ["cart.v2-x2x4z", "cart.v2-3-x2x4z"], ["cart.v2-28540000-7-x2x4z"]),
        ("Pod", ["cart.v2-7"], ["cart.v2-77"]),
    ],
)
def test_pods_are_found_by_how_their_owner_names_them(kind: str, its_own: list[str], others: list[str]) -> None:
    written = pods_of_service(ServiceKey("shop", kind, "cart.v2"), ["cart.v2-7"])
    # PromQL reads a string in double quotes before it reads the expression in it.
    pattern = "|".join(written).replace("\\\\", "\\")
    assert [name for name in its_own + others if re.fullmatch(pattern, name)] == its_own


def test_only_what_was_recorded_is_measured() -> None:
    for hours in (-30.0, 24.0 * 9):
        assert np.isnan(source(hours).read().usage).all()
    since = MIDNIGHT - timedelta(hours=1)
    node = source(17).node_history(["elsewhere", "node-1"], since, since + timedelta(hours=2))
    expected = np.concatenate([HISTORY.node_usage[1, :, 0, 46:], HISTORY.node_usage[1, :, 1, :2]], axis=1)
    np.testing.assert_allclose(node, expected)
    service = source(17).service_history(HISTORY.services[2], [], MIDNIGHT, MIDNIGHT + timedelta(days=1))
    np.testing.assert_allclose(service, 4 * HISTORY.usage_per_pod[2, :, 1])
    for nobody in (
        source(17).node_history(["elsewhere"], since, MIDNIGHT),
        source(17).service_history(ServiceKey("a", "b", "c"), [], since, MIDNIGHT),
    ):
        assert nobody.shape == (5, 2)
        assert np.isnan(nobody).all()
    assert source(17).node_history(["node-1"], MIDNIGHT, since).shape == (5, 0)
    assert pods_of_service(ServiceKey("shop", "Widget", "x"), []) == ["none"]


@pytest.mark.parametrize(("told", "taken"), [([7.0, np.nan], [7.0, np.nan]), ([np.nan, np.nan], [99.0, 99.0])])
def test_only_where_a_server_tells_no_times_samples_are_taken_to_be_of_now(
    told: list[float], taken: list[float]
) -> None:
    """One node without a time beside others with one: its exporter is dead, and its rates live on for a while."""

    class Live:
        def read(self) -> Any:
            class Now:
                nodes, usage, sampled = ("a", "b"), np.ones((2, 5)), np.array(told)

            return Now

    source = PrometheusUsage(Live(), clock=lambda: 99.0)  # type: ignore[arg-type]
    np.testing.assert_array_equal(source.read().sampled, taken)
