"""What a first look costs, by part, beside the sum of the commands that it stands for.

    python -m benchmarks.look [--copies 2] [--days 14] [--skip-separate]

A local cluster of so many copies of the sample (50 nodes each) runs with a real Prometheus and API server; then `look`,
and after it `train`, `nodes`, `capacity`, `requests`, `rebalance --plan` and `doctor` on the same data. It prints wall
and processor time, the requests and the processor time of Prometheus, and the largest memory of each process.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.harness import command_line, machine_load
from testing.local_cluster.running import LocalCluster, Ports

_REQUESTS = re.compile(r'^prometheus_http_requests_total\{.*handler="/api/v1/[^"]*".*\} (\S+)$', re.MULTILINE)
_SECONDS = re.compile(r"^process_cpu_seconds_total (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Cost:
    """Of a command: wall seconds, its processor seconds and peak bytes; requests and processor seconds of the store."""

    seconds: float
    processor: float
    peak_bytes: int
    requests: float
    of_store: float

    def line(self, name: str) -> str:
        return (
            f"{name:<18} {self.seconds:7.1f} s {self.processor:7.1f} s {self.requests:8.0f} {self.of_store:7.1f} s "
            f"{self.peak_bytes / 1e6:7.0f} MB"
        )


def _store_figures(url: str) -> tuple[float, float]:
    text = httpx.get(f"{url}/metrics", timeout=30).text
    return sum(float(value) for value in _REQUESTS.findall(text)), float(_SECONDS.findall(text)[0])


def measured(arguments: list[str], environment: dict[str, str], store: str) -> Cost:
    """Run one command of ours to its end."""
    before, began = _store_figures(store), time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "forecast_scheduler", *arguments], env=environment, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds, after = time.monotonic() - began, _store_figures(store)
    assert process.returncode == 0, arguments
    return Cost(
        seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, after[0] - before[0], after[1] - before[1]
    )


def main() -> None:
    """Print a line for each command, and the parts of the look."""
    parser = command_line(__doc__)
    parser.add_argument("--copies", type=int, default=2)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--skip-separate", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        with LocalCluster(directory, days=asked.days, ports=Ports().free(), copies=asked.copies) as cluster:
            environment, store = {**os.environ, **cluster.environment}, cluster.prometheus_url
            print(f"{cluster.n_nodes} nodes, {cluster.n_pods} pods, {asked.days} days; {machine_load()}", flush=True)
            print(f"{'':<18} {'wall':>9} {'processor':>9} {'requests':>8} {'store':>9} {'peak':>10}")
            figures = directory / "look.json"
            cost = measured(["look", "--json", str(figures)], environment, store)
            print(cost.line("look"), flush=True)
            parts = json.loads(figures.read_text())["seconds"]
            print("  " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts.items()))
            if asked.skip_separate:
                return
            history, models = str(directory / "history"), str(directory / "models")
            lines = {
                "train": ["--prometheus", store, "--history", history, "--models", models, "--days", str(asked.days)],
                "nodes": ["--models", models],
                "capacity": ["--history", history],
                "requests": ["--models", models],
                "rebalance": ["--plan", "--models", models],
                "doctor": ["--history", history],
            }
            costs = [(name, measured([name, *line], environment, store)) for name, line in lines.items()]
            for name, one in costs:
                print(one.line(name), flush=True)
            print(
                Cost(
                    sum(one.seconds for _, one in costs),
                    sum(one.processor for _, one in costs),
                    max(one.peak_bytes for _, one in costs),
                    sum(one.requests for _, one in costs),
                    sum(one.of_store for _, one in costs),
                ).line("all of these")
            )


if __name__ == "__main__":
    main()
