"""Clocks change while pods are placed: the tables stay sound, and a charge lasts its seconds in the hour that is there
twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from forecast.calendar import Calendar
from testing.settable_clock import SettableClock
from tests.scorer.live_cluster import loaded, model, pod_of
from tests.scorer.scorer_at import LiveScorer, shares, tables


@pytest.mark.parametrize(("day", "begin", "slots"), [(date(2026, 3, 29), 0, [3, 6]), (date(2026, 10, 25), 1, [5, 4])])
def test_pods_are_placed_through_a_change_of_clocks(day: date, begin: int, slots: list[int]) -> None:
    """begin: hours after midnight, of the four half hours in question; slots: those around the change."""
    calendar, steady = Calendar("Europe/Berlin"), SettableClock(0.0)
    sitting = [pod_of(number, f"sits-{number}", f"node-{number}") for number in range(4)]
    tested = LiveScorer(pods=sitting, without_model=True, steady=steady)
    tested.clock.now = tested.contact = calendar.midnight(day).timestamp() + 3600 * begin
    tested.scorer.tables.install(loaded(replace(model(), calendar=calendar, first_day=day)))
    seen: list[int] = []
    for number in range(8):
        pod = pod_of(number % 4, f"pod-{number}", cpu=0.1)
        tested.put(pod)
        tested.scorer.charge_provisionally(pod, f"node-{number % 4}", 60.0)
        for seconds, n_charged in ((59.0, 1), (1.1, 0)):
            steady.now += seconds
            tested.later(seconds)
            assert len(tested.scorer.tables._cluster.assumed) == n_charged
        steady.now += 1739.9
        tested.later(1739.9)
        assert tested.scorer.self_check().sound and np.isfinite(shares(tested)).all()
        seen.append(tables(tested).horizon.slot)
    assert slots in [seen[at : at + 2] for at in range(len(seen))], seen
