"""DeviceTaintRules: cases in the manner of resourceslice/tracker/tracker_test.go of Kubernetes."""

from __future__ import annotations

import pytest

from tests.profiles.gpu.dra.dra_world import World
from tests.profiles.gpu.dra.manifests import (
    DRIVER,
    claim,
    device,
    request,
    resource_slice,
    slice_of,
    taint_rule,
    taint_rule_of,
)

TOLERANT = request(tolerations=[{"key": "broken", "operator": "Exists"}])


@pytest.mark.parametrize(
    ("selector", "usable"),
    [
        ({}, set()),
        ({"driver": DRIVER}, set()),
        ({"driver": "other.example.com"}, {"a", "b"}),
        ({"pool": "a"}, {"b"}),
        ({"driver": DRIVER, "pool": "a", "device": "0"}, {"b"}),
        ({"pool": "a", "device": "1"}, {"a", "b"}),
        ({"driver": "other.example.com", "pool": "a"}, {"a", "b"}),
    ],
)
def test_a_rule_taints_what_its_selector_names(selector: dict[str, str], usable: set[str]) -> None:
    slices = tuple(resource_slice(f"s-{name}", device("0"), node=name) for name in "ab")
    world = World(claim("c"), claim("tolerant", TOLERANT), slices=slices)
    world.table.taint_rules.put(taint_rule_of(taint_rule("r", **selector)))
    assert world.fits(world.pod("p", "c")) == usable
    assert world.fits(world.pod("q", "tolerant")) == {"a", "b"}


def test_rules_that_change_or_go_wake_pods_that_were_rejected() -> None:
    world, pod = World(claim("c")), World.pod("p", "c")
    world.table.taint_rules.replace([taint_rule_of(taint_rule("one")), taint_rule_of(taint_rule("two", pool="b"))])
    assert world.fits(pod) == set()
    world.table.taint_rules.put(taint_rule_of(taint_rule("one", pool="b")))
    assert world.woken == ["room"] and world.fits(pod) == {"a"}
    world.table.taint_rules.delete(taint_rule_of(taint_rule("one")))
    assert world.fits(pod) == {"a"}  # rule two is still there
    world.table.taint_rules.replace([])
    assert world.woken == ["room", "room", "room"] and world.fits(pod) == {"a", "b"}


def test_a_slice_that_comes_later_has_the_taints_of_rules_and_its_own() -> None:
    world, pod = World(claim("c"), slices=()), World.pod("p", "c")
    world.table.taint_rules.replace([taint_rule_of(taint_rule("r", device="0"))])
    own = device("1", taints=[{"key": "own", "effect": "NoSchedule"}])
    world.table.slices.put(slice_of(resource_slice("s", device("0"), own, node="a")))
    assert world.fits(pod) == set()
    world.table.slices.put(slice_of(resource_slice("s", device("0"), device("1"), node="a")))
    assert world.fits(pod) == {"a"}
