"""Which nodes an explanation lists, by a table of cases."""

from __future__ import annotations

import pytest

from scorer.explaining import Listing, listing
from scorer.judgement import Judgement

NODES = ("a", "b", "c", "d")
# a and b are ranked, c is passed over, d is rejected.
JUDGED = Judgement("profile online", ("a", "b"), {"a": 7.0, "b": 4.0}, passed_over={"c": "pools"})
ONE = Judgement("profile online", ("a",), {"a": 7.0}, passed_over={"b": "pools"})
NOWHERE = Judgement("profile online", (), {})
AS_IF_WAITING = Judgement("profile online", ("a", "b"), {"a": 7.0, "b": 4.0}, runs_on="d")


@pytest.mark.parametrize(
    ("judgement", "sits_on", "top", "asked_for", "positions", "ranks", "first_two"),
    [
        pytest.param(None, "", 2, False, (0, 1), (1, 2), ("a", "b"), id="the best"),
        pytest.param(None, "", 9, False, (0, 1, 2, 3), (1, 2, 3, 4), ("a", "b"), id="fewer than top"),
        pytest.param(None, "c", 1, False, (0, 2), (1, 3), ("a", "b"), id="its own node, at its rank"),
        pytest.param(None, "a", 1, False, (0,), (1,), ("a", "b"), id="its own node is the best"),
        pytest.param(None, "elsewhere", 1, False, (0,), (1,), ("a", "b"), id="its own node is not scored"),
        pytest.param(JUDGED, "", 9, False, (0, 1, 2), (1, 2, 3), ("a", "b"), id="no rejected node"),
        pytest.param(JUDGED, "d", 1, False, (0, 3), (1, None), ("a", "b"), id="but its own"),
        pytest.param(JUDGED, "", 9, True, (0, 1, 2, 3), (1, 2, 3, None), ("a", "b"), id="and if asked for"),
        pytest.param(ONE, "", 9, False, (0, 1), (1, 2), ("a",), id="a node passed over is no runner-up"),
        pytest.param(NOWHERE, "", 2, False, (0, 1), (None, None), (), id="nowhere: rejected ones, without rank"),
        pytest.param(AS_IF_WAITING, "b", 1, False, (0, 3), (1, None), ("a", "b"), id="judged as if it waited"),
    ],
)
def test_the_nodes_listed(
    judgement: Judgement | None,
    sits_on: str,
    top: int,
    asked_for: bool,
    positions: tuple[int, ...],
    ranks: tuple[int | None, ...],
    first_two: tuple[str, ...],
) -> None:
    assert listing(NODES, judgement, sits_on, top, asked_for=asked_for) == Listing(positions, ranks, first_two)


def test_the_margin_is_between_the_first_two() -> None:
    assert Listing((), (), ("a", "b")).margin(JUDGED.totals) == 3.0
    assert Listing((), (), ("a", "b")).runner_up == "b"
    alone = listing((), None, "", 3, asked_for=True)
    assert (alone, alone.margin({}), alone.runner_up) == (Listing((), (), ()), None, None)
