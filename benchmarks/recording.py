"""Recording without Prometheus: does the history agree with that of a Prometheus, and what does it cost?

    python -m benchmarks.recording agree                     an hour of 10 nodes, in seconds
    python -m benchmarks.recording load [--nodes 10,50,200]  45 s of each

agree  Kubelets are played whose pods change their load every 15 s; they measure each container up to 15 s late. The
       same pages are read every 30 s by the recorder and, 13 s later, by a Prometheus, whose blocks are written with
       promtool and read as every night. metrics.k8s.io is played, too: means of the 15 s before its answer.
load   A real API server, played kubelets behind its node proxy, and `look --record` in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from base.arrays import Floats, Ints
from benchmarks.harness import command_line, numbers
from testing.processes.process_figures import child_named, cpu_seconds, peak_bytes
from testing.servers.cluster_objects import ClusterWriter, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer
from testing.servers.resource_kubelets import ResourceKubelets, reachable
from testing.waiting import eventually
from trainer.prometheus.day_tables import DayTables
from trainer.prometheus.metrics_store import MetricsStore
from trainer.prometheus.prometheus_settings import PrometheusOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.sampling.cells import CELL_SECONDS, OpenCells
from trainer.sampling.journal import Cell, NodeRecord, PodRecord, packed, packed_numbers
from trainer.sampling.readings import NODE, Measured, NodeReading, Series, read_resource_metrics
from trainer.sampling.recorded_day import RecordedDay

_START: Final = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp())
_SECONDS, _BURST_SECONDS, _LATE_SECONDS = 3600, 15, 15.0
_PODS_PER_NODE: Final = 30
_EVERY, _PROMETHEUS_LATER = 30, 13
_MEASURED_SECONDS: Final = 45.0


@dataclass(frozen=True)
class PlayedHour:
    """cores: (n_pods, n_bursts) of each 15 s from ten minutes before _START on; memory: (n_pods,) bytes."""

    nodes: tuple[str, ...]
    cores: Floats
    memory: Floats
    late: Floats

    @classmethod
    def of(cls, n_nodes: int, seed: int) -> PlayedHour:
        """Loads of each pod are log-normal around its own mean."""
        rng = np.random.default_rng(seed)
        n_pods, n_bursts = n_nodes * _PODS_PER_NODE, (_SECONDS + 1200) // _BURST_SECONDS
        mean = rng.lognormal(-2.5, 1.0, (n_pods, 1))
        return cls(
            tuple(f"n{number}" for number in range(n_nodes)),
            mean * rng.lognormal(0.0, 0.8, (n_pods, n_bursts)),
            rng.lognormal(19.0, 1.0, n_pods),
            rng.uniform(0.0, _LATE_SECONDS, n_pods),
        )

    def used(self, at: Floats) -> Floats:
        """Core-seconds of each pod by then: (n_pods,). at: (n_pods,) unix seconds"""
        since = (at - _START + 600) / _BURST_SECONDS
        row = since.astype(np.int64)
        before = np.concatenate([np.zeros((len(self.cores), 1)), np.cumsum(self.cores, axis=1)], axis=1)
        every = np.arange(len(self.cores))
        used: Floats = (before[every, row] + self.cores[every, row] * (since - row)) * _BURST_SECONDS
        return used

    def held(self, at: Floats) -> Floats:
        """Memory of each pod at a time, which rises and falls by a third within an hour and a half: (n_pods,) bytes."""
        held: Floats = self.memory * (1 + 0.33 * np.sin((at - _START) / 900 + 400 * self.late))
        return held

    def measured_at(self, at: float) -> Floats:
        """When the kubelets measured what they say at a time: (n_pods,), up to 15 s before."""
        return at - (at + self.late) % _LATE_SECONDS

    def pages(self, at: float) -> dict[str, str]:
        """/metrics/resource of each node."""
        when = self.measured_at(at)
        used, memory, lines = self.used(when), self.held(when).tolist(), {name: list[str]() for name in self.nodes}
        for number, (seconds, stamp) in enumerate(zip(used.tolist(), (when * 1000).astype(int).tolist(), strict=True)):
            name, labels = self.place(number)
            lines[name].append(f"container_cpu_usage_seconds_total{{{labels}}} {seconds!r} {stamp}\n")
            lines[name].append(f"container_memory_working_set_bytes{{{labels}}} {memory[number]!r} {stamp}\n")
        of_nodes = self.used(np.full(len(used), at)).reshape(len(self.nodes), -1).sum(axis=1)
        for number, name in enumerate(self.nodes):
            held = sum(memory[number * _PODS_PER_NODE : (number + 1) * _PODS_PER_NODE])
            lines[name].append(f"node_cpu_usage_seconds_total {float(of_nodes[number])!r} {round(at * 1000)}\n")
            lines[name].append(f"node_memory_working_set_bytes {held!r} {round(at * 1000)}\n")
        return {name: "".join(page) for name, page in lines.items()}

    def means(self, at: float) -> dict[str, NodeReading]:
        """What metrics-server counts: means of the 15 s before it was measured."""
        when = self.measured_at(at)
        cores = (self.used(when) - self.used(when - _LATE_SECONDS)) / _LATE_SECONDS
        memory, readings = self.held(when), dict[str, NodeReading]()
        for number, name in enumerate(self.nodes):
            first, last = number * _PODS_PER_NODE, (number + 1) * _PODS_PER_NODE
            series: list[Series] = [("app", f"pod-{row}", "main") for row in range(first, last)]
            rows = list(zip(series, when[first:last].tolist(), strict=True))
            busy = zip(rows, cores[first:last].tolist(), strict=True)
            full = zip(rows, memory[first:last].tolist(), strict=True)
            of_pods = {key: Measured(value, then) for (key, then), value in busy}
            of_pods[NODE] = Measured(float(cores[first:last].sum()), at)
            readings[name] = NodeReading(
                at, cores=of_pods, memory={key: Measured(value, then) for (key, then), value in full}
            )
        return readings

    def place(self, number: int) -> tuple[str, str]:
        """Node and labels of a pod."""
        return self.nodes[number // _PODS_PER_NODE], f'container="main",namespace="app",pod="pod-{number}"'


def _recorded(hour: PlayedHour, *, by_means: bool) -> DayTables:
    """What the recorder makes of it."""
    cells, day = OpenCells(), RecordedDay(datetime.fromtimestamp(_START, UTC).date())
    for at in range(_START - 300, _START + _SECONDS + 2 * _EVERY, _EVERY):
        if by_means:
            readings = hour.means(at)
        else:
            readings = {name: read_resource_metrics(page, at) for name, page in hour.pages(at).items()}
        for name, reading in readings.items():
            cells.add(name, reading)
    pods = [
        PodRecord(n, "app", f"pod-{n}", f"u{n}", hour.place(n)[0], ("StatefulSet", "x"), None, (0.1, 1e8))
        for n in range(len(hour.cores))
    ]
    for pod_record in pods:
        day.add(pod_record)
    for name in hour.nodes:
        day.add(NodeRecord(name, (64.0, 512e9), (63.0, 500e9)))
    for start in cells.over(_START + _SECONDS):
        of_pods, of_nodes = cells.close(start)
        if start >= _START:
            usage = [of_pods[pod.namespace, pod.name, pod.node] for pod in pods]
            day.add(
                Cell(
                    start,
                    packed_numbers(range(len(pods))),
                    packed(np.array([(one.cores, one.memory) for one in usage])),
                    list(of_nodes),
                    packed(np.array([(one.cores, one.memory) for one in of_nodes.values()])),
                )
            )
    return day.tables(PrometheusOptions())


def _scraped(hour: PlayedHour, directory: Path) -> DayTables:
    """What the trainer reads from a Prometheus that scraped the same kubelets."""
    times = np.arange(_START - 600 + _PROMETHEUS_LATER, _START + _SECONDS + 60, _EVERY)
    samples: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for at in times.tolist():
        for name, page in hour.pages(at).items():
            for line in page.splitlines():
                what, value, stamp = line.rsplit(" ", 2)
                metric, _, labels = what.partition("{")
                samples.setdefault((name, metric, labels.rstrip("}")), []).append((int(stamp) / 1000, float(value)))
    series = [
        MetricSeries(metric, _labels(labels) | {"node": name}, *_columns(found))
        for (name, metric, labels), found in samples.items()
    ]
    write_blocks([*series, *_facts(hour, times)], directory)
    with PrometheusServer(directory) as server:
        source = PrometheusSource(MetricsStore(server.url).connect(PrometheusOptions()), PrometheusOptions())
        return source.read_day(
            datetime.fromtimestamp(_START, UTC).date(), datetime.fromtimestamp(_START + _SECONDS, UTC)
        )


def _labels(text: str) -> dict[str, str]:
    return {key: value.strip('"') for key, _, value in (one.partition("=") for one in text.split(",") if one)}


def _columns(found: Sequence[tuple[float, float]]) -> tuple[Any, Floats]:
    """Times to the millisecond, and values."""
    unique = dict(found)  # a kubelet that has not measured again says the same once more
    return np.array(list(unique)), np.array(list(unique.values()))


def _facts(hour: PlayedHour, times: Ints) -> Iterator[MetricSeries]:
    """Yield the series that kube-state-metrics has of pods and the node."""
    ones = np.ones(len(times))
    for number in range(len(hour.cores)):
        where = {"namespace": "app", "pod": f"pod-{number}"}
        made_by = {"created_by_kind": "StatefulSet", "created_by_name": "x", "host_network": "false"}
        place = {"uid": f"u{number}", "node": hour.place(number)[0]}
        yield MetricSeries("kube_pod_info", where | place | made_by, times, ones)
        yield MetricSeries("kube_pod_status_phase", where | {"phase": "Running"}, times, ones)
    for name in hour.nodes:
        for resource, value in (("cpu", 64.0), ("memory", 512e9)):
            yield MetricSeries("kube_node_status_capacity", {"node": name, "resource": resource}, times, value * ones)


def _truth(hour: PlayedHour) -> pd.DataFrame:
    """Mean cores of each pod and cell."""
    starts = range(_START, _START + _SECONDS, CELL_SECONDS)
    ends = {at: hour.used(np.full(len(hour.cores), float(at))) for at in (*starts, _START + _SECONDS)}
    return pd.DataFrame({start: (ends[start + CELL_SECONDS] - ends[start]) / CELL_SECONDS for start in starts})


def _cells(tables: DayTables, column: str) -> pd.DataFrame:
    """(n_pods, n_cells) of a column, by the beginning of the cell."""
    frame = tables.usage.to_pandas()
    frame["start"] = frame["timestamp"].astype("datetime64[s, UTC]").astype("int64")
    frame["number"] = frame["pod"].astype(str).str.removeprefix("pod-").astype(int)
    pivoted: pd.DataFrame = frame[frame["start"] >= _START].pivot_table(index="number", columns="start", values=column)
    return pivoted


def agree(n_nodes: int, seed: int) -> None:
    """Print how far the histories are apart."""
    hour = PlayedHour.of(n_nodes, seed)
    with tempfile.TemporaryDirectory() as directory:
        made = {
            "kubelets, recorded": _recorded(hour, by_means=False),
            "metrics.k8s.io, recorded": _recorded(hour, by_means=True),
            "Prometheus, read": _scraped(hour, Path(directory)),
        }
    truth = _truth(hour)
    store = {column: _cells(made["Prometheus, read"], column) for column in ("cpu_cores", "memory_bytes")}
    print(
        f"{len(hour.cores)} pods, {truth.shape[1]} cells of five minutes: CPU of a cell off the truth, off Prometheus"
    )
    print("| history | cells | sum | off, median | 99 % | off Prometheus, median | 99 % | memory, at most |")
    print("|---|---|---|---|---|---|---|---|")
    for name, tables in made.items():
        cpu, memory = _cells(tables, "cpu_cores"), _cells(tables, "memory_bytes")
        off = (cpu / truth - 1).abs().to_numpy().ravel()
        beside = (cpu / store["cpu_cores"] - 1).abs().to_numpy().ravel()
        held = float((memory / store["memory_bytes"] - 1).abs().to_numpy().max())
        share = float(cpu.to_numpy().sum() / truth.to_numpy().sum())
        row = [name, f"{cpu.notna().to_numpy().sum():,}", f"{share:.4f}"]
        for apart in (off, beside):
            row += [f"{np.nanmedian(apart):.2%}", f"{np.nanquantile(apart, 0.99):.1%}"]
        print(f"| {' | '.join(row)} | {held:.1e} |")


def load(n_nodes: int) -> None:
    """Print a row of what recording costs the API server and us."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        hour = PlayedHour.of(n_nodes, 0)
        with (
            ControlPlane(below=directory) as plane,
            ResourceKubelets(directory, hour.nodes, lambda name: "") as kubelets,
        ):
            pages = hour.pages(_START)
            kubelets.page = lambda name: _moved(pages[name])
            with ClusterWriter(plane) as writer:
                owner = writer.create(replica_set("app-1", deployment="app"))
                writer.create_many(
                    reachable(node(name, cpu="64", memory="512Gi"), kubelets, only=True) for name in hour.nodes
                )
                writer.create_many(
                    pod(f"pod-{n}", node=hour.place(n)[0], owner=owner, status=running())
                    for n in range(len(hour.cores))
                )
            server = child_named("kube-apiserver")
            command = [sys.executable, "-m", "forecast_scheduler", "look", "--record", str(directory / "history")]
            command += ["--kubeconfig", str(plane.kubeconfig)]
            idle = _cores(server, 10.0)
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as recorder:
                assert recorder.stdout is not None
                recorder.stdout.readline()
                eventually(lambda: sum(kubelets.asked.values()) > 1, 30)
                before, began, ours = sum(kubelets.asked.values()), time.monotonic(), cpu_seconds(recorder.pid)
                busy = _cores(server, _MEASURED_SECONDS)
                seconds = time.monotonic() - began
                asked = (sum(kubelets.asked.values()) - before) / seconds
                cores, most = (cpu_seconds(recorder.pid) - ours) / seconds, peak_bytes(recorder.pid)
                recorder.terminate()
            size = float(np.mean([len(page) for page in pages.values()]))
            sizes = f"{asked:.1f} | {size / 1e3:.1f} KB | {asked * size / 1e3:.0f} KB/s"
            costs = f"{busy - idle:.3f} | {cores:.3f} | {most / 1e6:.0f} MB"
            print(f"| {n_nodes} | {len(hour.cores):,} | {sizes} | {costs} |", flush=True)


def _moved(page: str) -> str:
    """With times of now."""
    stamp = f" {round(time.time() * 1000)}\n"
    return "".join(line.rpartition(" ")[0] + stamp for line in page.splitlines())


def _cores(process: int, seconds: float) -> float:
    began, before = time.monotonic(), cpu_seconds(process)
    time.sleep(seconds)
    return (cpu_seconds(process) - before) / (time.monotonic() - began)


def main() -> None:
    """Run what is asked."""
    parser = command_line(__doc__)
    parser.add_argument("what", choices=("agree", "load"))
    parser.add_argument("--nodes", type=numbers, default=None, help="default: 10; for load 10,50,200")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.what == "agree":
        for n_nodes in asked.nodes or [10]:
            agree(n_nodes, asked.seed)
        return
    print("| nodes | pods | requests/s | answer | through the API server | its cores | our cores | our memory |")
    print("|---|---|---|---|---|---|---|---|")
    for n_nodes in asked.nodes or [10, 50, 200]:
        load(n_nodes)


if __name__ == "__main__":
    main()
