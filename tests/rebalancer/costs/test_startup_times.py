"""Start-up times of services, learned from pods that pass by."""

from __future__ import annotations

import math
from typing import Any

import pytest

from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from rebalancer.costs.move_facts import StartupTimes, startup_seconds
from testing.objects import pod_info

CART, SHOP = ServiceKey("shop", "Deployment", "cart"), ServiceKey("shop", "Deployment", "shop")


def pod(uid: str, seconds: float | None, **fields: Any) -> PodInfo:
    ready = None if seconds is None else 1000.0 + seconds
    return pod_info(uid, **({"created": 900.0, "scheduled": 1000.0, "ready": ready} | fields))


@pytest.mark.parametrize(
    ("of", "seconds"),
    [
        (pod("a", 30), 30.0),
        (pod("a", 30, scheduled=None), 130.0),
        (pod("a", None), None),
        (pod("a", -1), None),  # clocks differ
        (pod("a", 3601), None),  # it has lost its readiness in between
    ],
)
def test_the_seconds_of_one_pod(of: PodInfo, seconds: float | None) -> None:
    assert startup_seconds(of) == seconds


def test_the_median_of_what_was_seen() -> None:
    times = StartupTimes()
    assert times.of(CART).n == 0 and math.isnan(times.of(CART).seconds) and times.of(CART).seconds_or(77) == 77
    for n, seconds in enumerate([10, 20, 3000]):
        times.see(pod(f"p{n}", None), CART)
        times.see(pod(f"p{n}", seconds), CART)
        times.see(pod(f"p{n}", 900), CART)  # ready again after a failed probe: it counts once
    times.see(pod("q", 500), SHOP)
    assert (times.of(CART).seconds, times.of(CART).n, len(times)) == (20, 3, 2)
    assert times.of(CART).seconds_or(77) == 20


def test_a_new_version_counts_after_a_rollout() -> None:
    times = StartupTimes()
    for n in range(100):
        times.see(pod(f"old{n}", 10), CART)
    for n in range(8):
        times.see(pod(f"new{n}", 200), CART)
    assert times.of(CART).seconds == 200


def test_only_so_many_services_are_remembered() -> None:
    times = StartupTimes(most=2)
    keys = [ServiceKey("shop", "Deployment", f"s{n}") for n in range(3)]
    for key in keys[:2]:
        times.see(pod(f"{key}", 10), key)
    times.see(pod("again", 10), keys[0])
    times.see(pod("third", 10), keys[2])
    assert [times.of(key).n for key in keys] == [2, 0, 1]
