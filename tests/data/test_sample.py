"""What the bundled sample promises, read from its files; and that it can be rebuilt where the traces are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.build_sample import build, main
from forecast.resources import RESOURCES
from tests.traces import TRACES, needs_traces

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "data" / "sample"
COLUMNS = [resource.column for resource in RESOURCES]


@pytest.fixture(scope="module")
def usage() -> pd.DataFrame:
    frame = pd.read_parquet(SAMPLE / "usage.parquet")
    frame["local"] = frame["timestamp"].dt.tz_convert("Europe/Berlin")
    frame["owner"] = frame["namespace"].astype(str) + "/" + frame["service"].astype(str)
    return frame


@pytest.fixture(scope="module")
def nodes() -> pd.DataFrame:
    return pd.read_parquet(SAMPLE / "nodes.parquet")


@pytest.fixture(scope="module")
def capacity() -> pd.DataFrame:
    return pd.read_parquet(SAMPLE / "capacity.parquet").set_index("node")


def test_it_has_the_columns_of_the_layout_without_nulls_and_no_row_twice(
    usage: pd.DataFrame, nodes: pd.DataFrame
) -> None:
    assert sum(file.stat().st_size for file in SAMPLE.iterdir()) < 12_000_000
    assert [*usage.columns[:10]] == ["timestamp", "namespace", "service", "pod", "node", *COLUMNS]
    assert [*nodes.columns] == ["timestamp", "node", *COLUMNS]
    assert usage[COLUMNS].notna().all(axis=None)
    assert (usage[COLUMNS] > 0).any().all() and (usage[COLUMNS] >= 0).all(axis=None)
    assert usage["timestamp"].is_monotonic_increasing
    assert pq.read_schema(SAMPLE / "usage.parquet").field("timestamp").type == pa.timestamp("ms", tz="UTC")
    assert not usage.duplicated(["timestamp", "namespace", "pod"]).any()
    assert not nodes.duplicated(["timestamp", "node"]).any()


def test_every_pod_has_one_service_and_requests_that_are_wrong_in_both_directions(usage: pd.DataFrame) -> None:
    pods = pd.read_parquet(SAMPLE / "pods.parquet")
    assert not pods.duplicated(["namespace", "pod"]).any()
    seen = usage[["namespace", "service", "pod"]].astype(str).drop_duplicates()
    assert len(seen) == len(pods) == len(seen.merge(pods, on=["namespace", "service", "pod"]))
    assert (pods[["request_cpu_cores", "request_memory_bytes"]] > 0).all(axis=None)
    asked = pods.groupby(["namespace", "service"])["request_cpu_cores"].first()
    ratio = asked / usage.groupby(["namespace", "service"], observed=True)["cpu_cores"].mean()
    assert (ratio > 3).sum() >= 3 and (ratio < 1).sum() >= 5


def test_it_has_48_services_and_600_to_700_pods_for_32_whole_local_days(usage: pd.DataFrame) -> None:
    assert usage["owner"].nunique() == 48
    assert usage.groupby("timestamp").size().between(600, 700).all()
    settings = json.loads((SAMPLE / "history.json").read_text())
    assert settings == {"time_zone": "Europe/Berlin", "holiday_country": "DE", "step": "30m"}
    times = pd.DatetimeIndex(usage["local"].unique()).sort_values()
    assert len(times) == 32 * 48 and set(np.diff(times.to_numpy())) == {np.timedelta64(30, "m")}
    assert (times[0].hour, times[0].minute) == (0, 0)


def test_its_50_nodes_come_in_sizes_of_ratio_1_2_4(capacity: pd.DataFrame) -> None:
    assert len(capacity) == 50
    for column in COLUMNS:
        assert sorted(set(capacity[column] / capacity[column].min())) == [1.0, 2.0, 4.0]
    assert (capacity["allocatable_cpu_cores"] < capacity["cpu_cores"]).all()
    assert (capacity["allocatable_memory_bytes"] < capacity["memory_bytes"]).all()


def test_nights_are_quiet_and_peaks_in_the_evening_but_of_a_quarter_of_the_services(usage: pd.DataFrame) -> None:
    by_hour = usage.groupby(usage["local"].dt.hour)[COLUMNS].sum()
    for column in ["cpu_cores", "disk_bytes_per_second", "network_bytes_per_second", "log_bytes_per_second"]:
        assert by_hour[column].idxmax() in range(19, 23)
        assert by_hour[column].loc[2:4].max() < 0.45 * by_hour[column].max()
    peak_hour = usage.groupby(["owner", usage["local"].dt.hour])["cpu_cores"].sum().unstack().idxmax(axis=1)
    assert (~peak_hour.between(17, 23)).mean() <= 0.25


def test_ten_services_are_autoscaled_and_follow_their_load(usage: pd.DataFrame) -> None:
    replicas = usage.groupby(["owner", "timestamp"]).size().unstack()
    load = usage.groupby(["owner", "timestamp"])["cpu_cores"].sum().unstack()
    autoscaled = replicas.index[replicas.nunique(axis=1) > 1]
    assert len(autoscaled) == 10
    for owner in autoscaled:
        assert np.corrcoef(replicas.loc[owner], load.loc[owner])[0, 1] > 0.8
        assert replicas.loc[owner].max() >= 2 * replicas.loc[owner].min()


def test_a_pod_stays_on_one_node_and_nodes_hold_more_than_their_pods_and_are_sometimes_hot(
    usage: pd.DataFrame, nodes: pd.DataFrame, capacity: pd.DataFrame
) -> None:
    assert usage.groupby(["namespace", "pod"], observed=True)["node"].nunique().max() == 1
    of_pods = usage.groupby(["timestamp", "node"], observed=True)[COLUMNS].sum()
    totals = nodes.set_index(["timestamp", "node"])[COLUMNS]
    base = totals - of_pods.reindex(totals.index, fill_value=0.0)
    # Rounding to 12 mantissa bits can eat into the base of a busy node, not more.
    assert (base > -0.001 * totals).all(axis=None)
    assert (base.mean() > 0).all()
    share = nodes[COLUMNS].to_numpy() / capacity.loc[nodes["node"], COLUMNS].to_numpy()
    assert 0.03 < (np.delete(share, 1, axis=1) > 0.8).any(axis=1).mean() < 0.15


def test_requests_of_all_pods_fit_on_the_nodes(usage: pd.DataFrame, capacity: pd.DataFrame) -> None:
    pods = pd.read_parquet(SAMPLE / "pods.parquet").set_index(["namespace", "pod"])
    for moment in usage["timestamp"].drop_duplicates().iloc[[8, 700, 1535]]:
        now = usage[usage["timestamp"] == moment]
        requests = pods.loc[pd.MultiIndex.from_frame(now[["namespace", "pod"]].astype(str))]
        per_node = requests.groupby(now["node"].astype(str).to_numpy())[
            ["request_cpu_cores", "request_memory_bytes"]
        ].sum()
        allowed = capacity.loc[per_node.index, ["allocatable_cpu_cores", "allocatable_memory_bytes"]]
        assert (per_node.to_numpy() <= allowed.to_numpy() * (1 + 1e-9)).all()


def test_the_licences_of_both_sources_are_with_the_data() -> None:
    readme = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
    for needed in ("NetManAIOps/OmniAnomaly", "zhhlee/InterFusion", "MIT License", "Permission is hereby granted"):
        assert needed in readme


def test_a_directory_without_the_traces_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--traces", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and ".parquet is not there" in said and "data/README.md" in said


@needs_traces("smd.parquet", "asd.parquet", untested="that the sample can be rebuilt")
def test_a_rebuild_gives_the_same_files(tmp_path: Path) -> None:
    build(TRACES, tmp_path)
    # The bytes also depend on the version of the writer, which the file names; the content does not.
    created_by = [pq.read_metadata(folder / "usage.parquet").created_by for folder in (tmp_path, SAMPLE)]
    for file in sorted(SAMPLE.iterdir()):
        rebuilt = tmp_path / file.name
        if file.suffix == ".json" or created_by[0] == created_by[1]:
            assert _digest(rebuilt) == _digest(file), file.name
        else:
            assert pq.read_table(rebuilt).equals(pq.read_table(file)), file.name


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
