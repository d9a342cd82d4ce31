"""Settings of the rebalancer: what they promise by default, and what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from rebalancer.rebalance_settings import BudgetOptions, RebalanceMode, RebalanceOptions, TrustOptions


def test_it_is_off_by_default_and_never_returns_by_itself() -> None:
    options = RebalanceOptions()
    assert options.mode is RebalanceMode.OFF
    assert options.trust.return_after is None and options.trust.bad_nights == 2
    assert options.window.peak_hours == ("17:00-23:00",)
    assert (options.unforeseen.readings, options.unforeseen.per_day, options.unforeseen.per_service) == (6, 3, 1)


def test_yaml_reads_on_and_off_as_truth_values_and_days_as_texts() -> None:
    assert RebalanceOptions(mode=False).mode is RebalanceMode.OFF  # type: ignore[arg-type]
    assert RebalanceOptions(mode=True).mode is RebalanceMode.ON  # type: ignore[arg-type]
    assert RebalanceOptions(mode="on").mode is RebalanceMode.ON  # type: ignore[arg-type]
    with pytest.raises(InputError):
        RebalanceOptions(mode="perhaps")  # type: ignore[arg-type]
    assert TrustOptions(counts_from="2026-11-24").counts_from is not None  # type: ignore[arg-type]
    with pytest.raises(InputError):
        TrustOptions(counts_from="soon")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n_pods", "total"), [(0, 0), (1, 1), (40, 1), (149, 1), (151, 2), (1000, 10), (9_000, 90), (100_000, 100)]
)
def test_one_percent_of_the_pods_may_move_in_a_night(n_pods: int, total: int) -> None:
    assert BudgetOptions().total(n_pods) == total
    assert BudgetOptions(share=0).total(n_pods) == BudgetOptions(most=0).total(n_pods) == 0


@given(st.integers(1, 1000), st.integers(0, 1000))
def test_at_most_half_of_a_service_moves_in_a_night(replicas: int, per_service: int) -> None:
    moves = BudgetOptions(per_service=per_service).of_service(replicas)
    assert moves <= per_service and moves <= max(1, replicas / 2)
