"""Which devices are chosen; cases in the manner of allocatortesting in k8s.io/dynamic-resource-allocation."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.gpu.dra.allocator import ChosenDevices, NodeUnusable, Supply, allocate
from profiles.gpu.dra.device_pools import DeviceInventory
from profiles.gpu.dra.dra_objects import ResourceClaimInfo
from profiles.gpu.dra.selectors.expressions import Expressions
from profiles.gpu.dra.unsupported import refusal_of
from tests.profiles.gpu.dra.manifests import (
    DRIVER,
    Manifest,
    claim,
    claim_of,
    class_of,
    device,
    device_class,
    request,
    resource_slice,
    slice_of,
)

OURS = f'device.attributes["{DRIVER}"]'
BROKEN: Manifest = {"key": "broken", "value": "fan", "effect": "NoSchedule"}
CLASSES = {
    one["metadata"]["name"]: class_of(one)
    for one in (device_class(), device_class("big", f"{OURS}.size >= 4"), device_class("any", "true"))
}


def eight(**attributes: Any) -> Manifest:
    """A node with devices gpu-0 to gpu-7, two each of four NUMA nodes."""
    return resource_slice(
        "s", *(device(f"gpu-{i}", numa=i // 2, size=i, model="A100", **attributes) for i in range(8)), node="n"
    )


def chosen(
    claims: Sequence[Manifest], *slices: Manifest, used: Collection[str] = (), most_steps: int = 10_000
) -> ChosenDevices | None:
    inventory = DeviceInventory()
    inventory.replace([slice_of(one) for one in slices])
    pools = inventory.of_node("n", lambda where: where.node == "n" or where.all_nodes)
    taken = {one.id for pool in inventory.pools.values() for one in pool.devices.values() if one.id.device in used}
    supply = Supply(CLASSES, taken, Expressions().matches)
    return allocate([claim_of(one) for one in claims], pools, supply, most_steps=most_steps)


def names(answer: ChosenDevices | None) -> list[list[str]] | None:
    return None if answer is None else [[one.device.id.device.removeprefix("gpu-") for one in of] for of in answer]


def given_to(*claims: Manifest, used: Collection[str] = ()) -> list[list[str]] | None:
    return names(chosen(claims, eight(), used=used))


def same(attribute: str = "numa", *requests: str) -> Manifest:
    return {"matchAttribute": f"{DRIVER}/{attribute}"} | ({"requests": list(requests)} if requests else {})


def distinct(attribute: str = "numa") -> Manifest:
    return {"distinctAttribute": f"{DRIVER}/{attribute}"}


def test_all_devices() -> None:
    every = request("r", f"{OURS}.numa == 1", allocationMode="All")
    assert given_to(claim("c", every)) == [["2", "3"]]
    assert given_to(claim("c", every), claim("d", every)) is None
    assert given_to(claim("c", every), used=["gpu-2"]) is None
    assert given_to(claim("c", request("r", f"{OURS}.numa == 9", allocationMode="All"))) is None
    assert given_to(claim("c", request("a"), every)) == [["0", "2", "3"]]
    assert given_to(claim("c", request("a", f"{OURS}.size >= 2"), every)) == [["4", "2", "3"]]


def test_all_devices_wait_for_pools_that_are_being_updated() -> None:
    half = resource_slice("t", device("x"), node="n", pool="p", count=2)
    with pytest.raises(NodeUnusable, match=r"gpu\.example\.com/p is being updated"):
        chosen([claim("c", request(allocationMode="All"))], eight(), half)
    assert names(chosen([claim("c")], eight(), half)) == [["0"]]
    assert chosen([claim("c")], half) is None


def test_a_pool_with_a_mistake_is_told_if_nothing_else_is_found() -> None:
    twice = resource_slice("t", device("x"), device("x"), node="n", pool="p")
    assert names(chosen([claim("c")], eight(), twice)) == [["0"]]
    with pytest.raises(NodeUnusable, match="duplicate device name x"):
        chosen([claim("c", request(count=9))], eight(), twice)


def test_the_first_wish_that_can_be_met() -> None:
    two = request("two", of="big", count=2)
    listed = request("r", first=[two, request("one")])
    answer = chosen([claim("c", listed)], eight())
    assert answer is not None and [one.wish.name for one in answer[0]] == ["r/two", "r/two"]
    answer = chosen([claim("c", listed)], eight(), used=[f"gpu-{i}" for i in range(4, 8)])
    assert answer is not None and [one.wish.name for one in answer[0]] == ["r/one"]
    # A later request may need what an earlier wish would take.
    answer = chosen([claim("c", listed, request("four", of="big", count=4))], eight())
    assert names(answer) == [["0", "4", "5", "6", "7"]]
    constraint = [same("numa", "r/one", "x")]
    listed = request("r", first=[request("one", f"{OURS}.size == 3"), request("other")])
    assert given_to(claim("c", listed, request("x"), constraints=constraint)) == [["3", "2"]]
    assert given_to(claim("c", listed, request("x"), constraints=constraint), used=["gpu-2"]) == [["0", "1"]]


def test_taints_have_to_be_tolerated() -> None:
    tainted = resource_slice(
        "s",
        device("gpu-0", taints=[BROKEN]),
        device("gpu-1", taints=[BROKEN | {"effect": "None"}, BROKEN | {"effect": "SomethingNew"}]),
        node="n",
    )
    assert names(chosen([claim("c")], tainted)) == [["1"]]
    for toleration, expected in (
        ({"key": "broken", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "broken", "value": "fan"}, True),
        ({"key": "broken", "value": "fan", "effect": "NoSchedule"}, True),
        ({"key": "broken", "value": "lamp"}, False),
        ({"key": "broken", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "broken", "operator": "Like"}, False),
    ):
        answer = names(chosen([claim("c", request(count=2, tolerations=[toleration]))], tainted))
        assert (answer is not None) is expected, toleration


def part(name: str, amount: str) -> Manifest:
    return device(name) | {"consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": amount}}}]}


def test_parts_of_a_device_use_its_counters() -> None:
    counters = resource_slice(
        "c", count=2, pool="p", node="n", sharedCounters=[{"name": "card", "counters": {"slices": {"value": "7"}}}]
    )
    del counters["spec"]["devices"]
    parts = [
        part("whole", "7"),
        *(part(f"three-{i}", "3") for i in range(2)),
        *(part(f"one-{i}", "1") for i in range(7)),
    ]
    slices = (counters, resource_slice("d", *parts, node="n", pool="p", count=2))
    assert names(chosen([claim("c")], *slices)) == [["whole"]]
    assert names(chosen([claim("c", request(count=2))], *slices)) == [["three-0", "three-1"]]
    assert names(chosen([claim("c", request(count=3))], *slices)) == [["three-0", "three-1", "one-0"]]
    assert names(chosen([claim("c", request(count=4))], *slices, used=["three-0"])) == [[f"one-{i}" for i in range(4)]]
    assert chosen([claim("c", request(count=5))], *slices, used=["three-0"]) is None
    assert names(chosen([claim("c", request(count=2))], *slices, used=["three-0", "three-1"])) is None
    assert names(chosen([claim("c")], *slices, used=["three-0", "three-1"])) == [["one-0"]]
    assert chosen([claim("c")], *slices, used=["whole"]) is None


def test_devices_that_need_what_is_not_supported_are_left_alone() -> None:
    odd = resource_slice(
        "s",
        device("a") | {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}},
        device("b") | {"nodeAllocatableResourceMappings": {"cpu": {}}},
        device("plain"),
        node="n",
    )
    assert names(chosen([claim("c")], odd)) == [["plain"]]
    for wish in (request(count=2), request(allocationMode="All")):
        with pytest.raises(NodeUnusable, match="DRANodeAllocatableResources"):
            chosen([claim("c", wish)], odd)
    skipping = resource_slice("s", device("a"), node="n", skipNodeOperations=["Prepare"])
    with pytest.raises(NodeUnusable, match="/a, which needs DRAOptionalNodeOperations: that is not supported here"):
        chosen([claim("c")], skipping)
    counted = device("a") | {"consumesCounters": [{"counterSet": "c", "compatibilityGroups": ["g"]}]}
    with pytest.raises(NodeUnusable, match="DRADeviceCompatibilityGroups"):
        chosen([claim("c")], resource_slice("s", counted, node="n"))


def test_a_claim_has_32_devices_at_most() -> None:
    many = resource_slice("s", *(device(f"gpu-{i}", size=i) for i in range(40)), node="n")
    assert len((chosen([claim("c", request(count=32))], many) or [[]])[0]) == 32
    assert chosen([claim("c", request(allocationMode="All"))], many) is None
    listed = request("r", first=[request("many", count=32), request("few")])
    answer = chosen([claim("c", request("one"), listed)], many)
    assert answer is not None and [one.wish.name for one in answer[0]] == ["one", "r/few"]
    refused = refusal_of(claim_of(claim("c", request(count=33))), CLASSES)
    assert refused == "resource claim shop/c: number of requested devices 33 exceeds the claim limit of 32"


def test_more_ways_than_can_be_tried() -> None:
    pairs = resource_slice("s", *(device(f"gpu-{i}", pair=i // 2) for i in range(32)), node="n")
    hopeless = claim(
        "c", request("a", count=16), request("b", count=3), constraints=[same("pair", "b"), distinct("pair")]
    )
    with pytest.raises(NodeUnusable, match="too many ways"):
        chosen([hopeless], pairs, most_steps=2000)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (claim("c"), ""),
        (claim("c", request(of="nobody")), "resource claim shop/c, request r: device class nobody does not exist"),
        (
            claim("c", request(of="")),
            "resource claim shop/c, request r: missing device class name (unsupported request type?)",
        ),
        (claim("c", request(allocationMode="Some")), "resource claim shop/c, request r: unsupported allocation mode"),
        (claim("c", {"name": "r"}), "resource claim shop/c, request r: unknown request type"),
        (
            claim("c", request(derivedAttributes=[{"name": "a.example.com/b", "expression": "1"}])),
            "resource claim shop/c, request r: it needs DRADerivedAttributes, which is not supported here",
        ),
        (
            claim("c", request(selectors=[{}])),
            "resource claim shop/c, request r: CEL expression empty (unsupported selector type?)",
        ),
        (
            claim("c", constraints=[{}]),
            "resource claim shop/c, constraint #0: empty constraint (unsupported constraint type?)",
        ),
    ],
)
def test_what_is_refused_is_named(made: Manifest, reason: str) -> None:
    assert refusal_of(claim_of(made), CLASSES) == reason


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Manifest], Manifest, list[str]]:
    n_devices = draw(st.integers(1, 5))
    devices = [device(f"gpu-{i}", numa=draw(st.integers(0, 1)), size=i) for i in range(n_devices)]
    made = []
    for name in "cd"[: draw(st.integers(1, 2))]:
        requests = [
            request(
                f"r{i}",
                *([f"{OURS}.numa == {draw(st.integers(0, 1))}"] * draw(st.integers(0, 1))),
                count=draw(st.integers(1, 2)),
            )
            for i in range(draw(st.integers(1, 2)))
        ]
        kinds = draw(st.lists(st.sampled_from([same(), distinct(), same("numa", "r0")]), max_size=1))
        made.append(claim(name, *requests, constraints=kinds))
    used = draw(st.lists(st.sampled_from([f"gpu-{i}" for i in range(n_devices)]), unique=True, max_size=2))
    return made, resource_slice("s", *devices, node="n"), used


@settings(max_examples=50, deadline=None)
@given(cases())
def test_the_first_solution_of_all_permutations_is_found(case: tuple[list[Manifest], Manifest, list[str]]) -> None:
    """Slowly: every order of the devices that are free, in the order in which upstream tries them."""
    claims, described, used = case
    expected = slowly([claim_of(one) for one in claims], described, used)
    assert names(chosen(claims, described, used=used)) == expected


def slowly(claims: list[ResourceClaimInfo], described: Manifest, used: list[str]) -> list[list[str]] | None:
    known = {one["name"]: one["attributes"] for one in described["spec"]["devices"]}
    free = [name for name in known if name not in used]
    slots = [
        (at, request.name, wish.selectors)
        for at, claim in enumerate(claims)
        for request in claim.spec.requests
        for wish in request.wishes
        for _ in range(wish.count)
    ]
    for order in itertools.permutations(free, len(slots)):
        pairs = list(zip(slots, order, strict=True))
        if not all(f"{OURS}.numa == {known[name]['numa']['int']}" == it for (_, _, of), name in pairs for it in of):
            continue
        if all(_holds(claims[at], [(r, known[n]) for (a, r, _), n in pairs if a == at]) for at in range(len(claims))):
            return [[n.removeprefix("gpu-") for (a, _, _), n in pairs if a == at] for at in range(len(claims))]
    return None


def _holds(claim: ResourceClaimInfo, given: list[tuple[str, Manifest]]) -> bool:
    for one in claim.spec.constraints:
        values = [attributes["numa"]["int"] for name, attributes in given if not one.requests or name in one.requests]
        n_expected = len(values) if one.is_distinct else min(len(values), 1)
        if len(set(values)) != n_expected:
            return False
    return True


def test_devices_with_an_attribute_in_common() -> None:
    assert given_to(claim("c", request(count=2), constraints=[same()]), used=["gpu-0"]) == [["2", "3"]]
    assert given_to(claim("c", request(count=3), constraints=[same()])) is None
    assert given_to(claim("c", request(count=3), constraints=[same("model")])) == [["0", "1", "2"]]
    assert given_to(claim("c", request(count=2), constraints=[same("nothing")])) is None
    two = (request("a", f"{OURS}.size == 5"), request("b"), request("d"))
    assert given_to(claim("c", *two, constraints=[same("numa", "a", "b")])) == [["5", "4", "0"]]
