from __future__ import annotations

import pytest

from scheduler.profiles.gpu.dra.selectors.rewriting import lookups, spelled_out


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a == b", "a == b"),
        ("cel.bind(x, 1, x == 1)", "[1].map(x, x == 1)[0]"),
        ("cel . bind ( x , f(1, [2, 3]) , x ) && y", "[f(1, [2, 3])].map(x, x)[0] && y"),
        ("cel.bind(x, 1, cel.bind(y, x, y))", "[1].map(x, [x].map(y, y)[0])[0]"),
        ('cel.bind(x, "),(", x == ")")', '["),("].map(x, x == ")")[0]'),
        ("cel.bind(x, r'\\', x)", "[r'\\'].map(x, x)[0]"),
        ('"cel.bind(x, 1, x)"', '"cel.bind(x, 1, x)"'),
        ("x // cel.bind(a, b, c)\n", "x // cel.bind(a, b, c)\n"),
        ("cel.binding(x, 1, x)", "cel.binding(x, 1, x)"),
    ],
)
def test_bind_is_spelled_out(source: str, expected: str) -> None:
    assert spelled_out(source) == expected


@pytest.mark.parametrize(
    ("source", "attributes", "capacity"),
    [
        ("true", set(), set()),
        ("device.attributes[\"a\"].x && device.attributes['b'].y", {"a", "b"}, set()),
        ('device.capacity["a"].x == device.driver', set(), {"a"}),
        ('"a" in device.attributes && device.attributes["a"].x', None, set()),
        ('device.attributes[device.driver].x && device.capacity["c"].y', None, {"c"}),
        ("[device].map(d, d)", None, None),
        ('x.device.attributes["a"]', set(), set()),
        ("'device.attributes' == \"\"", set(), set()),
    ],
)
def test_domains_that_are_looked_up(source: str, attributes: set[str] | None, capacity: set[str] | None) -> None:
    def frozen(one: set[str] | None) -> frozenset[str] | None:
        return None if one is None else frozenset(one)

    found = lookups(source)
    assert (found.attributes, found.capacity) == (frozen(attributes), frozen(capacity))


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
