"""The annotation min-per-role."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from placement.pod_groups.minima import MIN_PER_ROLE, of_annotations, role_minima

WANTED = 'must be a JSON object such as {"driver": 1, "worker": 4}'


def test_roles_and_their_counts() -> None:
    assert role_minima(' {"ps": 1, "worker": 4} ') == {"ps": 1, "worker": 4}
    assert role_minima("{}") == {}
    assert of_annotations({}) == {}
    assert of_annotations({MIN_PER_ROLE: '{"a": 2}'}) == {"a": 2}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", WANTED),
        ("null", WANTED),
        ("[1]", WANTED),
        ('{"worker": 4', WANTED),
        ("[" * 5_000, WANTED),
        ('{"worker": "4"}', "role 'worker' must have a whole number of at least 1, found '4'"),
        ('{"worker": 4.0}', "found 4.0"),
        ('{"worker": 0}', "found 0"),
        ('{"worker": NaN}', "found nan"),
        ('{"worker": {"min": 1}}', "found an object"),
        ('{"worker": 2147483648}', "found a number that is too large"),
        ('{"worker": ' + "9" * 5_000 + "}", WANTED),
        ('{"worker": 1, "worker": 2}', "role 'worker' is there twice"),
        ('{"": 1}', "the name of a role has 1 to 253 characters, found ''"),
        (json.dumps({"a" * 254: 1}), "the name of a role has 1 to 253 characters"),
        (json.dumps({f"r{n}": 1 for n in range(65)}), "names 65 roles, at most 64 are allowed"),
        (" " * 16_385, "has 16385 characters, at most 16384 are read"),
    ],
)
def test_a_mistake_is_named_and_never_guessed_at(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        role_minima(text)
    assert str(caught.value).startswith(f"{MIN_PER_ROLE}: ") and says in str(caught.value)
    assert len(str(caught.value)) < 400


@given(
    st.text()
    | st.recursive(st.none() | st.integers() | st.text(), lambda s: st.dictionaries(st.text(), s)).map(json.dumps)
)
def test_anything_is_read_or_refused(text: str) -> None:
    try:
        found = role_minima(text)
    except InputError:
        return
    assert found == json.loads(text)
