"""Expressions and claims that would keep the loop busy for hours end soon, with a reason; other namespaces go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from profiles.gpu.dra.dra_objects import Device
from profiles.gpu.dra.search_time import SearchTime
from profiles.gpu.dra.selectors.expressions import Expressions, SelectorError
from profiles.gpu.dra.selectors.isolated_evaluator import Apart
from tests.profiles.gpu.dra.dra_world import World
from tests.profiles.gpu.dra.manifests import DRIVER, claim, device, request, resource_slice
from tests.profiles.gpu.dra.test_expressions import OURS, made

FINE = f'{OURS}.model.matches("^A[0-9]+$")'


def doubled(times: int, body: str) -> str:
    """cel.bind that doubles a list with each line; the API server takes it. body: of the list `last`."""
    lines = "".join(f"cel.bind(x{at}, x{at - 1} + x{at - 1}, " for at in range(1, times))
    return f"cel.bind(x0, [1], {lines}cel.bind(last, x{times - 1}, {body}){')' * times}"


NEVER_ENDS = doubled(17, "last.map(y, y).size() > 0")
ALL_MEMORY = doubled(30, "last.size() > 0")
NUMBERS = ",".join("0" * 100)
COSTLY = [
    (NEVER_ENDS, "more than 1 s"),
    (ALL_MEMORY, "MiB of memory"),
    (doubled(25, "last.size() > 0"), "MiB of memory"),
    (f"[{NUMBERS}].all(x, {OURS}.model.matches('[\\\\w ]{{1000}}') || true)", "more than 1 s"),
    (f"[{','.join('0' * 4000)}]" + ".map(x, x)" * 7 + ".size() > 0", "more than 1 s"),
]


@pytest.fixture
def a100() -> Device:
    """It remembers no answers of other tests."""
    return made(model="A100", cores=108)


@pytest.fixture
def apart() -> Iterator[Apart]:
    made = Apart(cpu_seconds=1, seconds=60)  # slow machines fill the memory in that time, too
    yield made
    made.close()


@pytest.mark.parametrize(("expression", "complaint"), COSTLY)
def test_a_costly_expression_ends_and_others_are_answered(
    expression: str, complaint: str, apart: Apart, a100: Device
) -> None:
    asked = Expressions(SearchTime(lambda: 0.0), apart=lambda: apart)  # a busy machine uses up the time of all
    for _ in range(2):  # the second time nothing is evaluated
        with pytest.raises(SelectorError, match=complaint):
            asked.matches(expression, a100, "shop")
    assert apart.killed == 1 and asked.refused == 2
    assert asked.matches(FINE, a100, "other") and apart.killed == 1


def test_short_expressions_without_loops_need_no_other_process(a100: Device) -> None:
    def apart() -> Apart:
        raise AssertionError("it was evaluated elsewhere")

    asked = Expressions(apart=apart)
    assert asked.matches(f'{OURS}.model.startsWith("A") && has({OURS}.cores) && device.driver == "{DRIVER}"', a100)
    for costly in (
        FINE,
        f"[1] . all (x, {OURS}.cores > x)",
        f"cel.bind(x, {OURS}, x.cores > 0)",
        "true || " * 200 + "true",
    ):
        with pytest.raises(AssertionError):
            asked.matches(costly, a100)


def test_each_namespace_has_its_time_and_all_have_theirs() -> None:
    now = [0.0]
    time = SearchTime(lambda: now[0])
    time.spend("greedy", 3.0)
    assert not time.is_left("greedy") and not time.is_left("other"), "together they have two seconds"
    assert time.is_left(""), "the cluster itself has no limit"
    time.refuse("greedy")
    now[0] = 5.0
    assert time.is_left("other") and not time.is_left("greedy") and not time.may_go_on()
    now[0] = 21.0
    assert time.is_left("greedy") and time.may_go_on() and not time.may_go_on()


def test_who_has_no_time_left_is_refused_and_others_are_not() -> None:
    now = [0.0]
    time = SearchTime(lambda: now[0])
    asked = Expressions(time)
    time.spend("greedy", 1.5)
    expression = f"{OURS}.index == 1"
    with pytest.raises(SelectorError, match="namespace greedy takes too long"):
        asked.matches(expression, made(index=1), "greedy")
    assert asked.matches(expression, made(index=1), "other")
    assert asked.matches(expression, made(index=1), "greedy"), "what was answered needs no time"


def test_claims_that_contradict_each_other_do_not_stop_the_loop() -> None:
    """25 ms on each node: 8 of 16 devices in 12,870 ways, and one more that does not exist."""
    n_nodes = 120
    nodes = [f"n{i}" for i in range(n_nodes)]
    slices = tuple(
        resource_slice(f"s-{name}", *(device(f"{i}", index=i) for i in range(16)), node=name) for name in nodes
    )
    bad = claim("bad", request("r", count=8), request("q", f"{OURS}.index > 100"), namespace="shop")
    good = claim("good", request("r", f"{OURS}.index == 3"), namespace="other")
    world = World(bad, good, slices=slices, nodes=nodes)
    feasibility = world.plugin.feasibility
    now = [feasibility.time.clock()]

    def clock() -> float:
        now[0] += 0.01  # each look at the clock
        return now[0]

    feasibility.time.clock = clock
    pod = world.pod("p", "bad")
    assert world.fits(pod) == set()
    first = feasibility.searches
    assert 0 < first < n_nodes / 2
    feasibility.time.clock = lambda: now[0]
    other = replace(world.pod("q", "good"), namespace="other")
    assert world.fits(other) == set(nodes), "others are placed"
    world.woken.clear()
    world.plugin.tick()
    now[0] += 60
    world.plugin.tick()
    assert world.woken == ["room"], "the pod is tried again"
    feasibility.time.clock = clock
    before = feasibility.searches
    assert world.fits(pod) == set()
    assert feasibility.searches > before, "and goes on"
