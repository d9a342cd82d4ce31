"""What reading two weeks costs a real Prometheus: a first `train` (as `look` does one), and the queries of krr.

    python -m benchmarks.store_cost [--services 10] [--replicas 3] [--days 14] [--scrape 30]

Back-fills raw series of cAdvisor, kube-state-metrics and node-exporter; each reader gets a freshly started server. For
each it prints the requests that the server counted, its processor time, its largest memory before and after, and the
seconds that the reader took. `simple` is the strategy of krr 1.x with its defaults (14 days, steps of 75 s): four
queries for each workload, ten at once, without those by which it finds pods of the past. A scrape every 30 s is its
need: `rate(...[75s])` wants two samples.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx

from benchmarks.harness import command_line
from benchmarks.prometheus import pods, raw
from testing.processes.process_figures import child_named, cpu_seconds, peak_bytes
from testing.servers.openmetrics import write_blocks
from testing.servers.prometheus import PrometheusServer

_DAY = 86_400
_KRR_STEP = 75
# The strategy simple of https://github.com/robusta-dev/krr, robusta_krr/core/integrations/prometheus/metrics/.
_KRR = (
    "quantile_over_time(0.95, max(rate({cpu}[{step}s])) by (container, pod, job)[{days}d:{step}s])",
    "max_over_time(max({memory}) by (container, pod, job)[{days}d:{step}s])",
    "count_over_time(max({cpu}) by (container, pod, job)[{days}d:{step}s])",
    "count_over_time(max({memory}) by (container, pod, job)[{days}d:{step}s])",
)
_REQUESTS = re.compile(r'^prometheus_http_requests_total\{code="\d+",handler="/api/v1/query(?:_range)?"\} (\S+)', re.M)

Reader = Callable[[str], object]
"""Reads the server at a URL."""


def requests(url: str) -> int:
    """Instant and range queries so far, as the server counts them."""
    return round(sum(map(float, _REQUESTS.findall(httpx.get(f"{url}/metrics").text))))


def measured(name: str, server: PrometheusServer, read: Reader) -> str:
    """A line of figures of one reader on a server that has just started."""
    with server:
        process = child_named("prometheus")
        asked, used, before, began = requests(server.url), cpu_seconds(process), peak_bytes(process), time.monotonic()
        read(server.url)
        seconds, used, after = time.monotonic() - began, cpu_seconds(process) - used, peak_bytes(process)
        memory = f"{before / 2**20:>6.0f} -> {after / 2**20:<6.0f}"
        return f"{name:<28} {requests(server.url) - asked:>8} {used:>10.1f} {memory:>18} {seconds:>8.1f}"


def trained(directory: Path, days: int) -> Reader:
    """`train`, as a user starts it."""

    def read(url: str) -> None:
        command = [sys.executable, "-m", "forecast_scheduler", "train", "--prometheus", url, "--days", str(days)]
        command += ["--history", str(directory / "history"), "--models", str(directory / "models"), "--force"]
        subprocess.run(command, check=True, capture_output=True)

    return read


def krr(workloads: dict[tuple[str, str], list[str]], days: int) -> Reader:
    """The queries of `krr simple`. workloads: names of pods by namespace and name."""

    def read(url: str) -> None:
        def ask(query: str) -> None:
            answer = httpx.get(f"{url}/api/v1/query", params={"query": query}, timeout=600)
            assert answer.json()["data"]["result"], query

        texts = []
        for (namespace, _), names in workloads.items():
            where = f'{{namespace="{namespace}",pod=~"{"|".join(names)}",container="app"}}'
            series = {"cpu": f"container_cpu_usage_seconds_total{where}"}
            series["memory"] = f"container_memory_working_set_bytes{where}"
            texts += [template.format(step=_KRR_STEP, days=days, **series) for template in _KRR]
        with ThreadPoolExecutor(10) as threads:
            list(threads.map(ask, texts))

    return read


def main() -> None:
    """Print a line for each reader."""
    parser = command_line(__doc__)
    parser.add_argument("--services", type=int, default=10)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--scrape", type=int, default=30, help="seconds")
    asked = parser.parse_args()
    everybody = pods(asked.services, asked.replicas)
    workloads: dict[tuple[str, str], list[str]] = {}
    for namespace, name, _ in everybody:
        workloads.setdefault((namespace, name.rsplit("-", 2)[0]), []).append(name)
    end = int(datetime.now(UTC).timestamp()) // asked.scrape * asked.scrape
    with tempfile.TemporaryDirectory() as scratch:
        blocks, began = Path(scratch) / "tsdb", time.monotonic()
        n_samples = write_blocks(list(raw(everybody, end - asked.days * _DAY, end, asked.scrape)), blocks)
        print(f"{len(everybody)} pods, {asked.days} days: {n_samples:,} samples, {time.monotonic() - began:.0f} s")
        print(f"{'':<28} {'queries':>8} {'CPU, s':>10} {'peak memory, MiB':>18} {'seconds':>8}")
        train = trained(Path(scratch), asked.days)
        for name, read in (("train, the first night", train), ("krr simple", krr(workloads, asked.days))):
            print(measured(name, PrometheusServer(blocks), read), flush=True)


if __name__ == "__main__":
    main()
