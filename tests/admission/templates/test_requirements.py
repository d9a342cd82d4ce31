from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.templates.requirements import contradictory
from kube.objects.constraints import Operator, Requirement
from kube.objects.labels import requirement_matches

IN, NOT_IN, EXISTS, ABSENT, GT, LT = Operator


def on(operator: Operator, *values: str, key: str = "pool") -> Requirement:
    return Requirement(key, operator, values)


@pytest.mark.parametrize(
    ("requirements", "expected"),
    [
        ([on(IN, "a"), on(IN, "b")], True),
        ([on(IN, "a", "b"), on(IN, "b", "c")], False),
        ([on(IN, "a"), on(NOT_IN, "a")], True),
        ([on(IN, "a", "b"), on(NOT_IN, "a")], False),
        ([on(IN, "a"), on(ABSENT)], True),
        ([on(EXISTS), on(ABSENT)], True),
        ([on(NOT_IN, "a"), on(ABSENT)], False),
        ([on(GT, "3"), on(ABSENT)], True),
        ([on(GT, "3"), on(LT, "4")], True),
        ([on(GT, "3"), on(LT, "5")], False),
        ([on(GT, "3"), on(IN, "3", "x")], True),
        ([on(GT, "3"), on(IN, "3", "4")], False),
        ([on(GT, "many")], True),
        ([on(LT, "0")], True),
        ([on(GT, str(2**63 - 1))], True),
        ([on(IN, "a"), on(IN, "b", key="zone")], False),
        ([on(IN)], True),
        ([], False),
    ],
)
def test_named_cases(requirements: list[Requirement], expected: bool) -> None:
    assert contradictory(requirements) is expected


def test_a_node_selector_counts_where_the_term_speaks_of_the_label() -> None:
    assert contradictory([on(IN, "a")], {"pool": "b"})
    assert not contradictory([on(IN, "a")], {"pool": "a", "zone": "z"})
    assert contradictory([on(ABSENT)], {"pool": "a"})


VALUES = st.sampled_from(["a", "b", "0", "1", "2", "3"])
REQUIREMENTS = st.lists(
    st.one_of(
        st.builds(on, st.sampled_from([IN, NOT_IN]), VALUES, VALUES),
        st.builds(on, st.sampled_from([EXISTS, ABSENT])),
        st.builds(on, st.sampled_from([GT, LT]), st.sampled_from(["0", "1", "2", "3", "4"])),
    ),
    max_size=5,
)


@given(REQUIREMENTS)
def test_as_trying_every_label_says(requirements: list[Requirement]) -> None:
    tried: list[dict[str, str]] = [{}, *({"pool": value} for value in ("a", "b", "other", "00", "01", "02", "03"))]
    tried += [{"pool": str(number)} for number in range(12)]
    possible = any(all(requirement_matches(one, labels) for one in requirements) for labels in tried)
    assert contradictory(requirements) is not possible
