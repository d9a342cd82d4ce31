"""The bundled sample's last 24 hours from six in the morning: nodes, online pods as they came and went, what the nodes
really used, and a model of the days before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from base.arrays import Floats
from benchmarks.job_day_jobs import FIRST_HOUR
from forecast.calendar import SLOTS_PER_DAY
from forecast.fit import fit
from forecast.model import PeakModel
from forecast_scheduler.commands.demo.evening_scorer import cluster_at
from kube.decoding.decoding import ApiObject, Kind, decode_object
from kube.objects.objects import PodInfo
from trainer.history.files import read_history, read_pod_usage

_KINDS: Final = {"Node": Kind.NODES, "ReplicaSet": Kind.REPLICA_SETS, "Job": Kind.JOBS}


@dataclass(frozen=True, slots=True)
class RecordedDay:
    """
    start    : unix seconds
    model    : of the whole days before the day of `start`
    nodes    : names; all node axes follow
    capacity : (n_nodes, n_resources) base units
    usage    : (n_nodes, n_resources, 48) what the nodes really used, without jobs
    before   : (n_nodes, n_resources) in the half hour before
    objects  : Node, ReplicaSet and Job objects by kind
    pods     : those that are there in each half hour
    """

    start: float
    model: PeakModel
    nodes: tuple[str, ...]
    capacity: Floats
    usage: Floats
    before: Floats
    objects: Mapping[Kind, list[ApiObject]]
    pods: tuple[tuple[PodInfo, ...], ...]


def recorded_day(history_directory: Path = Path("data/sample")) -> RecordedDay:
    """Takes some seconds."""
    history = read_history(history_directory)
    day = history.n_days - 2
    model = fit(history.before(day))
    pods = read_pod_usage(history_directory, history.days[day], history.days[-1])
    start = history.calendar.at(history.days[day], FIRST_HOUR)
    objects: dict[Kind, dict[str, ApiObject]] = {kind: {} for kind in _KINDS.values()}
    known: dict[str, PodInfo] = {}
    there = []
    for slot in range(SLOTS_PER_DAY):
        items = cluster_at(history, pods, start + timedelta(minutes=30 * slot))["items"]
        here = []
        for item in items:
            name = f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
            if item["kind"] == "Pod":
                if name not in known:
                    decoded = _decoded(Kind.PODS, item)
                    assert isinstance(decoded, PodInfo)
                    known[name] = decoded
                here.append(known[name])
            elif name not in (of_kind := objects[_KINDS[item["kind"]]]):
                of_kind[name] = _decoded(_KINDS[item["kind"]], item)
        there.append(tuple(here))
    first = day * SLOTS_PER_DAY + FIRST_HOUR * 2
    usage = np.nan_to_num(history.node_usage.reshape(*history.node_usage.shape[:2], -1)).astype(np.float64)
    return RecordedDay(
        start=start.timestamp(),
        model=model,
        nodes=tuple(history.nodes),
        capacity=history.capacity,
        usage=usage[:, :, first : first + SLOTS_PER_DAY],
        before=usage[:, :, first - 1],
        objects={kind: list(of_kind.values()) for kind, of_kind in objects.items()},
        pods=tuple(there),
    )


def _decoded(kind: Kind, manifest: Mapping[str, Any]) -> ApiObject:
    return decode_object(kind, json.dumps(manifest).encode())[0]
