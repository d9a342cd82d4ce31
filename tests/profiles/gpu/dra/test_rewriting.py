from __future__ import annotations

import pytest

from profiles.gpu.dra.selectors.rewriting import lookups


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
