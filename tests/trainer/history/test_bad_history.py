"""Every way a history directory can be wrong: one clear sentence, or a documented fallback that is reported."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from base.errors import InputError, NotEnoughHistory
from tests.trainer.history.histories import COLUMNS, tables
from trainer.history.cleaning import CleaningCause
from trainer.history.files import HistoryFiles, read_history


def refused(directory: Path, *words: str) -> None:
    """Reading fails with one sentence that contains the words."""
    with pytest.raises(InputError) as caught:
        read_history(directory)
    message = str(caught.value)
    assert "\n" not in message
    assert 20 < len(message) < 600
    for word in words:
        assert word in message


# Files


def test_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "nowhere", "does not exist")


def test_an_empty_directory(tmp_path: Path) -> None:
    refused(tmp_path, "usage.parquet is missing", "found nothing")


@pytest.mark.parametrize("name", ["usage.parquet", "nodes.parquet", "pods.parquet", "capacity.parquet"])
class TestFile:
    def test_missing(self, tmp_path: Path, name: str) -> None:
        (tables(days=1).write(tmp_path) / name).unlink()
        refused(tmp_path, f"{name} is missing")

    @pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
    def test_truncated(self, tmp_path: Path, name: str, share: float) -> None:
        path = tables(days=1).write(tmp_path) / name
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        refused(tmp_path, name, "Parquet", "export the history again")

    def test_empty_directory_in_its_place(self, tmp_path: Path, name: str) -> None:
        path = tables(days=1).write(tmp_path) / name
        path.unlink()
        path.mkdir()
        refused(tmp_path, name, "without Parquet files")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_garbled_bytes_never_end_in_a_traceback(tmp_path: Path, data: st.DataObject) -> None:
    path = tables(days=1, step_minutes=30).write(tmp_path) / "usage.parquet"
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        read_history(tmp_path)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - most garbled files can still be read


# Columns


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("usage", "timestamp"),
        ("usage", "service"),
        ("nodes", "node"),
        ("pods", "pod"),
        ("capacity", "node"),
    ],
)
def test_a_required_column_is_missing(tmp_path: Path, table: str, column: str) -> None:
    data = tables(days=1)
    setattr(data, table, getattr(data, table).drop(columns=column))
    refused(data.write(tmp_path), f"{table}.parquet", f"no column {column!r}")


def test_a_misspelt_column_is_guessed(tmp_path: Path) -> None:
    data = tables(days=1)
    data.usage = data.usage.rename(columns={"timestamp": "time_stamp"})
    refused(data.write(tmp_path), "'time_stamp' meant")


def test_no_usage_column_at_all(tmp_path: Path) -> None:
    data = tables(days=1)
    data.usage = data.usage.drop(columns=COLUMNS)
    refused(data.write(tmp_path), "no usage column", "cpu_cores")


def test_a_missing_usage_column_is_not_measured(tmp_path: Path) -> None:
    data = tables(days=1)
    data.usage = data.usage.drop(columns=["log_bytes_per_second", "disk_bytes_per_second"])
    files = HistoryFiles.open(data.write(tmp_path))
    history = files.history()
    assert np.isnan(history.usage_per_pod[:, [2, 4]]).all()
    assert np.isfinite(history.usage_per_pod[:, [0, 1, 3]]).all()
    # Pods were there and nobody knows what they used: the node's sum over its pods is not 0.
    assert np.isnan(history.node_pod_usage[:, [2, 4]]).all()
    assert files.report.lines() == ["usage.parquet: 2 usage columns are missing: taken as not measured"]


@pytest.mark.parametrize(
    ("table", "column", "value", "word"),
    [
        ("usage", "timestamp", 1_772_409_600, "timestamp"),
        ("usage", "cpu_cores", "12m", "number"),
        ("usage", "cpu_cores", True, "number"),
        ("usage", "pod", 17, "text"),
        ("pods", "request_cpu_cores", "500m", "number"),
        ("capacity", "cpu_cores", "4", "number"),
    ],
)
def test_a_column_of_the_wrong_type(tmp_path: Path, table: str, column: str, value: Any, word: str) -> None:
    data = tables(days=1)
    getattr(data, table)[column] = value
    refused(data.write(tmp_path), f"{table}.parquet", f"column {column} is", word)


def test_a_column_that_is_null_throughout(tmp_path: Path) -> None:
    data = tables(days=1)
    data.usage["log_bytes_per_second"] = None
    data.usage["node"] = None
    history = read_history(data.write(tmp_path))
    assert np.isnan(history.usage_per_pod[:, 4]).all()
    assert len(history.placements.pod) == 0
    assert (history.replicas[0] == 2).all()


@pytest.mark.parametrize("service", ["cart", "a/b/c", "/cart", "Deployment/", ""])
def test_a_service_that_is_not_kind_and_name(tmp_path: Path, service: str) -> None:
    data = tables(days=1)
    data.usage["service"] = service
    refused(data.write(tmp_path), repr(service), "Deployment/cart")


def test_only_pods_that_nobody_places(tmp_path: Path) -> None:
    data = tables(days=1)
    data.usage["service"] = "DaemonSet/agent"
    refused(data.write(tmp_path), "DaemonSets")


# history.json


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", ["history.json", "JSON"]),
        ("[]", ["history.json", "list"]),
        ('{"timezone": "UTC"}', ["'timezone'", "typo of time_zone"]),
        ('{"time_zone": "Mars/Olympus"}', ["Mars/Olympus", "IANA"]),
        ('{"time_zone": "../../etc/passwd"}', ["IANA"]),
        ('{"time_zone": 3}', ["time_zone is 3"]),
        ('{"holiday_country": "XX"}', ["'XX'"]),
        ('{"step": "often"}', ["'often'"]),
        ('{"step": "2h"}', ["'2h'", "1h"]),
        ('{"step": true}', ["step is True"]),
        ('{"step": -300}', ["-300"]),
    ],
)
def test_bad_settings(tmp_path: Path, content: str, words: list[str]) -> None:
    (tables(days=1).write(tmp_path) / "history.json").write_text(content)
    refused(tmp_path, *words)


def test_a_wrong_step_gives_way_to_the_measured_one(tmp_path: Path) -> None:
    files = HistoryFiles.open(tables(days=1, step_minutes=15, settings={"step": "1h"}).write(tmp_path))
    assert files.report.total(CleaningCause.STEP) == 1
    assert files.report.total(CleaningCause.DUPLICATE) == 0
    assert (files.history().replicas[0] == 2).all()


def test_samples_too_far_apart(tmp_path: Path) -> None:
    refused(tables(days=3, step_minutes=120).write(tmp_path), "7200 s apart", "3600 s")


# Time


def test_no_rows(tmp_path: Path) -> None:
    data = tables(days=1)
    data.usage = data.usage[:0]
    refused(data.write(tmp_path), "usage.parquet", "no usable row")


def test_a_single_sample(tmp_path: Path) -> None:
    data = tables(days=1)
    data.usage = data.usage[:1]
    with pytest.raises(NotEnoughHistory):
        read_history(data.write(tmp_path))


def test_less_than_half_a_day(tmp_path: Path) -> None:
    directory = tables(days=0.4).write(tmp_path)
    with pytest.raises(NotEnoughHistory) as caught:
        read_history(directory)
    assert caught.value.days == 0


@pytest.mark.parametrize("stray", ["1970-01-01", "2001-09-09", "2031-01-01", "2099-12-31"])
def test_a_wrong_clock_does_not_stretch_the_history(tmp_path: Path, stray: str) -> None:
    data = tables(days=3)
    data.usage.loc[5, "timestamp"] = pd.Timestamp(stray, tz="UTC")
    files = HistoryFiles.open(data.write(tmp_path))
    assert files.history().n_days == 3
    assert files.report.total(CleaningCause.NO_TIME) + files.report.total(CleaningCause.STRAY_TIME) == 1


def test_a_clock_that_is_wrong_by_days_does_not_stretch_the_history(tmp_path: Path) -> None:
    data = tables(days=3, step_minutes=30, services={"cart": 70, "db": 1})
    late = data.usage["pod"] == "db-0"
    data.usage["timestamp"] += pd.to_timedelta(np.where(late, 20, 0), unit="D")
    files = HistoryFiles.open(data.write(tmp_path))
    assert files.days == (date(2026, 3, 2), date(2026, 3, 3), date(2026, 3, 4))
    assert any("hardly any rows" in line for line in files.report.lines())
    assert np.nansum(files.history().replicas[1]) == 0


def test_rows_without_time_or_name_are_left_out(tmp_path: Path) -> None:
    data = tables(days=1)
    data.usage.loc[0, "timestamp"] = pd.NaT
    data.usage.loc[[3, 4], "pod"] = None
    data.usage.loc[8, "namespace"] = None
    data.nodes.loc[2, "node"] = None
    files = HistoryFiles.open(data.write(tmp_path))
    history = files.history()
    assert files.report.counts == {
        ("usage.parquet", CleaningCause.NO_TIME): 1,
        ("usage.parquet", CleaningCause.NO_NAME): 3,
        ("nodes.parquet", CleaningCause.NO_NAME): 1,
    }
    assert history.replicas[:, 0, 2:].tolist() == [[2.0] * 46, [1.0] * 46]


def test_duplicate_rows_count_once_and_the_last_one_counts(tmp_path: Path) -> None:
    data = tables(days=1)
    twice = data.usage[100:200].copy()
    data.usage.loc[100:199, COLUMNS] = 1e5
    data.usage = pd.concat([data.usage, twice], ignore_index=True)
    files = HistoryFiles.open(data.write(tmp_path, row_group_size=50))
    history = files.history()
    assert files.report.total(CleaningCause.DUPLICATE) == 100
    assert np.nanmax(history.usage_per_pod) <= 10
    assert (history.replicas[0] == 2).all()


# Values


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (np.inf, CleaningCause.NOT_FINITE),
        (-np.inf, CleaningCause.NOT_FINITE),
        (1e300, CleaningCause.NOT_FINITE),
        (-5.0, CleaningCause.NEGATIVE),
        (4e6, CleaningCause.ABOVE_CAPACITY),
    ],
)
@pytest.mark.filterwarnings("error")
def test_impossible_values_are_not_measured(tmp_path: Path, value: float, cause: CleaningCause) -> None:
    data = tables(days=1, step_minutes=30, services={"cart": 1}, n_nodes=1)
    data.usage.loc[0, "cpu_cores"] = value
    data.nodes.loc[0, "cpu_cores"] = value
    files = HistoryFiles.open(data.write(tmp_path))
    history = files.history()
    assert files.report.counts == {("usage.parquet", cause): 1, ("nodes.parquet", cause): 1}
    assert np.isnan(history.usage_per_pod[0, :, 0, 0]).tolist() == [True, False, False, False, False]
    assert np.isnan(history.node_usage[0, :, 0, 0]).tolist() == [True, False, False, False, False]
    # The pod was there all the same.
    assert (history.replicas == 1).all()


def test_nan_from_arrow_is_told_from_null(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = tables(days=1)
    directory = data.write(tmp_path)
    table = pa.Table.from_pandas(data.usage, preserve_index=False)
    values = data.usage["cpu_cores"].tolist()
    values[0], values[1] = float("nan"), None
    table = table.set_column(table.column_names.index("cpu_cores"), "cpu_cores", pa.array(values, from_pandas=False))
    pq.write_table(table, directory / "usage.parquet")
    files = HistoryFiles.open(directory)
    files.history()
    assert files.report.counts == {("usage.parquet", CleaningCause.NOT_FINITE): 1}


# Tables beside the samples


def test_unknown_pods_and_nodes_have_unknown_requests_and_capacities(tmp_path: Path) -> None:
    data = tables(days=1)
    data.pods = data.pods[data.pods["pod"] != "db-0"]
    data.capacity = data.capacity[data.capacity["node"] != "node-1"]
    files = HistoryFiles.open(data.write(tmp_path))
    history = files.history()
    assert np.isnan(history.requests).tolist() == [[False, False], [True, True]]
    assert history.nodes == ("node-0", "node-1")
    assert np.isnan(history.capacity[1]).all()
    assert np.isnan(history.allocatable[1]).all()
    assert np.isfinite(history.node_usage).all()
    assert files.report.counts == {
        ("pods.parquet", CleaningCause.UNKNOWN_POD): 1,
        ("capacity.parquet", CleaningCause.UNKNOWN_NODE): 1,
    }


def test_capacities_and_requests_that_cannot_be_true_are_unknown(tmp_path: Path) -> None:
    data = tables(days=1)
    data.capacity["cpu_cores"] = [0.0, -4.0]
    data.capacity["disk_bytes_per_second"] = np.nan
    data.pods["request_memory_bytes"] = [np.inf, -1.0, 0.0]
    files = HistoryFiles.open(data.write(tmp_path))
    history = files.history()
    assert np.isnan(history.capacity[:, [0, 2]]).all()
    assert np.isnan(history.requests[0, 1])
    assert history.requests[1, 1] == 0, "a request of nothing is a request"
    assert files.report.total(CleaningCause.BAD_CAPACITY) == 4


def test_allocatable_is_read_and_falls_back_to_capacity(tmp_path: Path) -> None:
    data = tables(days=1)
    data.capacity["allocatable_cpu_cores"] = [3.5, np.nan]
    history = read_history(data.write(tmp_path))
    np.testing.assert_allclose(history.allocatable, [[3.5, 1e6], [1e6, 1e6]])


def test_keys_of_somebody_else_in_history_json_are_ignored_and_told(tmp_path: Path) -> None:
    files = HistoryFiles.open(tables(days=1, settings={"cluster": "eu-1", "step": "30min"}).write(tmp_path))
    assert any("keys are not settings" in line for line in files.report.lines())
