"""Two readings of one day: nothing that either knows is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from tests.trainer.own_history.days import DAY, PODS, day_tables, hours_of
from trainer.own_history_store import merge_days
from trainer.prometheus.day_tables import DayTables


def test_hours_that_the_server_has_forgotten_stay() -> None:
    merged = merge_days(day_tables(first=0, until=6), day_tables(first=3, until=24))
    assert hours_of(merged.usage) == [i / 2 for i in range(48)]
    assert merged.usage.num_rows == 48 * len(PODS)
    assert merged.nodes.num_rows == 48 * 2


def test_where_both_know_as_much_the_new_reading_counts() -> None:
    merged = merge_days(day_tables(until=6, level=1.0), day_tables(first=3, until=6, level=10.0))
    assert merged.usage.num_rows == 12 * len(PODS)
    frame = merged.usage.to_pandas()
    late = frame[frame.timestamp.dt.hour >= 3]
    assert (late.cpu_cores >= 40).all()
    assert (frame[frame.timestamp.dt.hour < 3].cpu_cores <= 4).all()


def test_late_samples_replace_a_reading_that_lacked_them_and_not_the_other_way_round() -> None:
    full = day_tables(until=2)
    thin = replace(full, usage=full.usage.filter(pa.array(np.arange(full.usage.num_rows) % len(PODS) > 0)))
    assert merge_days(thin, full).usage.num_rows == full.usage.num_rows
    assert merge_days(full, thin).usage.num_rows == full.usage.num_rows


def test_a_request_that_only_the_first_reading_knew_stays() -> None:
    merged = merge_days(day_tables(requests=0.5), day_tables(requests=float("nan")))
    assert merged.pods["request_cpu_cores"].to_pylist() == [0.5] * len(PODS)


def test_pods_that_only_one_reading_saw_are_all_there() -> None:
    day = day_tables()
    gone = replace(day, pods=day.pods.slice(0, 1), capacity=day.capacity.slice(1))
    for merged in (merge_days(day, gone), merge_days(gone, day)):
        assert sorted(merged.pods["pod"].to_pylist()) == sorted(pod for pod, _ in PODS)
        assert merged.capacity["node"].to_pylist() == ["node-0", "node-1"]


def with_cores(cores: float, day: DayTables) -> DayTables:
    """The reading found so many cores on node-1."""
    frame = day.capacity.to_pandas()
    frame.loc[frame["node"] == "node-1", "cpu_cores"] = cores
    return replace(day, capacity=pa.Table.from_pandas(frame, preserve_index=False))


def test_of_a_node_rebuilt_between_two_readings_the_larger_capacity_stays_in_front_of_the_last() -> None:
    """Failed before: the morning's values were judged by what the node had in the evening."""
    day = day_tables()
    merged = merge_days(with_cores(16.0, day), with_cores(4.0, day))
    rows = merged.capacity.select(["node", "cpu_cores", "day"]).to_pylist()
    assert rows == [
        {"node": "node-0", "cpu_cores": 100.0, "day": DAY},
        {"node": "node-1", "cpu_cores": 16.0, "day": DAY},
        {"node": "node-1", "cpu_cores": 4.0, "day": DAY},
    ]
    again = merge_days(merged, with_cores(8.0, day))
    assert again.capacity["cpu_cores"].to_pylist() == [100.0, 16.0, 8.0]
    assert merge_days(again, with_cores(8.0, day)).capacity.equals(again.capacity)


def test_a_capacity_that_was_not_read_again_or_that_an_older_release_stored_stays() -> None:
    day = day_tables()
    older = replace(day, capacity=day.capacity.drop_columns(["log_bytes_per_second"]))
    merged = merge_days(older, with_cores(float("nan"), day))
    assert merged.capacity["cpu_cores"].to_pylist() == [100.0, 100.0]
    assert merged.capacity["log_bytes_per_second"].to_pylist() == [100.0, 100.0]
