"""What a node's load will be: which half hours count, which resource and capacity, and in which order nodes come."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from base.errors import InputError
from cluster.predicted.horizon import Horizon
from cluster.predicted.node_load import PeakHours, bounding_peaks, counted, hottest_first, load_inputs
from scorer.highest_peak import peaks_of_nodes
from tests.cluster.predicted.test_node_curves import predicted
from tests.scorer.live_cluster import model, moment

SUNDAY = date(2026, 11, 29)
EVENING = Horizon(tuple(SUNDAY + timedelta(days=n) for n in range(7)), 44, ZoneInfo("UTC"))  # 22:00


def test_half_hours_that_are_over_do_not_count() -> None:
    hours = PeakHours.next_24(EVENING)
    assert (hours.words, hours.slots.tolist()) == ("next 24 h", list(range(44, 92)))
    today, tomorrow = PeakHours.of_day(EVENING, 0), PeakHours.asked(EVENING, SUNDAY + timedelta(days=1))
    assert (today.words, today.slots.tolist()) == ("2026-11-29", [44, 45, 46, 47])
    assert (tomorrow.words, tomorrow.slots.tolist()) == ("2026-11-30", list(range(48, 96)))
    assert PeakHours.week(EVENING).slots.tolist() == list(range(44, 336))
    assert PeakHours.asked(EVENING, None).words == "next 24 h"
    with pytest.raises(InputError, match="no forecast of 2026-12-06: name a day from 2026-11-29 to 2026-12-05"):
        PeakHours.asked(EVENING, date(2026, 12, 6))


def test_half_hours_that_no_clock_shows_do_not_count() -> None:
    spring = date(2026, 3, 29)  # from 02:00 to 03:00 in Berlin
    horizon = Horizon(tuple(spring + timedelta(days=n) for n in range(7)), 0, ZoneInfo("Europe/Berlin"))
    assert set(range(48)) - set(PeakHours.of_day(horizon, 0).slots.tolist()) == {4, 5}


def test_the_resource_nearest_to_a_known_capacity_counts_and_an_assumed_one_if_there_is_no_other() -> None:
    capacity = np.array([[10.0, 10.0, 10.0], [10.0, np.nan, 10.0], [np.nan] * 3])
    assumed = np.array([[False, False, True], [True, False, True], [False] * 3])
    expected = np.array([[5.0, 6.0, 9.0], [5.0, 6.0, 9.0], [5.0, 6.0, 9.0]])
    found = bounding_peaks(expected, 2 * expected, np.full((3, 3), 7), capacity, assumed)
    assert found.resource.tolist() == [1, 2, -1]
    assert found.share[:2].tolist() == [0.6, 0.9] and np.isnan(found.share[2])
    assert (found.bound / found.capacity)[:2].tolist() == [1.2, 1.8]
    assert found.assumed.tolist() == [False, True, False]
    assert counted(capacity, assumed).tolist() == [[True, True, False], [True, False, True], [False] * 3]
    assert peaks_of_nodes(found, EVENING)[2] is None


def test_the_hottest_node_comes_first_equals_by_name_and_unknown_ones_last() -> None:
    names = ["d", "c", "b", "a"]
    assert [names[at] for at in hottest_first(np.array([0.5, np.nan, 0.9, 0.5]), names)] == ["b", "a", "d", "c"]


def test_several_stretches_are_worked_out_at_once_as_one_by_one_and_with_one_pod_more() -> None:
    cluster = predicted(21.5)
    profile = cluster.placed["uid-p1-0"].profile
    load = load_inputs(cluster, [0, 1, 1], [None, None, profile], widen=1.0)
    horizon = load.horizon
    hours = (PeakHours.of_day(horizon, 2), PeakHours.next_24(horizon), PeakHours.of_day(horizon, 0))
    at_once = load.peaks(*hours)
    for one, found in zip(hours, at_once, strict=True):
        (alone,) = load.peaks(one)
        np.testing.assert_allclose(found.expected, alone.expected)
        np.testing.assert_array_equal(found.slot, alone.slot)
        assert set(found.slot.tolist()) <= set(one.slots.tolist())
        assert found.share[2] > found.share[1]
        assert (found.bound >= found.expected).all()
    week = load.peaks(PeakHours.week(horizon))[0]
    assert (week.expected >= at_once[1].expected - 1e-9).all()
    assert horizon == replace(horizon, slot=43) == Horizon.at(moment(21.5), model().calendar)
