"""Memory of scorer and extender on a cluster of 1,000 nodes, at rest and at work, beside kube-scheduler's.

    python -m benchmarks.service_memory [--nodes 1000] [--pods 40000] [--services 500] [--more 1000] [--seconds 60]

The two commands as processes of their own, with a real API server, a Prometheus that measures every node, and a model.
Looked at once they are at rest, then after `--more` pods were placed by a real kube-scheduler that asks the extender,
while the scorer is asked for scores and both are scraped; and last after a new model has replaced the old one under
the same load. RSS counts the pages of shared libraries in full for each process, PSS shares them out among those that
use them; what a new Python has after the same imports is shown as the part that no cluster is to blame for. Ends with
status 1 where both together pass the limit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx
import numpy as np

from benchmarks.harness import command_line, finish, outcome
from benchmarks.real_scheduler import node_usage_rules
from benchmarks.scheduler_load import LoadedCluster
from forecast.model_artefact import artefact_of
from forecast.published_models import Registry
from testing.clusters.large_cluster import large_cluster
from testing.processes.process_figures import (
    child_named,
    peak_bytes,
    proportional_bytes,
    resident_bytes,
    wait_until_at_rest,
)
from testing.processes.scorer_process import ROOT, ScorerProcess
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.prometheus import PrometheusServer
from testing.servers.shipped_extender import shipped_extender
from testing.waiting import eventually

_LIMIT: Final = 600 * 2**20
_LONGEST: Final = 600.0
_ASK_EVERY, _SCRAPE_EVERY = 0.1, 15.0
_SERVICES_ASKED: Final = 50
_MODULES: Final = {"scorer": "scorer.service.app", "extender": "extender.service.extender_app"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=40_000)
    parser.add_argument("--services", type=int, default=500)
    parser.add_argument("--more", type=int, default=1000, help="pods that are placed then")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the scorer is asked at least")
    asked = parser.parse_args(arguments)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(LoadedCluster(asked.nodes, asked.pods, asked.services, scratch))
        made = large_cluster(asked.nodes, asked.pods, asked.services, first_day=datetime.now(UTC).date())
        usage = dict(zip(made.model.nodes, (0.3 * made.model.node_capacity).tolist(), strict=True))
        rules = node_usage_rules(scratch / "usage.yaml", usage, every="15s")
        prometheus = stack.enter_context(PrometheusServer(scratch / "prometheus", rule_files=[rules]))
        ours = {name: stack.enter_context(_started(name, cluster, prometheus.url, scratch / name)) for name in _MODULES}
        print(f"{asked.nodes} nodes, {asked.pods} pods, {asked.services} services; MiB")
        print(f"  {'':34}{'':12}{'RSS':>8}{'PSS':>8}{'most':>8}")
        for name, module in _MODULES.items():
            bare = _imported(name, module)
            print(f"  {'a new Python with its imports':34}{name:12}{bare / 2**20:8.0f}", flush=True)
        for one in ours.values():
            wait_until_at_rest(_pid(one))
        sums = [_show("at rest", ours)]
        with _asked(ours, [(pod.namespace, pod.name) for pod in made.pods[:_SERVICES_ASKED]]) as answered:
            began = time.monotonic()
            entry = shipped_extender(ours["extender"].url, httpTimeout="10s")
            with cluster.bindings("more") as bindings, KubeScheduler(cluster.plane, [entry]) as scheduler:
                cluster.batch("more", asked.more)
                bindings.times(asked.more, _LONGEST, scheduler.end_of_log)
                time.sleep(max(0.0, asked.seconds - (time.monotonic() - began)))
                sums.append(_show(f"{asked.more} pods placed, {answered()} scores asked", ours))
                rival = child_named("kube-scheduler")
                print(f"  {'':34}{'kube-scheduler':14}{resident_bytes(rival) / 2**20:6.0f}")
                version = _publish_another(cluster, made.model)
                for one in ours.values():
                    if not eventually(lambda of=one: _version(of) == version, _LONGEST):  # type: ignore[misc]
                        raise TimeoutError(f"the new model was not used: {one.log[-2000:]}")
                time.sleep(asked.seconds)
                sums.append(_show("a new model is in use", ours))
    holds = max(sums) <= _LIMIT
    print(f"  both together at most {_LIMIT / 2**20:.0f} MiB is wanted: {outcome(holds)}")
    finish(holds)


@contextmanager
def _started(name: str, cluster: LoadedCluster, prometheus: str, directory: Path) -> Iterator[ScorerProcess]:
    arguments = ("--kubeconfig", cluster.plane.kubeconfig, "--models", cluster.models, "--prometheus", prometheus)
    with ScorerProcess(directory, *arguments, settings={}, command=name, ready=False) as process:
        process.wait_ready(_LONGEST)
        if not eventually(lambda: process.metric("forecast_measured_nodes") > 0, _LONGEST):
            raise TimeoutError(f"no node is measured: {process.log[-2000:]}")
        yield process


def _pid(process: ScorerProcess) -> int:
    assert process.process is not None
    return process.process.pid


def _version(process: ScorerProcess) -> str:
    text = process.http.get("/metrics").raise_for_status().text
    line = next(one for one in text.splitlines() if one.startswith("forecast_model_info{"))
    return line.partition('version="')[2].partition('"')[0]


def _publish_another(cluster: LoadedCluster, model: object) -> str:
    renewed = replace(model, usage_dated=model.usage_dated * np.float32(1.01))  # type: ignore[type-var, attr-defined]
    return Registry(str(cluster.models)).publish(artefact_of(renewed, datetime.now(UTC)))  # type: ignore[arg-type]


@contextmanager
def _asked(ours: dict[str, ScorerProcess], pods: Sequence[tuple[str, str]]) -> Iterator[Callable[[], int]]:
    """Somebody asks the scorer for scores of pods in turn, and Prometheus' scrapes come; how often was answered."""
    ended, count = threading.Event(), [0]

    def ask() -> None:
        with httpx.Client(base_url=ours["scorer"].url, timeout=30) as client:
            while not ended.wait(_ASK_EVERY):
                namespace, name = pods[count[0] % len(pods)]
                body = json.dumps({"pod": {"namespace": namespace, "name": name}})
                client.post("/v1/scores", content=body, headers={"Content-Type": "application/json"}).raise_for_status()
                count[0] += 1

    def scrape() -> None:
        while not ended.wait(_SCRAPE_EVERY):
            for one in ours.values():
                with suppress(httpx.HTTPError):
                    httpx.get(f"{one.url}/metrics", timeout=30)

    threads = [threading.Thread(target=act, daemon=True) for act in (ask, scrape)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: count[0]
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _imported(name: str, module: str) -> int:
    """Bytes that a process has which imports what the command does, and does nothing."""
    code = f"import forecast_scheduler.commands.{name}.setup, {module}, serving.server; "
    code += (
        "from testing.processes.process_figures import resident_bytes; import os; print(resident_bytes(os.getpid()))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return int(said.stdout)


def _show(when: str, ours: dict[str, ScorerProcess]) -> int:
    """Print what each has and both together; returns the RSS of both."""
    rows = [(resident_bytes(pid), proportional_bytes(pid), peak_bytes(pid)) for pid in map(_pid, ours.values())]
    sums = tuple(map(sum, zip(*rows, strict=True)))
    for name, row in zip((*ours, "both"), (*rows, sums), strict=True):
        print(f"  {when if name == 'scorer' else '':34}{name:12}" + "".join(f"{one / 2**20:8.0f}" for one in row))
    sys.stdout.flush()
    return sums[0]


if __name__ == "__main__":
    main()
