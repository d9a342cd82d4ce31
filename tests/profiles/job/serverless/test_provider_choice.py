"""Whose turn it is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from profiles.job.serverless.provider_use import Offer, next_share

PLENTY = 10**6


def shared_out(offers: list[Offer], n_pods: int, *, most: int = 10**6) -> list[int]:
    """Pods that each gets in the end; asked for at most so many at a time."""
    given_to = [0] * len(offers)
    left = n_pods
    while left:
        open_ones = [i for i, one in enumerate(offers) if one.room > given_to[i]]
        if not open_ones:
            break
        now = [
            replace(offers[i], pods=offers[i].pods + given_to[i], room=offers[i].room - given_to[i]) for i in open_ones
        ]
        first, share = next_share(now, min(left, most))
        assert 1 <= share <= min(left, now[first].room)
        given_to[open_ones[first]] += share
        left -= share
    return given_to


weights = st.lists(st.floats(0.1, 10.0), min_size=1, max_size=3)


@given(weights, st.integers(1, 200))
def test_shares_are_those_of_the_weights_within_one_pod(weights: list[float], n_pods: int) -> None:
    got = shared_out([Offer(weight, 0, PLENTY) for weight in weights], n_pods)
    for weight, pods in zip(weights, got, strict=True):
        assert abs(pods - n_pods * weight / sum(weights)) <= 1.0 + 1e-9


@given(
    st.lists(st.builds(Offer, st.floats(0.1, 10.0), st.integers(0, 50), st.integers(0, 60)), max_size=5),
    st.integers(0, 200),
)
def test_nobody_gets_more_than_it_has_room_for_and_nothing_is_left_over(offers: list[Offer], n_pods: int) -> None:
    got = shared_out(offers, n_pods)
    assert all(pods <= one.room for pods, one in zip(got, offers, strict=True))
    assert sum(got) == min(n_pods, sum(one.room for one in offers))


@given(
    st.lists(st.builds(Offer, st.floats(0.1, 10.0), st.integers(0, 50), st.integers(1, 60)), min_size=1, max_size=4),
    st.integers(1, 100),
)
def test_many_at_once_get_what_one_by_one_gives(offers: list[Offer], n_pods: int) -> None:
    assert shared_out(offers, n_pods) == shared_out(offers, n_pods, most=1)
