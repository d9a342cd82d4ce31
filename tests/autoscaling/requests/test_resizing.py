"""Which pods are resized: up before the ramp, down in the valley, within budgets and never below what is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaling.autoscale_settings import RequestOptions, ResizeOptions
from autoscaling.requests.pod_resources import OptedPod, stays_burstable, total
from autoscaling.requests.resizing import Direction, Resize, needs_of, resizes
from forecast.service_key import ServiceKey
from testing.constants import with_constants
from tests.autoscaling.requests.made_up_ahead import RAMP, at, evening_ahead

CART = ServiceKey("shop", "Deployment", "cart")
MEMORY = 2.0**30
FREE: Mapping[str, tuple[float, float]] = {"a": (100.0, 100 * MEMORY), "b": (100.0, 100 * MEMORY)}


def opted(name: str = "cart-1", cpu: float = 1.0, *, original: float | None = None, **changed: Any) -> OptedPod:
    pod = OptedPod(
        namespace="shop",
        name=name,
        uid=f"uid-{name}",
        version="1",
        node="a",
        service=CART,
        asks=True,
        requests={"main": {"cpu": cpu, "memory": MEMORY}},
        limits={"main": {}},
        original=None if original is None else {"main": {"cpu": original, "memory": MEMORY}},
    )
    return replace(pod, **changed)


def decided(
    *pods: OptedPod,
    hour: float,
    free: Mapping[str, tuple[float, float]] = FREE,
    measured: float | None = None,
    gib: float = 0.5,
    replicas: float = 4.0,
    follows_load: bool = False,
    **options: Any,
) -> tuple[list[Resize], Counter[str]]:
    asked = RequestOptions(resize=with_constants(ResizeOptions(), **{"service_share": 1.0, **options}))
    ahead = replace(evening_ahead((CART,), gib=gib, replicas=replicas), autoscaled=np.array([follows_load]))
    needs = needs_of(ahead, asked, at(hour), 0.8)
    return resizes(pods, needs, asked, now=at(hour), free=free, measured=lambda pod: measured)


def cores(resize: Resize) -> float:
    return total(resize.requests, "cpu")


def test_in_the_valley_a_pod_shrinks_to_what_it_needs_and_uses_but_not_by_little() -> None:
    (resize,), _ = decided(opted(), hour=3)
    assert resize.direction is Direction.DOWN
    assert cores(resize) == pytest.approx(0.2)
    (resize,), _ = decided(opted(), hour=3, measured=0.5)
    assert cores(resize) == pytest.approx(0.55)
    assert not decided(opted(cpu=0.21, original=1.0), hour=3)[0]
    assert not decided(opted(), hour=RAMP - 1)[0], "nor shortly before the ramp"
    assert decided(opted(), hour=RAMP - 1, hold=0)[0]


def test_a_service_whose_replicas_follow_the_load_is_left_alone_unless_asked() -> None:
    found, kept = decided(opted(), hour=3, follows_load=True)
    assert not found and kept["the replicas of its service follow the load"] == 1
    (resize,), _ = decided(opted(), hour=3, follows_load=True, autoscaled=True)
    assert resize.direction is Direction.DOWN


def test_before_the_ramp_it_grows_again() -> None:
    early, why = decided(opted(cpu=0.2, original=1.0), hour=RAMP - 2)
    assert not early
    assert why["its request fits"] == 1
    (resize,), _ = decided(opted(cpu=0.2, original=1.0), hour=RAMP - 0.1)
    assert resize.direction is Direction.UP
    assert cores(resize) == pytest.approx(1.0)


def test_it_does_not_grow_past_the_original() -> None:
    (resize,), _ = decided(opted(cpu=0.2, original=0.5), hour=RAMP + 1)
    assert cores(resize) == pytest.approx(0.5)
    (resize,), _ = decided(opted(cpu=0.2, original=0.5), hour=RAMP + 1, most=1.5)
    assert cores(resize) == pytest.approx(0.75)


def test_a_step_resizes_few_pods_and_a_share_of_a_service() -> None:
    pods = [opted(f"cart-{i}") for i in range(8)]
    assert len(decided(*pods, hour=3, parallel=3)[0]) == 3
    found, why = decided(*pods, hour=3, service_share=0.5, replicas=8.0)
    assert len(found) == 4
    assert why["the budget of this step is spent"] == 4
    assert len(decided(*pods, hour=3, service_share=0.01)[0]) == 1


def test_resizes_under_way_count_in_the_share() -> None:
    moving = opted("cart-0", moving=True)
    found, why = decided(moving, opted("cart-1"), hour=3, service_share=0.25)
    assert not found
    assert why["its last resize is under way"] == 1


def test_pods_that_lack_most_come_first() -> None:
    pods = [opted("a"), opted("b", cpu=0.4, original=1.0), opted("c", cpu=0.2, original=1.0)]
    found, _ = decided(*pods, hour=RAMP + 1, parallel=1)
    assert [one.pod.name for one in found] == ["c"]
    found, why = decided(*pods, hour=RAMP + 1, free={"a": (0.7, 0.0)})
    assert len(found) == 1 and why["its node has no room"] == 1
    assert not decided(*pods, hour=RAMP + 1, free={})[0]


def test_a_refused_resize_holds_its_service_up_no_longer_than_the_time_until_the_next_try() -> None:
    refused = opted(cpu=0.2, original=1.0, refused_at=at(RAMP), refused_why="Infeasible: too large")
    other = opted("cart-2", cpu=0.2, original=1.0)
    assert not decided(refused, other, hour=RAMP + 0.2, service_share=0.25)[0]
    (resize,), _ = decided(refused, other, hour=RAMP + 1, service_share=0.25)
    assert resize.pod is refused


def test_memory_grows_if_asked_and_never_shrinks() -> None:
    assert not decided(opted(cpu=0.2, original=1.0), hour=3, gib=0.9, memory=True, most=2.0)[0]
    (resize,), _ = decided(opted(cpu=0.2, original=1.0), hour=3, gib=1.5, memory=True, most=2.0)
    assert total(resize.requests, "memory") == pytest.approx(1.65 * MEMORY, rel=0.01)
    assert cores(resize) == pytest.approx(0.2)
    assert not decided(opted(cpu=0.2, original=1.0), hour=3, gib=1.5, most=2.0)[0]


def test_pods_that_may_not_be_resized_are_counted_by_reason() -> None:
    stranger = replace(opted("x"), service=ServiceKey("shop", "Deployment", "new"))
    found, why = decided(opted("a", kept="it may not"), stranger, hour=3)
    assert not found
    assert why == Counter({"it may not": 1, "its service has no forecast": 1})


def test_containers_change_in_the_shares_of_the_original() -> None:
    two = opted(requests={"main": {"cpu": 0.6}, "helper": {"cpu": 0.2}}, limits={"main": {}, "helper": {}})
    (resize,), _ = decided(two, hour=3)
    assert resize.requests["main"]["cpu"] == pytest.approx(0.15)
    assert resize.requests["helper"]["cpu"] == pytest.approx(0.05)


def test_a_request_stays_below_its_limit_and_the_class_is_kept() -> None:
    limited = opted(cpu=0.2, original=1.0, limits={"main": {"cpu": 0.5}})
    (resize,), _ = decided(limited, hour=RAMP + 1)
    assert cores(resize) == pytest.approx(0.5)
    guaranteed = opted(cpu=0.2, original=1.0, limits={"main": {"cpu": 0.5, "memory": MEMORY}})
    found, why = decided(guaranteed, hour=RAMP + 1)
    assert not found
    assert why["its QoS class would change"] == 1


@given(
    st.lists(st.tuples(st.floats(0.01, 4.0), st.floats(0.1, 4.0), st.sampled_from("ab")), max_size=12),
    st.floats(0, 23.9),
    st.floats(0.0, 3.0),
    st.floats(0.0, 2.0),
    st.integers(1, 5),
)
def test_budget_room_ceiling_and_use_hold_for_any_pods(
    made: list[tuple[float, float, str]], hour: float, free: float, measured: float, parallel: int
) -> None:
    pods = [opted(f"cart-{i}", cpu, original=first, node=node) for i, (cpu, first, node) in enumerate(made)]
    found, _ = decided(
        *pods, hour=hour, free={"a": (free, 0.0)}, measured=measured, parallel=parallel, service_share=0.5
    )
    assert len(found) <= min(parallel, 2)
    added = {"a": 0.0, "b": 0.0}
    for one in found:
        before = one.pod.total("cpu")
        if one.direction is Direction.UP:
            assert cores(one) <= one.pod.original_total("cpu") + 0.0011
            added[one.pod.node] += cores(one) - before
        else:
            assert cores(one) >= min(measured * 1.1, before) - 1e-9
        assert stays_burstable(one.pod, one.requests)
    assert added["a"] <= free + 1e-6
    assert added["b"] <= 0
