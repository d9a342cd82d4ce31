"""Pods per second of the real kube-scheduler: alone, with an echo as its extender, and with ours.

    python -m benchmarks.extender_throughput [--nodes 1000,5000] [--percentages 0,100] [--rounds 3] [--pods N]

    alone       no extender
    echo        our own HTTP service with nothing behind it (benchmarks/extender_echo.py): filter and prioritize
    ours        `forecast-scheduler extender` as a process of its own, as shipped: filter and prioritize
    ours, short at percentageOfNodesToScore 100: prioritize only; the reply names the best and worst 500 nodes at most

A batch of pods, of 50 services in turn, waits before the scheduler starts, so that nobody creates pods meanwhile; then
the scheduler has always more to do than it can. pods/s is that of the middle 80 % of the batch's bindings, as a watch
sees them. Each setting begins with a short batch with the echo that says how many pods ten seconds take; a round
measures every configuration once, the next one in the opposite order. Ratios are medians of the ratios within a round.

What an extender answered is counted, too: a late answer is neutral, and would pass as speed. 'in earnest' is the share
of the pods that got one in time. CPU is that of the extender's process, in milliseconds per pod, and its ratio to the
echo's, which says more where the machine has other work.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import command_line, finish, in_turn, median_ratio, numbers, spread
from benchmarks.real_scheduler import ROOT
from benchmarks.scheduler_load import LoadedCluster
from testing.processes.process_figures import cpu_seconds, wait_until_at_rest
from testing.processes.scorer_process import ScorerProcess
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.shipped_extender import shipped_extender

_ALONE, _ECHO, _OURS, _SHORT = "alone", "echo", "ours", "ours, short"
_ASIDE = 0.1
"""Of the bindings at either end: the scheduler warms up, and the last of them wait for nobody."""

_SECONDS, _PILOT_PODS, _FEWEST, _MOST = 10.0, 150, 100, 6000
_LONGEST = 300.0
_COUNTED = re.compile(rb'^forecast_extender_requests_total\{outcome="(\w+)",verb="(\w+)"\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch.

    rate     : pods/s
    outcomes : "verb outcome" -> requests
    cpu      : seconds of the extender's process
    """

    rate: float
    n_pods: int
    outcomes: Mapping[str, int]
    cpu: float

    @property
    def in_earnest(self) -> float:
        """Share of the pods for which nodes were scored in time."""
        return self.outcomes.get("prioritize answered", 0) / self.n_pods

    @property
    def not_in_earnest(self) -> str:
        """Other outcomes, for people."""
        return ", ".join(f"{n} {what}" for what, n in self.outcomes.items() if n and not what.endswith(" answered"))


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster, and how many of its nodes kube-scheduler scores. percentage: 0 = as many as it likes."""

    cluster: LoadedCluster
    directory: Path
    percentage: int

    def measure(self, configuration: str, name: str, n_pods: int) -> Measured:
        """Schedule a batch; its pods are gone afterwards."""
        made = self.cluster.batch(name, n_pods)
        try:
            with self._extender(configuration, name) as served, self.cluster.bindings(name) as bindings:
                entries = [] if served is None else [_entry(configuration, served[0])]
                before, cpu = ({}, 0.0) if served is None else (_outcomes(served[0]), cpu_seconds(served[1]))
                with KubeScheduler(self.cluster.plane, entries, percentage=self.percentage) as scheduler:
                    times = bindings.times(n_pods, _LONGEST, scheduler.end_of_log)
                outcomes = {} if served is None else _outcomes(served[0])
                cpu = 0.0 if served is None else cpu_seconds(served[1]) - cpu
        finally:
            self.cluster.writer.delete_many(made)
        first, last = int(_ASIDE * n_pods), int((1 - _ASIDE) * n_pods)
        return Measured(
            rate=(last - first) / (times[last] - times[first]),
            n_pods=n_pods,
            outcomes={what: n - before.get(what, 0) for what, n in outcomes.items()},
            cpu=cpu,
        )

    def _extender(self, configuration: str, name: str) -> AbstractContextManager[tuple[str, int] | None]:
        """Its address and process."""
        if configuration == _ALONE:
            return nullcontext()
        return _echo(self.directory / name) if configuration == _ECHO else self._ours(self.directory / name)

    @contextmanager
    def _ours(self, directory: Path) -> Iterator[tuple[str, int]]:
        arguments = ("--kubeconfig", self.cluster.plane.kubeconfig, "--models", self.cluster.models)
        # 275,000 series of nodes would be read for the few that are counted here.
        settings = {"scorer": {"node_metrics": False, "service_metrics": False}}
        with ScorerProcess(directory, *arguments, settings=settings, command="extender", ready=False) as ours:
            ours.wait_ready(120)
            assert ours.process is not None
            wait_until_at_rest(ours.process.pid)
            yield ours.url, ours.process.pid


def _entry(configuration: str, url: str) -> dict[str, Any]:
    """As shipped but for /preempt, of which the echo knows as little as this benchmark; waiting is not cut short."""
    entry = shipped_extender(url, httpTimeout="10s")
    for verb in ("preemptVerb", *(("filterVerb",) if configuration == _SHORT else ())):
        del entry[verb]
    return entry


@contextmanager
def _echo(directory: Path) -> Iterator[tuple[str, int]]:
    directory.mkdir(parents=True)
    with (directory / "log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.extender_echo"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip(), child.pid
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def _outcomes(url: str) -> dict[str, int]:
    """Requests answered so far, by verb and outcome."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        found = _COUNTED.findall(answer.read())
    return {f"{verb.decode()} {outcome.decode()}": int(float(n)) for outcome, verb, n in found}


def measure_setting(setting: Setting, name: str, rounds: int, n_pods: int | None) -> dict[str, list[Measured]]:
    """All configurations, `rounds` times."""
    configurations = [_ALONE, _ECHO, _OURS] + ([_SHORT] if setting.percentage == 100 else [])
    if n_pods is None:
        pilot = setting.measure(_ECHO, f"{name}-pilot", _PILOT_PODS)
        n_pods = min(max(int(_SECONDS * pilot.rate), _FEWEST), _MOST)
    return in_turn(
        configurations,
        rounds,
        lambda one, number: setting.measure(one, f"{name}-{number}-{configurations.index(one)}", n_pods),
    )


def show(found: Mapping[str, Sequence[Measured]]) -> bool:
    """Print a setting; returns whether all limits hold."""
    for name, measured in found.items():
        rates = [one.rate for one in measured]
        line = f"  {name:12}{median(rates):8.1f} {spread(rates):>16}{median_ratio(measured, found[_ECHO], _rate):>9.2f}"
        if name != _ALONE:
            cpu, share = 1000 * median(map(_cpu, measured)), 100 * min(one.in_earnest for one in measured)
            other = "; ".join(filter(None, (one.not_in_earnest for one in measured)))
            line += f"{cpu:>9.1f}{median_ratio(measured, found[_ECHO], _cpu):>8.1f}{share:>11.1f} %  {other}"
        print(line)
    holds = True
    for name, least in ((_OURS, 0.9), (_SHORT, 1.5)):
        if name in found:
            ratio = median_ratio(found[name], found[_ECHO], _rate)
            earnest = min(one.in_earnest for one in found[name]) >= 0.99
            kept = ratio >= least and earnest
            verdict = "holds" if kept else "MISSED" if earnest else "MISSED: too many answers were neutral"
            print(f"  {name} / echo: {ratio:.2f}, at least {least} is wanted: {verdict}")
            holds = holds and kept
    return holds


def _rate(one: Measured) -> float:
    return one.rate


def _cpu(one: Measured) -> float:
    return one.cpu / one.n_pods


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each setting; ends with status 1 where a limit does not hold."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", default="1000,5000")
    parser.add_argument("--percentages", default="0,100", help="percentageOfNodesToScore; 0 = kube-scheduler's own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pods", type=int, help="in a batch; without it, what the echo schedules in 10 s")
    parser.add_argument("--sitting", type=float, default=4.0, help="pods per node that sit there already")
    parser.add_argument("--services", type=int, default=500)
    asked = parser.parse_args(arguments)
    holds = True
    for n_nodes in numbers(asked.nodes):
        n_sitting = int(asked.sitting * n_nodes)
        with (
            tempfile.TemporaryDirectory() as scratch,
            LoadedCluster(n_nodes, n_sitting, asked.services, Path(scratch)) as cluster,
        ):
            for percentage in numbers(asked.percentages):
                began = time.perf_counter()
                setting = Setting(cluster, Path(scratch), percentage)
                found = measure_setting(setting, f"b{n_nodes}-{percentage}", asked.rounds, asked.pods)
                n_pods = found[_ALONE][0].n_pods
                share = f"percentageOfNodesToScore {percentage or 'default'}"
                seconds = time.perf_counter() - began
                print(f"{n_nodes} nodes, {n_sitting} pods sit there, {share}")
                print(f"{asked.rounds} rounds of {n_pods} pods, {seconds:.0f} s")
                print(f"  {'':12}{'pods/s':>8} {'least to most':>16}{'/ echo':>9}", end="")
                print(f"{'CPU ms':>9}{'/ echo':>8}{'in earnest':>13}")
                holds = show(found) and holds
                print(flush=True)
    finish(holds)


if __name__ == "__main__":
    main()
