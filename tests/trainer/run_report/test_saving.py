from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import numpy as np
import pytest

from base.object_store import open_store
from forecast.history import History
from forecast.resources import CPU
from tests.synthetic import synthetic_history
from trainer.promised_saving import PromisedSaving, keep_promise, last_promise
from trainer.run_report.saving import realised_saving

N_DAYS = 6


def promised(history: History, day: int, *, group: str = "a") -> PromisedSaving:
    """At noon of a day of the history: two nodes of 100 a month fewer than the five of before."""
    made_at = datetime.combine(history.days[day], time(12), tzinfo=UTC)
    return PromisedSaving(made_at, "EUR", {group: 5}, 3, 200.0, 0.0005, 0.001, {"settings": 5})


def idle(n_nodes: int) -> History:
    """A history whose nodes are all measured at all times, at a tenth of their capacity."""
    known = synthetic_history(n_days=N_DAYS, n_services=2)
    usage = np.full((n_nodes, known.node_usage.shape[1], N_DAYS, 48), 0.1, dtype=np.float32)
    capacity = np.ones((n_nodes, known.capacity.shape[1]))
    return replace(
        known,
        nodes=tuple(f"n{row}" for row in range(n_nodes)),
        node_usage=usage,
        capacity=capacity,
        daily_capacity=None,
    )


def test_nodes_that_went_save_their_price_and_the_sum_is_that_of_the_node_hours() -> None:
    history = idle(5)
    history.node_usage[3:, :, 3:] = np.nan  # two nodes of five are gone from day 3 on
    found = realised_saving(history, promised(history, 2), np.full(5, 100.0), 500.0, 0.8)
    assert (found.days, found.nodes_since) == (history.days[3:], 3.0)
    assert found.per_month == pytest.approx(200.0)
    assert found.counts and found.hot_share == 0
    history.node_usage[3:, :, 3] = 0.1  # a day later: two of three days with three nodes
    found = realised_saving(history, promised(history, 2), np.full(5, 100.0), 500.0, 0.8)
    assert found.per_month == pytest.approx(500 - (500 + 300 + 300) / 3)


def test_gaps_within_a_day_and_days_without_any_measurement_are_no_saving() -> None:
    history = idle(2)
    history.node_usage[0, :, 4, 10:30] = np.nan
    history.node_usage[:, :, 5] = np.nan
    found = realised_saving(history, promised(history, 2), np.full(2, 100.0), 200.0, 0.8)
    assert found.days == history.days[3:5] and found.per_month == pytest.approx(0.0)


def test_a_saving_does_not_count_where_nodes_got_too_hot() -> None:
    history = idle(3)
    history.node_usage[0, CPU, 4, :1] = 0.9
    found = realised_saving(history, promised(history, 2), np.full(3, 100.0), 500.0, 0.8)
    assert found.hot_share == pytest.approx(1 / (3 * 3 * 48)) and not found.counts
    assert "too hot to count as saved" in found.line() and "200 EUR a month less" in found.line()
    assert found.to_json()["counts"] is False


def test_without_a_price_or_a_day_no_sum_is_named() -> None:
    history = idle(2)
    found = realised_saving(history, promised(history, 2), np.array([100.0, np.nan]), 500.0, 0.8)
    assert (found.to_json()["realised_per_month"], found.unpriced) == (None, 1)
    assert "no sum is known: nodes of before or of now have no price" in found.line()
    found = realised_saving(history, promised(history, N_DAYS - 1), np.full(2, 100.0), 500.0, 0.8)
    assert found.to_json()["counts"] is None and found.line().endswith("no whole day has been measured since")


def test_the_last_promise_is_read_as_it_was_made_and_damaged_ones_are_left_out(tmp_path: Path) -> None:
    store, promise = open_store(str(tmp_path)), promised(idle(1), 0)
    assert last_promise(store) is None
    later = replace(promise, made_at=promise.made_at + timedelta(days=1), nodes=2)
    for one in (later, promise):
        keep_promise(store, one)
    assert last_promise(store) == later
    store.put(f"issued/saving-{later.made_at + timedelta(days=1):%Y%m%dT%H%M%SZ}.json", b'{"nodes": 1}')
    store.put("issued/saving-20990101T000000Z.json", b"\xff")
    assert last_promise(store) == later
