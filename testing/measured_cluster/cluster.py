"""A cluster whose truth is known: the history layout on disk, and what its exporters would have told Prometheus.

Ten nodes and 23 services (Deployments, of which three are autoscaled, StatefulSets, a DaemonSet, a CronJob) for some
days, with pods that move, rollouts, counter resets, log rotation and two gaps of the monitoring. Within a five-minute
tick every counter grows linearly and pods come and go only between ticks, so rate() over five minutes *is* the truth.

    truth = build_truth(directory, n_days=15, start=date(...))
    HistoryFiles.open(truth.history)                      # the truth on disk
    with PrometheusServer(truth.blocks) as server: ...    # the same through a real server
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path

import numpy as np

from base.arrays import Bools, Floats
from forecast.resources import CPU, LOG, MEMORY, RESOURCES
from testing.measured_cluster.exporters import node_series, pod_series
from testing.measured_cluster.truth_files import write_history
from testing.servers.openmetrics import write_blocks

STEP = 300
_DAY = 86_400 // STEP
N_NODES = 10
CORES, MEMORY_BYTES, NETWORK_SPEED = 16.0, 64 * 2.0**30, 1.25e9


@dataclass(frozen=True, slots=True)
class PodLife:
    """A pod object. begin, end: ticks (end not included). usage: (end - begin, n_resources).

    owner  : kind and name of its controller; top: Kind/name of the service
    resets : unix times at which its counters restart (right after a scrape)
    """

    namespace: str
    pod: str
    uid: str
    node: int
    owner: tuple[str, str]
    top: str
    begin: int
    end: int
    usage: Floats
    requests: tuple[float, float]
    resets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cluster:
    """start: unix time of tick 0. base: (n_nodes, n_ticks, n_resources) beside the pods. gap: (n_ticks,) nothing was
    scraped; silent: (n_ticks,) kube-state-metrics was not."""

    start: int
    n_ticks: int
    lives: tuple[PodLife, ...]
    base: Floats
    gap: Bools
    silent: Bools


@dataclass(frozen=True, slots=True)
class Truth:
    """Where it was written. services: namespace/Kind/name of all services; n_samples: in the TSDB."""

    history: Path
    blocks: Path
    start: date
    n_days: int
    services: tuple[str, ...]
    n_samples: int


@dataclass(slots=True)
class _Builder:
    rng: np.random.Generator
    n_ticks: int
    noise: float
    lives: list[PodLife] = field(default_factory=list)
    turn: int = 0

    def node(self) -> int:
        self.turn += 1
        return self.turn % N_NODES

    def add(
        self, namespace: str, pod: str, node: int, owner: tuple[str, str], top: str, begin: int, end: int, level: Floats
    ) -> None:
        """level: (n_ticks, n_resources) mean usage of one pod of the service."""
        if end <= begin:
            return
        noise = np.exp(self.rng.normal(0, self.noise, (end - begin, len(RESOURCES))))
        resets: tuple[int, ...] = ()
        if end - begin > 20 and self.rng.random() < 0.3:
            resets = (int(self.rng.integers(begin + 2, end - 2)),)
        uid = f"{len(self.lives):08x}-0000"
        usage = level[begin:end] * noise
        requests = (round(float(level[:, CPU].mean()) * 1.5, 3), float(round(level[:, MEMORY].mean() * 1.2)))
        self.lives.append(PodLife(namespace, pod, uid, node, owner, top, begin, end, usage, requests, resets))


def build_truth(directory: Path, *, n_days: int = 15, start: date, seed: int = 0) -> Truth:
    """Write `directory`/history and `directory`/blocks; the days are start .. start + n_days - 1 (UTC)."""
    cluster = make_cluster(n_days=n_days, start=start, seed=seed)
    history, blocks = directory / "history", directory / "blocks"
    write_history(cluster, history)
    series = [*pod_series(cluster), *node_series(cluster)]
    n_samples = write_blocks(series, blocks)
    services = tuple(sorted({f"{life.namespace}/{life.top}" for life in cluster.lives}))
    return Truth(history, blocks, start, n_days, services, n_samples)


def make_cluster(*, n_days: int, start: date, seed: int = 0, noise: float = 0.05) -> Cluster:
    """The truth in memory. noise: standard deviation of a pod's usage from tick to tick, as a share of it."""
    rng = np.random.default_rng(seed)
    n_ticks = n_days * _DAY
    build = _Builder(rng, n_ticks, noise)
    for number in range(18):
        _deployment(build, f"app-{number:02d}", ("shop", "pay", "media")[number % 3], number)
    for number in range(2):
        _stateful_set(build, f"db-{number}", number)
    _daemon_set(build)
    _cron_job(build, int(datetime.combine(start, time(), UTC).timestamp()))
    _replica_set_alone(build)
    base = np.zeros((N_NODES, n_ticks, len(RESOURCES)))
    base[:, :, :LOG] = _level(n_ticks, rng, cpu=0.4, memory=2e9, disk=5e5, network=2e5, log=0.0)[:, :LOG]
    gap, silent = np.zeros(n_ticks, dtype=bool), np.zeros(n_ticks, dtype=bool)
    if n_days > 2:
        gap[_DAY + 100 : _DAY + 118] = True  # an hour and a half in which Prometheus was down
        silent[2 * _DAY + 31 : 2 * _DAY + 36] = True  # kube-state-metrics restarted; no pod comes or goes then
    return Cluster(
        int(datetime.combine(start, time(), UTC).timestamp()), n_ticks, tuple(build.lives), base, gap, silent
    )


def _level(
    n_ticks: int, rng: np.random.Generator, *, cpu: float, memory: float, disk: float, network: float, log: float
) -> Floats:
    """(n_ticks, n_resources): an evening peak, a weekly rhythm, resources that move together but not alike."""
    hour = (np.arange(n_ticks) % _DAY) / _DAY * 24
    week = 1 + 0.2 * np.sin(np.arange(n_ticks) / (7 * _DAY) * 2 * np.pi)
    peak = rng.normal(20, 1.5)
    evening = (0.15 + np.exp(-(((hour - peak + 12) % 24 - 12) ** 2) / 8)) * week
    night = 0.2 + np.exp(-(((hour - 3 + 12) % 24 - 12) ** 2) / 4)
    shape = [evening, 0.9 + 0.1 * evening, night, evening, evening]
    return np.stack(
        [size * curve for size, curve in zip((cpu, memory, disk, network, log), shape, strict=True)], axis=1
    )


def _some_level(build: _Builder) -> Floats:
    size = float(np.exp(build.rng.normal(0, 0.5)))
    return _level(
        build.n_ticks, build.rng, cpu=0.5 * size, memory=4e8 * size, disk=2e5 * size, network=1e6 * size, log=2e4 * size
    )


def _safe(tick: int) -> int:
    """Pods come and go neither in nor next to the gaps."""
    day = tick // _DAY
    if day == 1 and 95 <= tick % _DAY <= 122:
        return day * _DAY + 124
    if day == 2 and 28 <= tick % _DAY <= 40:
        return day * _DAY + 42
    return tick


def _deployment(build: _Builder, name: str, namespace: str, number: int) -> None:
    """Rolled out every fifth day; every sixth one is autoscaled: 1 pod, in the evening 4."""
    level, autoscaled = _some_level(build), number % 6 == 0
    releases = [
        0,
        *(_safe(d * _DAY + 120 + number) for d in range(1 + number % 5, build.n_ticks // _DAY, 5)),
        build.n_ticks,
    ]
    hashes, top = ["5d9c7b8f6", "7bdf4c6c9", "66c9b7d5f", "84f5d6c4b", "9f7c8b5d2"], f"Deployment/{name}"
    for release, (begin, end) in enumerate(itertools.pairwise(releases)):
        replica_set = f"{name}-{hashes[release % 5]}"
        owner = ("ReplicaSet", replica_set)
        for replica in range(1 + number % 3):
            pod = f"{replica_set}-{release:x}{replica}abc"
            build.add(namespace, pod, build.node(), owner, top, begin, end, level)
        if autoscaled:
            for day in range(begin // _DAY, end // _DAY + 1):
                up, down = max(begin, day * _DAY + 18 * 12), min(end, day * _DAY + 22 * 12)
                for replica in range(3):
                    pod = f"{replica_set}-{day:02x}{replica}hpa"
                    build.add(namespace, pod, build.node(), owner, top, up, down, level)


def _stateful_set(build: _Builder, name: str, number: int) -> None:
    """Two pods that keep their names; one of them moves every fourth day."""
    level = _some_level(build)
    for replica in range(2):
        moves = [0, build.n_ticks]
        if replica == 0:
            moves[1:1] = [_safe(day * _DAY + 60 + number) for day in range(2, build.n_ticks // _DAY, 4)]
        for begin, end in itertools.pairwise(moves):
            owner, top = ("StatefulSet", name), f"StatefulSet/{name}"
            build.add("data", f"{name}-{replica}", build.node(), owner, top, begin, end, level)


def _daemon_set(build: _Builder) -> None:
    level = _level(build.n_ticks, build.rng, cpu=0.05, memory=1e8, disk=1e4, network=5e4, log=500.0)
    owner, top = ("DaemonSet", "agent"), "DaemonSet/agent"
    for node in range(N_NODES):
        build.add("kube-system", f"agent-{node}xyz", node, owner, top, 0, build.n_ticks, level)


def _cron_job(build: _Builder, start: int) -> None:
    """Every two hours for a quarter of an hour; Jobs are named by the minute they were due."""
    level = _level(build.n_ticks, build.rng, cpu=1.0, memory=3e8, disk=2e6, network=1e5, log=5e3)
    for begin in range(6, build.n_ticks - 3, 24):
        if _safe(begin) == begin:
            job = f"report-{(start + begin * STEP) // 60}"
            build.add("pay", f"{job}-abcde", build.node(), ("Job", job), "CronJob/report", begin, begin + 3, level)


def _replica_set_alone(build: _Builder) -> None:
    """A ReplicaSet without a Deployment although its name looks like one's."""
    level, name = _some_level(build), "lone-5d9c7b8f6"
    owner, top = ("ReplicaSet", name), f"ReplicaSet/{name}"
    build.add("shop", f"{name}-aaaaa", build.node(), owner, top, 0, build.n_ticks, level)
