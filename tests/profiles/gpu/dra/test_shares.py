"""Shares of devices (KEP-5075): cases of consumable_capacity_test.go, and pods that share a device."""

from __future__ import annotations

from typing import Any

import pytest

from profiles.gpu.dra.allocator import AllocationFailed
from profiles.gpu.dra.capacity import CapacityPolicy, consumed_capacity
from tests.profiles.gpu.dra.dra_world import World
from tests.profiles.gpu.dra.manifests import Manifest, claim, device, request, resource_slice
from tests.profiles.gpu.dra.test_allocator import chosen, names

GI = 2.0**30
STEPS = CapacityPolicy(default=GI, least=GI, most=8 * GI, step=2 * GI)
VALUES = CapacityPolicy(default=1.0, values=(1.0, 2.0, 4.0))


@pytest.mark.parametrize(
    ("asked", "amount", "policy", "taken"),
    [
        (None, 10.0, None, 10.0),
        (None, 10.0, VALUES, 1.0),
        (3.0, 10.0, None, 3.0),
        (3.0, 10.0, VALUES, 4.0),
        (5.0, 10.0, VALUES, None),  # no value is large enough
        (0.5, 10.0, VALUES, 1.0),
        (1.0, 80 * GI, STEPS, GI),
        (2 * GI, 80 * GI, STEPS, 3 * GI),  # steps are counted from the least
        (7 * GI, 80 * GI, STEPS, 7 * GI),
        (8 * GI, 80 * GI, STEPS, None),  # the next step is beyond the most
        (7 * GI, 6 * GI, STEPS, None),
        (11.0, 10.0, None, None),
        (0.3, 1.0, CapacityPolicy(default=0.1, least=0.1, step=0.25), 0.35),
        (3.0, 10.0, CapacityPolicy(least=1.0), 3.0),
    ],
)
def test_what_a_request_takes(
    asked: float | None, amount: float, policy: CapacityPolicy | None, taken: float | None
) -> None:
    wanted = {} if asked is None else {"m": asked}
    found = consumed_capacity(wanted, {"m": amount}, {} if policy is None else {"m": policy})
    assert found == (None if taken is None else {"m": taken})
    assert consumed_capacity({"other": 1.0}, {"m": amount}, {}) is None


def shared(name: str, amount: str = "40Gi", **policy: Any) -> Manifest:
    made = device(name, memory=amount) | {"allowMultipleAllocations": True}
    if policy:
        made["capacity"]["memory"]["requestPolicy"] = policy
    return made


def asking(amount: str, name: str = "r", **exactly: Any) -> Manifest:
    return request(name, capacity={"requests": {"memory": amount}}, **exactly)


def test_requests_share_a_device_until_it_is_full() -> None:
    two = resource_slice("s", shared("0"), shared("1"), node="n")
    three = claim("c", asking("15Gi", "a"), asking("15Gi", "b"), asking("15Gi", "c"))
    assert names(chosen([three], two)) == [["0", "0", "1"]]
    assert names(chosen([claim("c", asking("15Gi", count=2))], two)) == [["0", "1"]]  # of one request: each once
    assert chosen([claim("c", asking("15Gi", count=3))], two) is None
    assert chosen([claim("c", asking("41Gi"))], two) is None
    assert names(chosen([claim("c", request("a"), request("b"))], two)) == [["0", "1"]]  # no amount: all there is
    assert chosen([claim("c", request("a"), request("b"), request("c"))], two) is None
    everything = claim("c", asking("1Gi", allocationMode="All"), asking("39Gi", "s"))
    assert names(chosen([everything], two)) == [["0", "1", "0"]]


def test_a_shared_device_is_charged_for_its_counters_once() -> None:
    counters: dict[str, Any] = {"sharedCounters": [{"name": "card", "counters": {"slices": {"value": "1"}}}]}
    of_card = {"consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": "1"}}}]}
    parts = resource_slice("d", shared("0") | of_card, shared("1") | of_card, node="n", pool="p", count=2)
    sets = resource_slice("c", node="n", pool="p", count=2, **counters)
    assert names(chosen([claim("c", asking("20Gi", "a"), asking("20Gi", "b"))], parts, sets)) == [["0", "0"]]
    assert chosen([claim("c", asking("20Gi", "a"), asking("30Gi", "b"))], parts, sets) is None


def test_a_request_between_two_steps_that_cannot_be_counted_is_an_error() -> None:
    steps = {"default": "1", "validRange": {"min": "1", "step": "1"}}
    odd = resource_slice("s", shared("0", "9", **steps), node="n")
    with pytest.raises(AllocationFailed, match="whole number of thousandths"):
        chosen([claim("c", asking("1500001u"))], odd)


def test_pods_share_a_device_and_give_their_shares_back() -> None:
    slices = (resource_slice("s-a", shared("0"), node="a"),)
    world = World(*(claim(f"c{i}", asking("15Gi")) for i in range(3)), slices=slices, nodes="a")
    pods = [world.reserved(f"p{i}", "a", f"c{i}") for i in range(2)]
    assert world.fits(world.pod("p2", "c2")) == set() and world.used() == set()
    assert world.pre_bind(pods[0], "a").is_success
    (result,) = world.server.status("c0")["allocation"]["devices"]["results"]
    assert result["consumedCapacity"] == {"memory": str(15 * 2**30)} and len(result["shareID"]) == 36
    world.watch("c0")
    assert world.fits(world.pod("p2", "c2")) == set()
    world.plugin.unreserve(pods[0], "a")
    world.settle()
    assert world.fits(world.pod("p2", "c2")) == {"a"}
    world.plugin.unreserve(pods[1], "a")
    assert not world.table.shares and not world.table.in_flight
