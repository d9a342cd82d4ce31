"""The last days of the bundled sample, moved in time so that they lead up to now and one day beyond.

The sample's clock on the wall becomes UTC, by which everything counts here: its evenings are evenings in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from base.arrays import Floats, Ints
from forecast.resources import RESOURCES
from trainer.history.cleaning import Tally
from trainer.history.history_layout import read_settings

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
HALF_HOUR = 1800
_DAY = 86_400
_USAGE = [resource.column for resource in RESOURCES]


@dataclass(frozen=True, slots=True)
class Course:
    """begins: (n,) unix seconds, ascending, of half hours; usage: (n, n_resources) means over them."""

    begins: Ints
    usage: Floats

    def at(self, moment: float) -> Floats | None:
        """(n_resources,) in the half hour of a moment; None = it was not there."""
        row = int(np.searchsorted(self.begins, moment, side="right")) - 1
        if row < 0 or moment >= self.begins[row] + HALF_HOUR:
            return None
        found: Floats = self.usage[row]
        return found


@dataclass(frozen=True, slots=True)
class PodCourse:
    """A pod. owner: kind and name of its service; requests: cores and bytes."""

    namespace: str
    name: str
    owner: tuple[str, str]
    node: str
    requests: tuple[float, float]
    course: Course

    @property
    def controller(self) -> tuple[str, str]:
        """Kind and name of what made it: of a Deployment's pod the ReplicaSet."""
        kind, name = self.owner
        return ("ReplicaSet", self.name.rpartition("-")[0]) if kind == "Deployment" else (kind, name)


@dataclass(frozen=True, slots=True)
class NodeCourse:
    """A node. capacity: (n_resources,); allocatable: cores and bytes."""

    name: str
    capacity: Floats
    allocatable: tuple[float, float]
    course: Course


@dataclass(frozen=True, slots=True)
class Sample:
    """end: unix time at which the last day ends."""

    pods: tuple[PodCourse, ...]
    nodes: tuple[NodeCourse, ...]
    end: int

    def replica_sets(self) -> list[tuple[str, str, str]]:
        """Namespace, name and Deployment of each."""
        return sorted({(p.namespace, p.controller[1], p.owner[1]) for p in self.pods if p.owner[0] == "Deployment"})

    def moment(self, now: float) -> float:
        """What to play at `now`: past the end the last day again and again."""
        days_beyond = int((now - self.end) // _DAY) + 1
        return now - max(days_beyond, 0) * _DAY

    def part(self, every: int) -> Sample:
        """A smaller cluster: every so-many-th node, and the pods on these."""
        nodes = self.nodes[::every]
        names = {node.name for node in nodes}
        return replace(self, nodes=nodes, pods=tuple(pod for pod in self.pods if pod.node in names))

    def times(self, copies: int) -> Sample:
        """A larger cluster: so many like it, in one. From the second on, nodes and namespaces have its number."""
        ends = ("", *(f"-{number}" for number in range(2, copies + 1)))
        return replace(
            self,
            nodes=tuple(replace(node, name=node.name + end) for end in ends for node in self.nodes),
            pods=tuple(
                replace(pod, namespace=pod.namespace + end, node=pod.node + end) for end in ends for pod in self.pods
            ),
        )


def read_sample(today: date, days: int, directory: Path = SAMPLE) -> Sample:
    """`days` whole days before `today` (UTC), today and tomorrow.

    Raises ValueError where the sample has not so many.
    """
    zone = read_settings(directory, Tally()).calendar.zone
    last = pd.Timestamp(pq.ParquetFile(directory / "nodes.parquet").read(["timestamp"])["timestamp"].to_numpy().max())
    midnight = datetime.combine(last.tz_localize(UTC).astimezone(zone).date() + timedelta(days=1), time(), zone)
    end = int(datetime.combine(today + timedelta(days=2), time(), UTC).timestamp())
    shift = end - int(midnight.timestamp())
    since = datetime.fromtimestamp(end - shift - (days + 2) * _DAY, UTC)
    # timestamps are compared as the file has them, so that only the days asked for are read
    nodes = _read(directory / "nodes.parquet", ["node"], since)
    if int(nodes["begin"].min()) > since.timestamp():
        raise ValueError(f"the sample has no {days + 2} days: ask for fewer")
    requests = pq.read_table(directory / "pods.parquet").to_pandas().set_index(["namespace", "pod"])
    asked = dict(zip(requests.index, requests[["request_cpu_cores", "request_memory_bytes"]].to_numpy(), strict=True))
    pods = _read(directory / "usage.parquet", ["namespace", "service", "pod", "node"], since)
    return Sample(
        pods=tuple(
            PodCourse(
                namespace, name, _split(str(rows["service"].iloc[0])), str(rows["node"].iloc[0]),
                (float(asked[namespace, name][0]), float(asked[namespace, name][1])), _course(rows, shift),
            )
            for (namespace, name), rows in _groups(pods, ["namespace", "pod"])
        ),
        nodes=tuple(_nodes(directory, nodes, shift)),
        end=end,
    )  # fmt: skip


def _nodes(directory: Path, usage: pd.DataFrame, shift: int) -> Iterator[NodeCourse]:
    capacity = pq.read_table(directory / "capacity.parquet").to_pandas().set_index("node")
    for name, rows in _groups(usage, "node"):
        of = capacity.loc[name]
        allocatable = (float(of["allocatable_cpu_cores"]), float(of["allocatable_memory_bytes"]))
        yield NodeCourse(name, of[_USAGE].to_numpy(dtype=np.float64), allocatable, _course(rows, shift))


def _read(path: Path, names: list[str], since: datetime) -> pd.DataFrame:
    table = pq.read_table(path, columns=["timestamp", *names, *_USAGE], filters=[("timestamp", ">=", since)])
    frame: pd.DataFrame = table.to_pandas()
    frame["begin"] = frame.pop("timestamp").astype("datetime64[s, UTC]").astype(np.int64)
    return frame.sort_values("begin", kind="stable")


def _groups(frame: pd.DataFrame, by: str | list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    yield from frame.groupby(by, observed=True, sort=True)


def _course(rows: pd.DataFrame, shift: int) -> Course:
    return Course(rows["begin"].to_numpy() + shift, rows[_USAGE].to_numpy(dtype=np.float64))


def _split(service: str) -> tuple[str, str]:
    kind, _, name = service.partition("/")
    return kind, name
