"""Pods per second of the real kube-scheduler alone and with the advisor, and how long a pod waits to be bound.

    python -m benchmarks.advisor_throughput [--nodes 1000,5000] [--rounds 3] [--pods 1500] [--latency]

    alone    pods without a gate
    advisor  pods with our gate, and `forecast-scheduler advise` as a process of its own

A batch of pods, of 50 services in turn, is created before anything looks at it: the advisor is stopped meanwhile, and
the scheduler has not begun. pods/s is that of the middle 80 % of the batch's bindings, as a watch sees them. Rounds
measure both in turn. Four pods sit on each node. `gate_timeout` is a minute here: with the shipped 20 s many pods of
such a batch would be released without advice. 'as advised' is the share of pods that went where they were advised.

With --latency pods come at 50/s, for 20 s, to the shipped settings: milliseconds from the request that creates a pod to
its binding, as a watch sees it. `prefer` is with pods that prefer nodes, by the webhook.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from benchmarks.harness import command_line, finish, in_turn, median_ratio, numbers, spread
from benchmarks.preferring_webhook import preferring_webhook
from benchmarks.scheduler_load import LoadedCluster
from placement.gate_exemptions import ADVICE
from testing.processes.process_figures import cpu_seconds, wait_until_at_rest
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import metric
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.waiting import eventually

_ALONE, _ADVISOR, _PREFER = "alone", "advisor", "prefer"
_LEASE_NAMESPACE: Final = "forecast-scheduler"
_ASIDE: Final = 0.1
_LONGEST: Final = 300.0
_WANTED: Final = {1000: 0.85, 5000: 1.5}
_RATE, _SECONDS, _LATER_BY = 50.0, 20.0, 150.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch.

    rate       : pods/s
    cpu        : seconds of the advisor's process
    as_advised : share of the pods
    """

    rate: float
    n_pods: int
    cpu: float
    as_advised: float


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster, and a directory for its processes."""

    cluster: LoadedCluster
    directory: Path

    def throughput(self, configuration: str, name: str, n_pods: int) -> Measured:
        """Schedule a batch; its pods are gone afterwards."""
        if configuration == _ALONE:
            made = self.cluster.batch(name, n_pods)
            with self.cluster.bindings(name) as bindings, KubeScheduler(self.cluster.plane) as scheduler:
                times = bindings.times(n_pods, _LONGEST, scheduler.end_of_log)
            self.cluster.writer.delete_many(made)
            return Measured(_rate_of(times), n_pods, 0.0, 0.0)
        with self.advisor(name, gate_timeout="60s") as advisor, KubeScheduler(self.cluster.plane) as scheduler:
            assert advisor.process is not None
            advisor.process.send_signal(signal.SIGSTOP)
            made = self.cluster.batch(name, n_pods, gates=[ADVICE])
            with self.cluster.bindings(name) as bindings:
                cpu = cpu_seconds(advisor.process.pid)
                advisor.process.send_signal(signal.SIGCONT)
                times = bindings.times(n_pods, _LONGEST, scheduler.end_of_log)
                cpu = cpu_seconds(advisor.process.pid) - cpu
            eventually(lambda: advisor.metric("forecast_decisions_pending") == 0)
            right = _as_advised(advisor)
            self.cluster.writer.delete_many(made)
        return Measured(_rate_of(times), n_pods, cpu, right / n_pods)

    def latency(self, configuration: str, name: str) -> list[float]:
        """Milliseconds of each pod."""
        gates = [ADVICE] if configuration == _ADVISOR else []
        pods = list(self.cluster.manifests(name, int(_RATE * _SECONDS), gates=gates))
        created: dict[str, float] = {}
        lock = threading.Lock()
        with ExitStack() as running:
            advisor = running.enter_context(self.advisor(name, leader_election={"enabled": configuration == _PREFER}))
            if configuration == _PREFER:
                directory = self.directory / f"{name}-webhook"
                webhook = running.enter_context(preferring_webhook(self.cluster.plane, directory, advisor))
            scheduler = running.enter_context(KubeScheduler(self.cluster.plane))
            seen = running.enter_context(self.cluster.bindings(name))

            def create(manifest: dict[str, object]) -> object:
                began = time.perf_counter()
                made = self.cluster.writer.create(manifest)
                with lock:
                    created[made["metadata"]["name"]] = began
                return made

            began = time.perf_counter()
            with ThreadPoolExecutor(16) as threads:
                futures = []
                for i, one in enumerate(pods):
                    time.sleep(max(0.0, began + i / _RATE - time.perf_counter()))
                    futures.append(threads.submit(create, one))
                for future in futures:
                    future.result()
            seen.times(len(pods), _LONGEST, scheduler.end_of_log)
            taken = [1000 * (seen.seen[pod] - at) for pod, at in created.items()]
            if configuration == _PREFER:
                answered = metric(webhook, 'forecast_webhook_preferences_total{outcome="preferred"}')
                print(
                    f"  {name}: {answered:.0f} answers in time, {_as_advised(advisor)} of {len(pods)} pods as advised"
                )
        self.cluster.writer.delete_many(pods)
        return taken

    @contextmanager
    def advisor(self, name: str, **settings: object) -> Iterator[ScorerProcess]:
        """Ready, and at rest."""
        directory = self.directory / name
        quiet = {"node_metrics": False, "service_metrics": False}
        with ScorerProcess(
            directory,
            "--kubeconfig",
            self.cluster.plane.kubeconfig,
            "--models",
            self.cluster.models,
            settings={"scorer": quiet, "advise": {"leader_election": {"enabled": False}, **settings}},
            command="advise",
            ready=False,
        ) as process:
            process.wait_ready(120)
            assert process.process is not None
            assert eventually(lambda: process.metric("forecast_degradation_level") < 3), process.log
            wait_until_at_rest(process.process.pid)
            yield process


def _rate_of(times: Sequence[float]) -> float:
    first, last = int(_ASIDE * len(times)), int((1 - _ASIDE) * len(times))
    return (last - first) / (times[last] - times[first])


def _as_advised(advisor: ScorerProcess) -> int:
    lines = advisor.http.get("/metrics").raise_for_status().text.splitlines()
    mine = [line for line in lines if line.startswith("forecast_decisions_total") and 'outcome="as_advised"' in line]
    return int(float(mine[0].rpartition(" ")[2]))


def _rate(one: Measured) -> float:
    return one.rate


def _throughput(setting: Setting, n_nodes: int, rounds: int, n_pods: int) -> bool:
    found = in_turn(
        [_ALONE, _ADVISOR], rounds, lambda one, number: setting.throughput(one, f"b{n_nodes}-{number}-{one}", n_pods)
    )
    print(f"{n_nodes} nodes, {rounds} rounds of {n_pods} pods")
    print(f"  {'':10}{'pods/s':>8} {'least to most':>16}{'CPU ms':>9}{'as advised':>13}")
    for name, measured in found.items():
        rates = [one.rate for one in measured]
        line = f"  {name:10}{median(rates):8.1f} {spread(rates):>16}"
        if name == _ADVISOR:
            cpu = 1000 * median(one.cpu / one.n_pods for one in measured)
            line += f"{cpu:9.1f}{100 * min(one.as_advised for one in measured):11.1f} %"
        print(line)
    ratio, wanted = median_ratio(found[_ADVISOR], found[_ALONE], _rate), _WANTED.get(n_nodes, 0.0)
    print(f"  advisor / alone: {ratio:.2f}, at least {wanted} is wanted: {'holds' if ratio >= wanted else 'MISSED'}")
    return ratio >= wanted


def _latency(setting: Setting, n_nodes: int, rounds: int) -> bool:
    ways = [_ALONE, _ADVISOR, _PREFER]
    found = in_turn(ways, rounds, lambda one, number: setting.latency(one, f"l{n_nodes}-{number}-{one}"))
    print(f"{n_nodes} nodes, {_RATE:.0f} pods/s for {_SECONDS:.0f} s, {rounds} rounds, ms from creation to binding")
    p99 = {}
    for name, taken in found.items():
        quantiles = np.median([np.quantile(one, [0.5, 0.95, 0.99]) for one in taken], axis=0)
        p99[name] = float(quantiles[2])
        print(
            f"  {name:10}"
            + "".join(f"{q}: {value:7.0f}   " for q, value in zip(("p50", "p95", "p99"), quantiles, strict=True))
        )
    later = p99[_ADVISOR] - p99[_ALONE]
    holds = later <= _LATER_BY
    print(f"  p99 later by {later:.0f} ms, at most {_LATER_BY:.0f} is wanted: {'holds' if holds else 'MISSED'}")
    return holds


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each setting; ends with status 1 where a limit does not hold."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", default="1000,5000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pods", type=int, default=1500, help="in a batch")
    parser.add_argument("--sitting", type=float, default=4.0, help="pods per node that sit there already")
    parser.add_argument("--services", type=int, default=500)
    parser.add_argument("--latency", action="store_true", help="the time of single pods instead of the rate of a batch")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    holds = True
    for n_nodes in numbers(asked.nodes):
        n_sitting = int(asked.sitting * n_nodes)
        with (
            tempfile.TemporaryDirectory() as scratch,
            LoadedCluster(n_nodes, n_sitting, asked.services, Path(scratch)) as cluster,
        ):
            cluster.writer.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _LEASE_NAMESPACE}})
            setting = Setting(cluster, Path(scratch))
            if asked.latency:
                holds = _latency(setting, n_nodes, asked.rounds) and holds
            else:
                holds = _throughput(setting, n_nodes, asked.rounds, asked.pods) and holds
            print(flush=True)
    finish(holds)


if __name__ == "__main__":
    main()
