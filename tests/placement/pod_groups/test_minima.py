"""What falls short, and who is placed first."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.pod_groups.minima import Count, Minima, placing_order, shortfall


@pytest.mark.parametrize(
    ("minima", "count", "says"),
    [
        (Minima(), Count(), "0 of 1 members"),
        (Minima(4), Count(9), ""),
        (Minima(4), Count(3), "3 of 4 members"),
        (Minima(4, {"worker": 2}), Count(3, {"worker": 1}), "3 of 4 members, role worker 1 of 2"),
        (Minima(4, {"worker": 2}), Count(4, {"worker": 1}), "role worker 1 of 2"),
        (Minima(1, {"worker": 2, "ps": 1}), Count(2, {}), "role ps 0 of 1, role worker 0 of 2"),
        (Minima(1, {"worker": 2, "ps": 1}), Count(3, {"worker": 2, "ps": 1}), ""),
    ],
)
def test_shortfall(minima: Minima, count: Count, says: str) -> None:
    assert shortfall(minima, count) == says


def test_of_many_roles_some_are_named() -> None:
    words = shortfall(Minima(0, {f"r{n:02}": 1 for n in range(20)}), Count())
    assert words.startswith("role r00 0 of 1, ") and words.endswith(", role r07 0 of 1, and 12 roles more")


@pytest.mark.parametrize(
    ("minima", "needed"), [(Minima(4, {"a": 1}), 4), (Minima(1, {"a": 3, "b": 2}), 5), (Minima(), 1)]
)
def test_the_fewest_that_can_meet_both(minima: Minima, needed: int) -> None:
    assert minima.needed == needed


@pytest.mark.parametrize(
    ("count", "roles", "order"),
    [
        (Count(), ["", "worker", "worker", "ps", "worker"], [1, 2, 3, 0, 4]),
        (Count(2, {"worker": 2}), ["", "worker", "ps"], [2, 0, 1]),
        (Count(3, {"worker": 1, "ps": 1}), ["x", "worker", "worker", "ps"], [1, 0, 2, 3]),
        (Count(9, {"worker": 9, "ps": 9}), ["ps", "x"], [0, 1]),
    ],
)
def test_those_that_fill_a_role_come_first(count: Count, roles: list[str], order: list[int]) -> None:
    assert placing_order(Minima(4, {"ps": 1, "worker": 2}), count, roles, [1.0] * len(roles)) == order


@pytest.mark.parametrize(
    ("minima", "order"),
    [
        (Minima(2, {"ps": 1, "worker": 1}), [3, 0, 1, 2]),  # one worker and the server; the others as they are
        (Minima(4, {"ps": 1}), [3, 2, 0, 1]),  # nobody can be done without
        (Minima(2), [0, 1, 2, 3]),
    ],
)
def test_of_those_that_are_needed_the_larger_come_first(minima: Minima, order: list[int]) -> None:
    """A smaller one might take the only room that a larger has."""
    assert placing_order(minima, Count(), ["worker", "worker", "worker", "ps"], [1.0, 1.0, 2.0, 9.0]) == order


ROLES = st.sampled_from(["", "a", "b", "c"])


@given(
    st.integers(0, 6),
    st.dictionaries(ROLES.filter(bool), st.integers(1, 3)),
    st.lists(ROLES),
    st.lists(st.tuples(ROLES, st.floats(0, 9)), max_size=12),
)
def test_the_first_so_many_in_order_meet_what_any_so_many_can(
    members: int, by_role: dict[str, int], sitting: list[str], waiting: list[tuple[str, float]]
) -> None:
    minima, count = Minima(members, by_role), Count().plus(sitting)
    roles = [role for role, _ in waiting]
    order = placing_order(minima, count, roles, [size for _, size in waiting])
    assert sorted(order) == list(range(len(roles)))
    missing = sum(max(0, n - Counter(sitting)[role]) for role, n in by_role.items())
    enough = max(missing, members - len(sitting), 0)
    can_be_met = not shortfall(minima, count.plus(roles))
    assert can_be_met == (not shortfall(minima, count.plus([roles[i] for i in order[:enough]])))
