"""Label selectors as they stand in URLs."""

from __future__ import annotations

import pytest

from base.errors import InputError
from kube.objects.labels import parse_selector, selector_matches

LABELS = {"app": "web", "tier": "front", "a.b/c": "d", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web, tier = front", True),
        ("app=cart", False),
        ("app!=cart,other!=x", True),
        ("tier in (back, front)", True),
        ("tier notin (back,front)", False),
        ("other notin (x)", True),
        ("app", True),
        ("!app", False),
        ("! other", True),
        ("a.b/c=d", True),
        ("empty=", True),
        ("app in (web),!old,tier=front", True),
    ],
)
def test_a_selector_is_read_as_the_api_server_reads_it(text: str, matches: bool) -> None:
    assert selector_matches(parse_selector(text), LABELS) is matches


@pytest.mark.parametrize("text", ["app=web,", "=web", "app in (web", "app web", ",", "app=we b", "app in web", "!"])
def test_what_cannot_be_read_is_refused_with_the_way_out(text: str) -> None:
    with pytest.raises(InputError, match="write key=value"):
        parse_selector(text)
