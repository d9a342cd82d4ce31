"""Selectors of devices; most cases are those of cel/compile_test.go in k8s.io/dynamic-resource-allocation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.profiles.gpu.dra.objects import Device
from scheduler.profiles.gpu.dra.search_time import SearchTime
from scheduler.profiles.gpu.dra.selectors.expressions import LONGEST_EXPRESSION, Expressions, SelectorError
from scheduler.profiles.gpu.dra.selectors.isolated_evaluator import Apart
from scheduler.profiles.gpu.dra.selectors.rewriting import lookups
from tests.scheduler.profiles.gpu.dra.dra_world import World
from tests.scheduler.profiles.gpu.dra.manifests import DRIVER, claim, device, request, resource_slice, slice_of

OURS = f'device.attributes["{DRIVER}"]'
MEMORY = f'device.capacity["{DRIVER}"].memory'


def made(**attributes: Any) -> Device:
    return slice_of(resource_slice("s", device("d", **attributes), node="n")).devices[0]


A100 = made(
    model="A100",
    cores=108,
    healthy=True,
    driverVersion={"version": "12.4.1"},
    **{"other.example.com/zone": {"string": "left"}},
)


CASES = [
    ("true", True),
    ("false", False),
    (f'device.driver == "{DRIVER}"', True),
    ('device.driver == "other.example.com"', False),
    (f'{OURS}.model == "A100"', True),
    (f'{OURS}["model"] == "A100"', True),
    (f'{OURS}.model != "A100"', False),
    (f'{OURS}.model in ["H100", "A100"]', True),
    (f'{OURS}.model.startsWith("A") && {OURS}.model.endsWith("00")', True),
    (f'{OURS}.model.matches("^A[0-9]+$")', True),
    (f'{OURS}.model.matches("1")', True),
    (f'{OURS}.model.lowerAscii() == "a100"', True),
    (f"{OURS}.cores >= 100 && {OURS}.cores < 200", True),
    (f'{OURS}.cores == "108"', False),
    (f"{OURS}.healthy", True),
    (f"!{OURS}.healthy", False),
    (f"has({OURS}.model)", True),
    (f"has({OURS}.nothing)", False),
    (f'"model" in {OURS}', True),
    ('device.attributes["other.example.com"].zone == "left"', True),
    # A domain that nothing is known of is an empty map, not an error.
    ('has(device.attributes["nobody.example.com"].x)', False),
    ('has(device.capacity["nobody.example.com"].x)', False),
    ('"nobody.example.com" in device.attributes', False),
    (f'"{DRIVER}" in device.attributes', True),
    (f'{MEMORY}.compareTo(quantity("80Gi")) == 0', True),
    (f'{MEMORY}.compareTo(quantity("10Gi")) >= 0', True),
    (f'{MEMORY}.isGreaterThan(quantity("79999M"))', True),
    (f'{MEMORY}.isLessThan(quantity("80Gi"))', False),
    (f'{MEMORY} == quantity("81920Mi")', True),
    (f'{MEMORY}.add(quantity("1Gi")).sub(1).isGreaterThan(quantity("80Gi"))', True),
    (f"{MEMORY}.asInteger() == 85899345920 && sign({MEMORY}) == 1 && {MEMORY}.isInteger()", True),
    ('isQuantity("100m") && !isQuantity("many")', True),
    ('quantity("100m").compareTo(quantity("0.1")) == 0 && !quantity("100m").isInteger()', True),
    (f'{OURS}.driverVersion.isGreaterThan(semver("12.4.0"))', True),
    (f'{OURS}.driverVersion.compareTo(semver("12.10.0")) < 0', True),
    (f'{OURS}.driverVersion == semver("12.4.1")', True),
    (f"{OURS}.driverVersion.major() == 12 && {OURS}.driverVersion.patch() == 1", True),
    ('semver("v1.0", true).isLessThan(semver("1.0.1")) && !isSemver("v1.0.0") && isSemver("01.1", true)', True),
    ('semver("1.0.0-alpha.2").isLessThan(semver("1.0.0-alpha.10"))', True),
    ('semver("1.0.0+a") == semver("1.0.0+b")', True),
    ('semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))', True),
    (f'cel.bind(dra, {OURS}, dra.healthy && dra.model == "A100")', True),
    (f"cel.bind(a, {OURS}.cores, cel.bind(b, a + 1, b == 109))", True),
    (f'{OURS}.model == "cel.bind(a, b, c)"', False),
    (f"{OURS}.nothing == 1 || {OURS}.cores == 108", True),
    (f"{OURS}.nothing == 1 && {OURS}.cores == 1", False),
    (f'["H100", "A100"].exists(m, m == {OURS}.model)', True),
    (f"{OURS}.cores > 100 ? {OURS}.healthy : false", True),
    ("device.allowMultipleAllocations", False),
]
ACCEPTED = [expression for expression, _ in CASES]
"""By the API server, too."""


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_an_expression_selects(expression: str, expected: bool) -> None:
    assert Expressions().matches(expression, A100) is expected


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        (f"{OURS}.nothing == 1", "nothing"),
        ('device.attributes["nobody.example.com"].x == 1', "x"),
        (f"{OURS}.model < 3", "overload"),
        (f"{OURS}.cores && true", "overload"),
        (f"{OURS}.model", "is a str, no bool"),
        ("1", "is a int, no bool"),
        ("device.driver ==", "compile error"),
        ("nobodysFunction(1)", "nobodysFunction"),
        ('quantity("many").isInteger()', "cannot be read"),
        ('semver("1.0") == semver("1.0.0")', "no semantic version"),
        ('quantity("1").compareTo(semver("1.0.0")) == 0', "not two"),
        ("cel.bind(a, 1)", "2 arguments"),
        ("cel.bind(a, 1, a == 1", "never closed"),
        ("true || " + "x" * LONGEST_EXPRESSION, "characters"),
        ("[1].map(x, x)" * 9, "9 comprehensions"),
        ("(" * 2000 + "true" + ")" * 2000, "compile error"),
    ],
)
def test_what_cannot_be_evaluated_selects_nothing(expression: str, complaint: str) -> None:
    with pytest.raises(SelectorError, match=complaint):
        Expressions().matches(expression, A100)


def test_attributes_of_a_kind_that_is_not_known_are_an_error() -> None:
    odd = made(model="A100", links={"ints": [1, 2]})
    with pytest.raises(SelectorError, match="links: unsupported attribute value"):
        Expressions().matches(f'{OURS}.model == "A100"', odd)


def test_text_beyond_ascii_is_compared_but_not_looked_into() -> None:
    odd = made(model="Größe")
    asked = Expressions()
    assert asked.matches(f'{OURS}.model == "Größe"', odd)
    for expression in (f"{OURS}.model.size() == 5", f'{OURS}.model.matches("^\\\\w+$")'):
        with pytest.raises(SelectorError, match="beyond ASCII"):
            asked.matches(expression, odd)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 1, True, "x"])), min_size=1, max_size=6),
    st.sampled_from(
        [
            f"{OURS}.a == 1",
            f"has({OURS}.b) && {OURS}.b == {OURS}['a']",
            f'cel.bind(m, {OURS}, "c" in m)',
            f'{OURS}.exists(k, k == "a")',
            f"{OURS}.a || {OURS}.b",
        ]
    ),
)
def test_what_is_kept_is_what_would_be_answered(attributes: list[dict[str, object]], expression: str) -> None:
    kept = Expressions()
    assert [answer(kept, expression, one) for one in attributes] == [
        answer(Expressions(), expression, one) for one in attributes
    ]


def answer(asked: Expressions, expression: str, attributes: dict[str, object]) -> object:
    try:
        return asked.matches(expression, made(**attributes))
    except SelectorError as error:
        return str(error)


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


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("device.driver == 'x'", set()),
        (
            'device.attributes["a"].x && device.attributes["a"]["y"]',
            {("attributes", "a", "x"), ("attributes", "a", "y")},
        ),
        ('has(device.capacity["c"].m)', {("capacity", "c", "m")}),
        ('device.attributes["a"].size()', None),
        ('device.attributes["a"]', None),
        ('"x" in device.attributes["a"]', None),
        ('device.attributes["a"][device.driver]', None),
        ('device.attributes.exists(d, d == "a")', None),
        ("[device].size() == 1", None),
    ],
)
def test_what_an_answer_depends_on(source: str, read: set[tuple[str, str, str]] | None) -> None:
    assert lookups(source).read == read
