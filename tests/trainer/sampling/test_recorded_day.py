"""From cells to a history that the trainer opens."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from forecast.calendar import Calendar
from forecast.resources import CPU, MEMORY
from trainer.history.files import HistoryFiles
from trainer.history.history_layout import Layout
from trainer.own_history_store import OwnHistory, last_read
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.sampling.journal import Cell, NodeRecord, PodRecord, Record, packed, packed_numbers
from trainer.sampling.recorded_day import RecordedDay

_DAY = date(2026, 11, 30)
_MIDNIGHT = int(datetime.combine(_DAY, time(), UTC).timestamp())
_SET = ("ReplicaSet", "cart-6d5f7c9b8d")
_KNOWN: list[Record] = [
    NodeRecord("n1", (4.0, 16e9), (3.8, 15e9)),
    NodeRecord("n2", (8.0, 32e9), (7.8, 31e9)),
    PodRecord(0, "shop", "cart-6d5f7c9b8d-aaaaa", "u0", "n1", _SET, ("Deployment", "cart"), (0.5, 1e9)),
    PodRecord(1, "shop", "cache-0", "u1", "n1", ("StatefulSet", "cache"), None, (0.25, None)),
    PodRecord(2, "kube-system", "etcd-n2", "u2", "n2", ("Node", "n2"), None, (None, None)),
    PodRecord(3, "shop", "cache-0", "u3", "n2", ("StatefulSet", "cache"), None, (0.75, None)),  # it moved
]


def _cell(tick: int, pods: dict[int, tuple[float, float]], nodes: dict[str, tuple[float, float]]) -> Cell:
    usage = np.array([*pods.values()]).reshape(-1, 2), np.array([*nodes.values()]).reshape(-1, 2)
    return Cell(_MIDNIGHT + 300 * tick, packed_numbers([*pods]), packed(usage[0]), [*nodes], packed(usage[1]))


def _day(n_ticks: int, gap: range = range(0)) -> RecordedDay:
    day = RecordedDay(_DAY)
    for record in _KNOWN:
        day.add(record)
    for tick in range(n_ticks):
        if tick in gap:
            continue
        cache = {1: (1.0, 2e9)} if tick < 144 else {3: (1.0, 2e9)}
        pods = {0: (0.1 * (1 + tick % 2), 1e9), 2: (0.2, float("nan"))} | cache
        day.add(_cell(tick, pods, {"n1": (2.0, 4e9), "n2": (1.5, 5e9)}))
    return day


def test_a_whole_day_becomes_a_history_of_one_day(tmp_path: Path) -> None:
    day = _day(288)
    own = OwnHistory(str(tmp_path))
    own.begin(Calendar("UTC", None), 300, None)
    own.append(day.tables(SourceOptions()), read_until=day.read_until)
    assert last_read(tmp_path) == day.read_until
    files = HistoryFiles.open(tmp_path, until=last_read(tmp_path))
    history = files.history()
    assert history.days == (_DAY,)
    assert [str(one) for one in history.services] == ["shop/Deployment/cart", "shop/StatefulSet/cache"]
    assert files.nodes.capacity[:, [CPU, MEMORY]].tolist() == [[4.0, 16e9], [8.0, 32e9]]
    pods = files.pod_usage(_DAY, _DAY)
    cart = pods.usage[list(files.pods.pods).index("shop/cart-6d5f7c9b8d-aaaaa")]
    assert np.nanmean(cart[CPU]) == pytest.approx(0.15, rel=1e-5)


def test_a_pod_that_moved_is_on_each_of_its_nodes_in_its_time() -> None:
    usage = _day(288).tables(SourceOptions()).usage.to_pandas()
    cache = usage[usage["pod"] == "cache-0"]
    assert len(cache) == 288
    assert set(cache["node"].astype(str)[:144]) == {"n1"} and set(cache["node"].astype(str)[144:]) == {"n2"}
    requests = _day(288).tables(SourceOptions()).pods.to_pandas().set_index("pod")
    assert requests.loc["cache-0", "request_cpu_cores"] == 0.75
    assert np.isnan(requests.loc["etcd-n2", "request_cpu_cores"])


def test_the_static_pod_belongs_to_its_node() -> None:
    usage = _day(2).tables(SourceOptions()).usage.to_pandas()
    assert set(usage[usage["pod"] == "etcd-n2"]["service"].astype(str)) == {"StaticPod/etcd"}


def test_cells_that_are_missing_are_gaps() -> None:
    tables = _day(100, gap=range(20, 50)).tables(SourceOptions())
    times = (tables.usage["timestamp"].to_pandas().astype("int64") // 10**6).unique()
    assert not any(_MIDNIGHT + 300 * 20 <= at // 1000 < _MIDNIGHT + 300 * 50 for at in times.tolist())
    assert len(tables.nodes) == 2 * 70


def test_two_recordings_of_one_day_become_one(tmp_path: Path) -> None:
    own = OwnHistory(str(tmp_path))
    first, second = _day(40), _day(100, gap=range(60))
    own.append(first.tables(SourceOptions()), read_until=first.read_until)
    own.append(second.tables(SourceOptions()), read_until=second.read_until)
    assert len(pq.read_table(tmp_path / Layout.nodes / f"{_DAY}.parquet")) == 2 * 80


def test_nothing_recorded_is_an_empty_day() -> None:
    assert len(RecordedDay(_DAY).tables(SourceOptions()).usage) == 0
