"""Selectors of devices; most cases are those of cel/compile_test.go in k8s.io/dynamic-resource-allocation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.gpu.dra.dra_objects import Device
from profiles.gpu.dra.selectors.expressions import LONGEST_EXPRESSION, Expressions, SelectorError
from tests.profiles.gpu.dra.manifests import DRIVER, device, resource_slice, slice_of

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
