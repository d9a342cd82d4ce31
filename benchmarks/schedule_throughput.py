"""Pods per second through a real API server: a bare client, kube-scheduler, and our own loops as a process.

    python -m benchmarks.schedule_throughput [--nodes 1000,5000] [--pods 5000] [--rounds 3]

    bare            binds the pods to nodes in turn with our own binder (benchmarks/schedule_bare_client.py): no watch,
                    no deciding, as many in flight as we have
    kube-scheduler  as it comes, but for qps and burst of 5,000
    ours            `forecast-scheduler schedule`, as it comes, with a model that knows every service

for pods of one ReplicaSet (identical) and of 200 in turn (mixed), on a cluster of
testing/clusters/large_cluster.py behind a real etcd and kube-apiserver. All pods are there before anybody may bind: the
bare client waits for a word, our process for its Lease, kube-scheduler is started. pods/s is that
from the first to the last binding, as a watch sees them, and beside it that of the middle 80 %. Events are part of it:
kube-scheduler writes one for each pod, we write 25 a second.

CPU is in milliseconds per pod from the word on, of the binding process, the API server and etcd; of kube-scheduler its
start is part of it. A round measures every configuration once, the next one in the opposite order. Ratios are medians
of the ratios within a round. Ends with status 1 where a limit does not hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.harness import command_line, finish, in_turn, machine_load, median_ratio, numbers, outcome, spread
from benchmarks.real_scheduler import ROOT
from benchmarks.schedule_process import OUR_NAME, HeldProcess, prepare
from benchmarks.scheduler_load import LoadedCluster
from testing.processes.process_figures import child_named, cpu_of
from testing.servers.cluster_objects import Manifest
from testing.servers.control_plane.kube_scheduler import KubeScheduler

_BARE, _KUBE, _OURS = "bare", "kube-scheduler", "ours"
_SCHEDULER_NAMES: Final = {_BARE: "nobody", _KUBE: "default-scheduler", _OURS: OUR_NAME}
_SERVICES: Final = {"identical": 1, "mixed": 200}
_LIMITS: Final = (
    # pods, beside, at least, from so many nodes on
    ("identical", _KUBE, 3.0, 5000),
    ("mixed", _KUBE, 2.0, 5000),
    ("identical", _BARE, 0.8, 1000),
)
_ASIDE = 0.1
_LONGEST = 300.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch. rate, middle: pods/s; cpu: ms per pod, by process."""

    rate: float
    middle: float
    cpu: Mapping[str, float]


def middle(times: Sequence[float]) -> float:
    """Events per second in the middle 80 %."""
    first, last = int(_ASIDE * len(times)), int((1 - _ASIDE) * len(times))
    return (last - first) / max(times[last] - times[first], 1e-9)


def measured(times: Sequence[float], cpu: Mapping[str, float]) -> Measured:
    """times: of all bindings, in order; cpu: seconds by process."""
    rate = (len(times) - 1) / max(times[-1] - times[0], 1e-9)
    return Measured(rate, middle(times), {name: 1000 * seconds / len(times) for name, seconds in cpu.items()})


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster, and where models and logs go."""

    cluster: LoadedCluster
    directory: Path

    def measure(self, configuration: str, kind: str, name: str, n_pods: int) -> Measured:
        """Bind a batch; its pods are gone afterwards."""
        made = self.cluster.batch(
            name, n_pods, n_services=_SERVICES[kind], scheduler_name=_SCHEDULER_NAMES[configuration]
        )
        try:
            with (
                self.cluster.bindings(name) as bindings,
                self._binding(configuration, made, self.directory / name) as (pid, release, end_of_log),
            ):
                processes = {"binding": pid, "API server": child_named("kube-apiserver"), "etcd": child_named("etcd")}
                before = cpu_of(processes)
                release()
                times = bindings.times(n_pods, _LONGEST, end_of_log)
                after = cpu_of(processes)
        finally:
            self.cluster.writer.delete_many(made)
        return measured(times, {process: after[process] - before[process] for process in processes})

    def _binding(
        self, configuration: str, made: Sequence[Manifest], directory: Path
    ) -> AbstractContextManager[tuple[int, Callable[[], None], Callable[[], str]]]:
        """Who binds: its process, what lets it begin, and what it said last."""
        if configuration == _BARE:
            return self._bare(made)
        return self._kube() if configuration == _KUBE else self._ours(directory)

    @contextmanager
    def _bare(self, made: Sequence[Manifest]) -> Iterator[tuple[int, Callable[[], None], Callable[[], str]]]:
        with subprocess.Popen(
            [sys.executable, "-m", "benchmarks.schedule_bare_client", str(self.cluster.plane.kubeconfig)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        ) as child:
            assert child.stdin is not None and child.stdout is not None
            told, said = child.stdin, child.stdout

            def tell(line: str) -> None:
                told.write(f"{line}\n")
                told.flush()

            try:
                names = self.cluster.node_names
                tell(
                    json.dumps(
                        [
                            [*(one["metadata"][key] for key in ("namespace", "name", "uid")), names[i % len(names)]]
                            for i, one in enumerate(made)
                        ]
                    )
                )
                if said.readline().strip() != "ready":
                    raise RuntimeError("the bare client did not start")
                yield child.pid, lambda: tell("go"), lambda: ""
            finally:
                child.kill()

    @contextmanager
    def _kube(self) -> Iterator[tuple[int, Callable[[], None], Callable[[], str]]]:
        with KubeScheduler(self.cluster.plane) as scheduler:
            yield child_named("kube-scheduler"), lambda: None, scheduler.end_of_log

    @contextmanager
    def _ours(self, directory: Path) -> Iterator[tuple[int, Callable[[], None], Callable[[], str]]]:
        with HeldProcess(self.cluster.plane, directory, models=self.cluster.models) as ours:
            yield ours.pid, ours.release, ours.end_of_log


def measure_setting(setting: Setting, name: str, rounds: int, n_pods: int) -> dict[tuple[str, str], list[Measured]]:
    """All configurations and kinds of pods, `rounds` times."""
    every = [(kind, configuration) for kind in _SERVICES for configuration in (_BARE, _KUBE, _OURS)]

    def measure(one: tuple[str, str], number: int) -> Measured:
        kind, configuration = one
        return setting.measure(configuration, kind, f"{name}-{number}-{every.index(one)}", n_pods)

    return in_turn(every, rounds, measure)


def show(found: Mapping[tuple[str, str], Sequence[Measured]], n_nodes: int) -> bool:
    """Print a setting; returns whether the limits hold."""
    processes = ("binding", "API server", "etcd")
    heads = "".join(f"{name:>12}" for name in processes)
    print(f"  {'':27}{'pods/s':>8} {'least to most':>17}{'middle':>9}   CPU ms per pod:{heads}")
    for (kind, configuration), rounds in found.items():
        rates = [one.rate for one in rounds]
        cpu = "".join(f"{median(one.cpu[name] for one in rounds):12.2f}" for name in processes)
        print(
            f"  {f'{kind}, {configuration}':27}{median(rates):8.0f} {spread(rates):>17}"
            f"{median(one.middle for one in rounds):9.0f}   {'':15}{cpu}"
        )
    holds = True
    for kind, beside, least, from_nodes in _LIMITS:
        ours, others = found[kind, _OURS], found[kind, beside]
        ratio = median_ratio(ours, others, lambda one: one.rate)
        in_middle = median_ratio(ours, others, lambda one: one.middle)
        line = f"  {kind}: ours / {beside} {ratio:.2f}, in the middle {in_middle:.2f}"
        if n_nodes >= from_nodes:
            holds = holds and ratio >= least
            line += f"; at least {least} is wanted: {outcome(ratio >= least)}"
        print(line)
    return holds


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each size."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", default="1000,5000")
    parser.add_argument("--pods", type=int, default=5000, help="in a batch")
    parser.add_argument("--rounds", type=int, default=3)
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
            prepare(cluster.plane)
            began = time.perf_counter()
            found = measure_setting(Setting(cluster, Path(scratch)), f"b{n_nodes}", asked.rounds, asked.pods)
            print(
                f"{n_nodes} nodes, {n_sitting} pods sit there, {asked.rounds} rounds of {asked.pods} pods, "
                f"{time.perf_counter() - began:.0f} s, {machine_load()}"
            )
            holds = show(found, n_nodes) and holds
            print(flush=True)
    finish(holds)


if __name__ == "__main__":
    main()
