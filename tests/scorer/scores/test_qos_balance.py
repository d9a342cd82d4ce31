from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from scorer.scores.qos_balance import qos_balance_score

CLUSTER = np.array([50.0, 30.0, 20.0])


@pytest.mark.parametrize(
    ("on_node", "qos", "score"),
    [
        # Pn = Pc: 10 * |1 - 0| = 10 of 20
        ((5.0, 3.0, 2.0), 0, 50.0),
        # an empty node counts as Pn = Pc
        ((0.0, 0.0, 0.0), 2, 50.0),
        # Pn = 0, Pc = 0.5: 10 * 1.5 = 15 of 20
        ((0.0, 3.0, 2.0), 0, 75.0),
        # Pn = 1, Pc = 0.2: 10 * 0.2 = 2 of 20
        ((0.0, 0.0, 4.0), 2, 10.0),
        # 31 pods: one more or less is seen, no rounding in between
        ((15.0, 10.0, 6.0), 0, 50 * (1 - (15 / 31 - 0.5))),
    ],
)
def test_score(on_node: tuple[float, ...], qos: int, score: float) -> None:
    assert qos_balance_score(np.array([on_node]), CLUSTER, qos)[0] == pytest.approx(score, rel=1e-12)


def test_an_empty_cluster_is_neutral() -> None:
    assert qos_balance_score(np.zeros((3, 3)), np.zeros(3), 1).tolist() == [50, 50, 50]


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 2))
def test_one_more_pod_of_a_class_never_raises_its_score(g: int, b: int, best_effort: int, qos: int) -> None:
    before = np.array([[g, b, best_effort]], dtype=float)
    assume(before.sum() > 0)  # an empty node is neutral, whatever comes first
    after = before.copy()
    after[0, qos] += 1
    assert qos_balance_score(after, CLUSTER, qos) <= qos_balance_score(before, CLUSTER, qos)
