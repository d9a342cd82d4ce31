"""What a decision says about the node that was chosen, and that it survives the way through the log."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.decisions.decision import decision_of, slimmed
from placement.decisions.decision_log_reader import decision_from_json
from tests.placement.decisions.made_up import AT, advice, binding, decision

SIX = {"n1": 12, "n2": 7, "n3": 7, "n4": 0, "n5": -3, "n6": 9}


@pytest.mark.parametrize(
    ("node", "points", "rank"),
    [("n1", 12, 1), ("n6", 9, 2), ("n2", 7, 3), ("n3", 7, 3), ("n4", 0, 5), ("n5", -3, 6), ("elsewhere", None, None)],
)
def test_points_and_rank_of_the_node_chosen(node: str, points: int | None, rank: int | None) -> None:
    made = decision(SIX, node)
    assert (made.points, made.rank) == (points, rank)
    assert (made.advised_node, made.advised_points, made.runner_up, made.margin, made.nodes) == ("n1", 12, "n6", 3, 6)


def test_the_best_five_are_named_and_equals_by_name() -> None:
    points = {f"n{number:02d}": 5 for number in range(40)} | {"z": 9, "y": 8}
    assert list(decision(points, "z").top.items()) == [("z", 9), ("y", 8), ("n00", 5), ("n01", 5), ("n02", 5)]


@pytest.mark.parametrize(("node", "rank"), [("n1", 1), ("n6", 2), ("n2", None)])
def test_slimmed_advice_knows_the_best_two(node: str, rank: int | None) -> None:
    whole = binding(advice(SIX), node)
    slim = decision_of(replace(whole, advice=slimmed(whole.advice)))
    assert slim.rank == rank
    assert (slim.nodes, slim.advised_points, slim.margin) == (6, 12, 3)


def test_advice_without_nodes_or_points() -> None:
    empty = decision({}, "n1", nodes=[])
    assert (empty.advised_node, empty.points, empty.rank, empty.margin, dict(empty.top)) == (None, None, None, None, {})
    neutral = decision({}, "n2", nodes=["n1", "n2"])
    assert (neutral.advised_node, neutral.points, neutral.rank) == ("n1", 0, 1)


def test_the_line_of_the_log() -> None:
    made = decision(
        SIX,
        "n2",
        reasons=("metrics are 400 s old",),
        level="no_live_correction",
        is_shadow=True,
        at=AT + 0.25,
        policy="batch",
        policy_because="rule 2",
    )
    assert msgspec.json.decode(msgspec.json.encode(made.to_json())) == {
        "time": "2026-09-21T14:13:20.250Z",
        "advised_at": "2026-09-21T14:13:20.000Z",
        "pod": "shop/cart-1",
        "uid": "uid-1",
        "service": "shop/Deployment/cart",
        "node": "n2",
        "advised_node": "n1",
        "points": 7,
        "advised_points": 12,
        "runner_up": "n6",
        "margin": 3,
        "rank": 3,
        "nodes": 6,
        "top": {"n1": 12, "n6": 9, "n2": 7, "n3": 7, "n4": 0},
        "expected_peak": {
            "resource": "cpu",
            "unit": "cores",
            "expected": 6.1,
            "bound": 7.32,
            "capacity": 10.0,
            "share": 0.61,
            "at": "2026-09-21T22:00:00Z",
            "assumed": False,
        },
        "level": "no_live_correction",
        "reasons": ["metrics are 400 s old"],
        "model": "2026-09-20T02-00",
        "model_age_seconds": 7200.0,
        "metrics_age_seconds": 20.0,
        "seconds": 0.0021,
        "shadow": True,
        "late": False,
        "version": "1.2.3",
        "policy": "batch",
        "policy_because": "rule 2",
        "elsewhere_because": "",
    }
    assert decision_from_json(made.to_json()) == made


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(key=st.sampled_from(sorted(decision(SIX, "n1").to_json())), value=_JSON)
def test_a_line_with_any_value_anywhere_is_read_or_refused(key: str, value: Any) -> None:
    line = json.loads(json.dumps(decision(SIX, "n2").to_json() | {key: value}))
    try:
        read = decision_from_json(line)
    except ValueError:
        assert key in ("time", "advised_at", "pod", "node")
        return
    assert read.pod and read.node and isinstance(read.agrees, bool)
    if key not in ("time", "advised_at"):
        assert read.time == pytest.approx(AT + 1)
