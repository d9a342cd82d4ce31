"""Time and memory of reading history from a real Prometheus on this machine, through recording rules and without.

    python -m benchmarks.prometheus [--services 300] [--replicas 3] [--days 28] [--raw-days 2] [--runs 3]

Back-fills a TSDB (promtool) with what the shipped recording rules would have recorded over all days, and with the raw
series of cAdvisor, kube-state-metrics and node-exporter (scraped every minute) over the last days; starts a server and
reads it with the trainer's own code, every reading in a process of its own so that its peak memory is its own:

    full        all days into an empty history, through the rules
    increment   one more day, as on every night
    raw         the last days by the default raw queries
    client      one resource of one recorded day by prometheus-api-client alone, into its data frame
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benchmarks.harness import command_line, peak_gib
from forecast.calendar import Calendar
from forecast.resources import RESOURCES
from testing.servers.openmetrics import MetricSeries, write_blocks
from testing.servers.prometheus import PrometheusServer
from trainer.history_update import read_new_days
from trainer.own_history_store import OwnHistory
from trainer.prometheus.prometheus_connection import PrometheusConnection
from trainer.prometheus.prometheus_settings import SourceOptions
from trainer.prometheus.prometheus_source import PrometheusSource
from trainer.prometheus.queries import fill
from trainer.prometheus.recording_rules import NODE_USAGE, POD_INFO, POD_USAGE, recorded_pods

_STEP, _SCRAPE, _PODS_PER_NODE = 300, 60, 20
_NIGHT = 3 * 3600  # the run starts at 03:00: the day before is over for good
_LEVEL = dict(zip((r.name for r in RESOURCES), (0.5, 1e9, 1e6, 2e6, 1e4), strict=True))


def pods(n_services: int, replicas: int) -> list[tuple[str, str, str]]:
    """Namespace, pod, node."""
    n_nodes = max(1, n_services * replicas // _PODS_PER_NODE)
    return [
        (f"team-{s % 20:02d}", f"service-{s:04d}-7d9f8b6c5d-{r:05d}", f"node-{(s * replicas + r) % n_nodes:04d}")
        for s in range(n_services)
        for r in range(replicas)
    ]


def _info(pod: tuple[str, str, str]) -> dict[str, str]:
    namespace, name, node = pod
    owner = {"created_by_kind": "ReplicaSet", "created_by_name": name.rpartition("-")[0]}
    return {"namespace": namespace, "pod": name, "uid": f"uid-{name}", "node": node, **owner, "host_network": "false"}


def _curve(times: np.ndarray, index: int) -> np.ndarray:
    """An evening peak with some noise: (n_times,)."""
    hours = times / 3600 % 24
    noise = np.random.default_rng(index).normal(1, 0.1, len(times))
    return (0.2 + np.exp(-((hours - 20 + index % 3) ** 2) / 8)) * noise


def recorded(everybody: list[tuple[str, str, str]], begin: int, end: int) -> Iterator[MetricSeries]:
    """What the recording rules of every step would have written."""
    times = np.arange(begin + _STEP, end + 1, _STEP)
    for i, pod in enumerate(everybody):
        curve = _curve(times, i)
        yield MetricSeries(POD_INFO, _info(pod), times, np.ones(len(times)))
        for name, level in _LEVEL.items():
            yield MetricSeries(POD_USAGE, {"namespace": pod[0], "pod": pod[1], "resource": name}, times, level * curve)
    for i, node in enumerate(sorted({node for _, _, node in everybody})):
        for name, level in _LEVEL.items():
            yield MetricSeries(NODE_USAGE, {"node": node, "resource": name}, times, level * 20 * _curve(times, i))


def raw(everybody: list[tuple[str, str, str]], begin: int, end: int, every: int = _SCRAPE) -> Iterator[MetricSeries]:
    """What the exporters of kube-prometheus would have been scraped for. every: seconds from scrape to scrape."""
    times = np.arange(begin, end + 1, every)
    for i, pod in enumerate(everybody):
        curve = _curve(times, i)
        grown = np.cumsum(curve) * every
        where = {"namespace": pod[0], "pod": pod[1]}
        container = {**where, "node": pod[2], "container": "app"}
        yield MetricSeries("kube_pod_info", _info(pod), times, np.ones(len(times)))
        yield MetricSeries("kube_pod_status_phase", {**where, "phase": "Running"}, times, np.ones(len(times)))
        yield MetricSeries("container_cpu_usage_seconds_total", container, times, 0.5 * grown)
        yield MetricSeries("container_memory_working_set_bytes", container, times, 1e9 * curve)
        for direction in ("reads", "writes"):
            disk = {**container, "device": "/dev/sda"}
            yield MetricSeries(f"container_fs_{direction}_bytes_total", disk, times, 5e5 * grown)
        for direction in ("receive", "transmit"):
            network = {**where, "node": pod[2], "interface": "eth0"}
            yield MetricSeries(f"container_network_{direction}_bytes_total", network, times, 1e6 * grown)
        path = f"/var/log/pods/{pod[0]}_{pod[1]}_uid-{pod[1]}/app/0.log"
        yield MetricSeries("promtail_read_bytes_total", {"path": path}, times, 1e4 * grown)
    for i, node in enumerate(sorted({node for _, _, node in everybody})):
        curve = 20 * _curve(times, i)
        grown = np.cumsum(curve) * every
        at = {"instance": node}
        yield MetricSeries("node_cpu_seconds_total", {**at, "cpu": "0", "mode": "user"}, times, 0.5 * grown)
        yield MetricSeries("node_memory_MemTotal_bytes", at, times, np.full(len(times), 6.4e10))
        yield MetricSeries("node_memory_MemAvailable_bytes", at, times, 6.4e10 - 1e9 * curve)
        for metric in ("read", "written"):
            yield MetricSeries(f"node_disk_{metric}_bytes_total", {**at, "device": "sda"}, times, 5e5 * grown)
        for metric in ("receive", "transmit"):
            yield MetricSeries(f"node_network_{metric}_bytes_total", {**at, "device": "eth0"}, times, 1e6 * grown)


def build(directory: Path, everybody: list[tuple[str, str, str]], end: int, days: int, raw_days: int) -> int:
    """Back-fill day by day, so that memory stays small; returns the number of samples."""
    n_samples = 0
    for day in range(days, 0, -1):
        begin = end - day * 86_400
        n_samples += write_blocks(list(recorded(everybody, begin, begin + 86_400)), directory)
    for day in range(raw_days, 0, -1):
        begin = end - day * 86_400
        n_samples += write_blocks(list(raw(everybody, begin - 600, begin + 86_400 - 1)), directory)
    return n_samples


def read(arguments: argparse.Namespace) -> dict[str, float]:
    """One reading, in this process."""
    source = PrometheusSource(
        PrometheusConnection(arguments.url),
        SourceOptions(recording_rules=arguments.read != "raw"),
    )
    now = datetime.fromtimestamp(arguments.end, UTC)
    started = time.perf_counter()
    if arguments.read == "client":
        from prometheus_api_client import MetricRangeDataFrame, PrometheusConnect  # `make setup-bench` installs it

        client = PrometheusConnect(arguments.url)
        query = fill(recorded_pods("cpu", _STEP), window_seconds=_STEP)
        frame = MetricRangeDataFrame(
            client.custom_query_range(query, now - timedelta(days=1) + timedelta(seconds=_STEP), now, str(_STEP))
        )
        rows = len(frame)
    else:
        reading = read_new_days(
            source,
            OwnHistory(arguments.history),
            now=now,
            days=arguments.days,
            keep_days=400,
            calendar=Calendar(),
        )
        rows = reading.rows
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "rows": rows, "peak_mib": 1024 * peak_gib()}


def child(kind: str, url: str, history: Path, end: int, days: int) -> dict[str, float]:
    """One reading in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.prometheus", "--read", kind, "--url", url]
    command += ["--history", str(history), "--end", str(end), "--days", str(days)]
    answer: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return answer


def main() -> None:
    """Print a line per way of reading."""
    parser = command_line(__doc__)
    parser.add_argument("--services", type=int, default=300)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--raw-days", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tsdb", type=Path, help="keep the back-filled blocks here, and use them where they are there")
    for hidden in ("--read", "--url", "--history"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        print(json.dumps(read(arguments)))
        return
    everybody = pods(arguments.services, arguments.replicas)
    # Whole UTC days, the last one yesterday: what a server holds must lie before its own now.
    end = int(datetime.now(UTC).timestamp()) // 86_400 * 86_400
    with tempfile.TemporaryDirectory() as scratch:
        tsdb = arguments.tsdb or Path(scratch) / "tsdb"
        print(f"{arguments.services} services, {len(everybody)} pods, {arguments.days} days at {_STEP} s", end=": ")
        if not tsdb.exists():
            started = time.perf_counter()
            n_samples = build(tsdb, everybody, end, arguments.days, arguments.raw_days)
            print(f"{n_samples:,} samples back-filled in {time.perf_counter() - started:.0f} s")
        with PrometheusServer(tsdb) as server:
            figures: dict[str, list[dict[str, float]]] = {}
            for run in range(arguments.runs):
                history = Path(scratch) / f"history-{run}"
                for way, label, until, days in (
                    ("rules", "full", end + _NIGHT, arguments.days),
                    ("rules", "quarter", end + _NIGHT, max(1, arguments.days // 4)),
                    ("rules", "all but one day", end - 86_400 + _NIGHT, arguments.days),
                    ("rules", "increment", end + _NIGHT, arguments.days),
                    ("raw", "raw", end + _NIGHT, arguments.raw_days),
                    ("client", "client", end, 1),
                ):
                    grows = label in ("all but one day", "increment")
                    place = history / ("grown" if grows else label)
                    figures.setdefault(label, []).append(child(way, server.url, place, until, days))
    days_read = {
        "full": arguments.days,
        "quarter": max(1, arguments.days // 4),
        "all but one day": arguments.days - 1,
        "increment": 1,
        "raw": arguments.raw_days,
        "client": 1 / len(RESOURCES),
    }
    print(f"\n{'reading':<16} {'days':>6} {'seconds':>9} {'s per day':>10} {'rows':>12} {'peak MiB':>9}   all runs, s")
    for label, runs in figures.items():
        seconds = [run["seconds"] for run in runs]
        middle = statistics.median(seconds)
        print(
            f"{label:<16} {days_read[label]:>6.3g} {middle:>9.1f} {middle / days_read[label]:>10.2f} "
            f"{runs[0]['rows']:>12,.0f} {max(run['peak_mib'] for run in runs):>9.0f}   "
            + " ".join(f"{s:.1f}" for s in seconds)
        )


if __name__ == "__main__":
    main()
