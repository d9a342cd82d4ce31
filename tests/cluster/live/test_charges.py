"""Virtual requests: charged while unseen, fading with coverage, released exactly once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.live.charges import Charges

WINDOW, GRACE = 300.0, 120.0
T0 = 1_000_000.0
ONE = np.array([1.0, 10.0])


def charges() -> Charges:
    return Charges(2, window_seconds=WINDOW, grace_seconds=GRACE)


@pytest.mark.parametrize(
    ("seconds_after_start", "left"),
    [(-50.0, 1.0), (0.0, 1.0), (30.0, 0.9), (150.0, 0.5), (299.0, 1 / 300), (300.0, 0.0), (900.0, 0.0), (np.nan, 1.0)],
)
def test_what_a_sample_covers_is_no_longer_charged(seconds_after_start: float, left: float) -> None:
    tested = charges()
    tested.charge("a", 0, ONE, T0, T0)
    tested.measured(np.array([T0 + seconds_after_start]))
    assert tested.left("a") == pytest.approx(left)
    np.testing.assert_allclose(tested.total(1), [left * ONE], atol=1e-12)
    assert len(tested) == (left > 0)


def test_a_pod_is_charged_until_it_was_seen_and_never_again_where_it_is() -> None:
    tested = charges()
    tested.charge("a", 0, ONE, None, T0)
    tested.measured(np.array([T0 + 5000]))
    tested.expire(T0 + 5000)
    assert tested.left("a") == 1.0
    tested.charge("a", 0, 99 * ONE, T0 + 5000, T0 + 5010)
    tested.measured(np.array([T0 + 5150]))
    np.testing.assert_allclose(tested.total(1), [0.5 * ONE])  # what it was charged at first
    tested = charges()
    tested.charge("a", 0, ONE, T0, T0)
    tested.measured(np.array([T0 + 301]))
    for started in (T0, T0 + 400, None):
        tested.charge("a", 0, ONE, started, T0 + 400)
    assert not tested.total(2).any()
    assert tested.knows("a", 0, T0)
    tested.charge("a", 1, ONE, T0 + 400, T0 + 400)  # another node: another process
    np.testing.assert_array_equal(tested.total(2), [0 * ONE, ONE])
    tested = charges()
    tested.charge("a", 0, ONE, T0 - WINDOW - GRACE - 1, T0)
    assert len(tested) == 0
    assert tested.knows("a", 0, T0 - WINDOW - GRACE - 1)
    tested = charges()
    tested.charge("a", 0, ONE, T0, T0)
    tested.expire(T0 + WINDOW + GRACE)
    assert tested.left("a") == 1.0
    tested.expire(T0 + WINDOW + GRACE + 1)
    assert len(tested) == 0
    assert tested.knows("a", 0, T0)


@dataclass(frozen=True)
class Step:
    what: str
    uid: str
    node: int
    seconds: float
    amount: float


STEPS = st.builds(
    Step,
    st.sampled_from(["charge", "charge", "start", "measure", "release", "expire"]),
    st.sampled_from("abcde"),
    st.integers(0, 2),
    st.sampled_from([-7200.0, -400.0, -1.0, 0.0, 1.0, 2.0, 60.0, 150.0, 299.0, 300.0, 421.0, 4000.0]),
    st.sampled_from([0.0, 0.1, 0.25, 3.3, 1e6]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_whatever_happens_in_whatever_order_the_sums_are_those_of_what_is_open(steps: list[Step]) -> None:
    tested = charges()
    now = T0
    seen: dict[str, int] = {}
    for step in steps:
        now += step.seconds
        amount = np.array([step.amount, 1.0])
        before = tested.left(step.uid)
        match step.what:
            case "charge" | "start":
                started = None if step.what == "charge" else now - abs(step.seconds)
                known = tested.knows(step.uid, step.node, started)
                total = tested.total(3)
                tested.charge(step.uid, step.node, amount, started, now)
                if known:
                    np.testing.assert_array_equal(tested.total(3), total)
                assert tested.knows(step.uid, step.node, started)
                if seen.get(step.uid) == step.node:
                    assert tested.left(step.uid) == 0.0
                elif step.uid in seen:
                    del seen[step.uid]
            case "measure":
                tested.measured(np.array([now, np.nan, now - 50]))
                assert tested.left(step.uid) <= before
            case "release":
                tested.release(step.uid)
                assert tested.left(step.uid) == 0.0
                seen.pop(step.uid, None)
            case "expire":
                tested.expire(now)
        for uid in "abcde":
            for node in range(3):
                if tested.left(uid) == 0.0 and tested.knows(uid, node, now):
                    seen[uid] = node
        assert 0 <= tested.left(step.uid) <= 1
        assert tested.drift() < 1e-9
        open_total = np.zeros(3)
        for node, left in tested.open().values():
            open_total[node] += left
        np.testing.assert_allclose(tested.total(3)[:, 1], open_total, atol=1e-9)
    for uid in "abcde":
        tested.release(uid)
    assert len(tested) == 0
    assert not tested.total(3).any()
