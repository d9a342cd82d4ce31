"""A storm of job pods through a real API server: how long after its creation each is bound, by whom.

    python -m benchmarks.job_storm [--nodes 1000] [--pods 3000] [--rounds 5]

    bare            a process that binds every new pod to the next node at once, with our own binder and no deciding
                    (benchmarks/job_storm_binder.py)
    kube-scheduler  as it comes, but for qps and burst of 5,000
    ours            `forecast-scheduler schedule --profile job`, as it comes, with a model that knows the services whose
                    pods sit there

The same creator (benchmarks/job_storm_creator.py) makes the pods as fast as it can while they are being bound, for each
of them: pods of Jobs of 30 CronJobs, ten to a Job. All that binds has read its cluster and has bound a few pods before.
A pod's time is that from the answer to its creation until a watch sees it with a node; creationTimestamp has whole
seconds only. A round measures everybody once, the next one in the opposite order; the ratio is the median of the
rounds'. Ends with status 1 where a limit does not hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from benchmarks.harness import command_line, finish, in_turn, machine_load, median_ratio, outcome, ratios, spread
from benchmarks.job_storm_creator import NAMESPACE
from benchmarks.real_scheduler import ROOT
from benchmarks.scheduler_load import BATCH_LABEL, LoadedCluster
from testing.processes.process_figures import child_named, cpu_of, wait_until_at_rest
from testing.processes.scorer_process import ScorerProcess
from testing.servers.cluster_objects import Manifest
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.watching import PODS, Watching

_BARE, _KUBE, _OURS = "bare", "kube-scheduler", "ours"
_SCHEDULER_NAMES: Final = {_BARE: "bare", _KUBE: "default-scheduler"}
_PROFILES: Final = {"job": "job-scheduler", "online": "forecast-scheduler"}
_MOST_TIMES_BARE: Final = 1.3
"""p99 of ours beside that of the bare binder."""

_WARM_UP: Final = 50
_LONGEST: Final = 300.0
_START_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Storm:
    """
    p50, p99, most : seconds from creation to bound
    in_all         : seconds from the first creation to the last binding: who binds takes processor from the creator
    created        : pods/s
    cpu            : ms per pod, by process
    """

    p50: float
    p99: float
    most: float
    in_all: float
    created: float
    cpu: Mapping[str, float]


def delays(created: Mapping[str, float], bound: Mapping[str, float]) -> list[float]:
    """Seconds of each pod; 0 where a watch told of its binding before the creator had its answer. Raises KeyError."""
    return [max(0.0, bound[name] - at) for name, at in created.items()]


def storm_of(created: Mapping[str, float], bound: Mapping[str, float], cpu: Mapping[str, float]) -> Storm:
    """created, bound: when, by name of the pod; cpu: seconds by process."""
    took, times = delays(created, bound), sorted(created.values())
    p50, p99, most = (float(np.percentile(took, q)) for q in (50, 99, 100))
    rate = (len(times) - 1) / max(times[-1] - times[0], 1e-9)
    in_all = max(bound[name] for name in created) - times[0]
    return Storm(p50, p99, most, in_all, rate, {name: 1000 * seconds / len(times) for name, seconds in cpu.items()})


class _Creator:
    """Context manager around benchmarks/job_storm_creator.py."""

    def __init__(self, plane: ControlPlane, in_flight: int) -> None:
        told = [str(plane.kubeconfig), "--in-flight", str(in_flight)]
        self._child = _child("benchmarks.job_storm_creator", *told)

    def __enter__(self) -> _Creator:
        self._expect_ready()
        return self

    def __exit__(self, *unused: object) -> None:
        _end(self._child)

    def create(self, name: str, n_pods: int, scheduler_name: str) -> dict[str, float]:
        """When each was created, by name."""
        assert self._child.stdin is not None and self._child.stdout is not None
        told = {"name": name, "pods": n_pods, "scheduler_name": scheduler_name}
        self._child.stdin.write(json.dumps(told) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError("the creator has failed")
        return dict(json.loads(line))

    def _expect_ready(self) -> None:
        _expect_ready(self._child)


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster, who makes storms, which profile is ours, and where logs go."""

    cluster: LoadedCluster
    creator: _Creator
    profile: str
    directory: Path

    def measure(self, configuration: str, name: str, n_pods: int) -> Storm:
        """One storm; its pods are gone afterwards."""
        scheduler = _PROFILES[self.profile] if configuration == _OURS else _SCHEDULER_NAMES[configuration]
        with self._binding(configuration, self.directory / name) as pid:
            self._bind_batch(f"{name}-warm", _WARM_UP, scheduler)
            processes = {"binding": pid, "API server": child_named("kube-apiserver"), "etcd": child_named("etcd")}
            before = cpu_of(processes)
            created, bound = self._bind_batch(name, n_pods, scheduler)
            after = cpu_of(processes)
        return storm_of(created, bound, {process: after[process] - before[process] for process in processes})

    def _bind_batch(self, name: str, n_pods: int, scheduler_name: str) -> tuple[dict[str, float], dict[str, float]]:
        """When each pod was created and when it was bound."""
        bound: dict[str, float] = {}

        def seen(kind: str, pod: Manifest) -> None:
            bound.setdefault(pod["metadata"]["name"], time.perf_counter())

        selectors = {"labelSelector": f"{BATCH_LABEL}={name}", "fieldSelector": "spec.nodeName!="}
        with Watching(self.cluster.plane, PODS, seen, selectors) as watching:
            created = self.creator.create(name, n_pods, scheduler_name)
            deadline = time.perf_counter() + _LONGEST
            while len(bound) < n_pods:
                if watching.failed or time.perf_counter() > deadline:
                    raise TimeoutError(f"{len(bound)} of {n_pods} were bound in {_LONGEST:.0f} s {watching.failed}")
                time.sleep(0.05)
        self.cluster.writer.delete_many(
            {"kind": "Pod", "metadata": {"namespace": NAMESPACE, "name": name}} for name in created
        )
        return created, bound

    def _binding(self, configuration: str, directory: Path) -> AbstractContextManager[int]:
        """Who binds: its process."""
        if configuration == _BARE:
            return self._bare()
        return self._kube() if configuration == _KUBE else self._ours(directory)

    @contextmanager
    def _bare(self) -> Iterator[int]:
        scheduler = _SCHEDULER_NAMES[_BARE]
        child = _child("benchmarks.job_storm_binder", str(self.cluster.plane.kubeconfig), scheduler)
        try:
            assert child.stdin is not None
            child.stdin.write(json.dumps(self.cluster.node_names) + "\n")
            child.stdin.flush()
            _expect_ready(child)
            yield child.pid
        finally:
            _end(child)

    @contextmanager
    def _kube(self) -> Iterator[int]:
        with KubeScheduler(self.cluster.plane):
            yield child_named("kube-scheduler")

    @contextmanager
    def _ours(self, directory: Path) -> Iterator[int]:
        # Series of all nodes would be read for nothing.
        quiet = {"node_metrics": False, "service_metrics": False}
        ours = ScorerProcess(
            directory,
            *("--kubeconfig", self.cluster.plane.kubeconfig, "--models", self.cluster.models, "--domain", ""),
            settings={"scorer": quiet, "schedule": {"profiles": [self.profile], "leader_election": {"enabled": False}}},
            command="schedule",
            ready=False,
        )
        with ours:
            ours.wait_ready(_START_SECONDS)
            assert ours.process is not None
            wait_until_at_rest(ours.process.pid)
            yield ours.process.pid


def _child(module: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def _expect_ready(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    if child.stdout.readline().strip() != "ready":
        raise RuntimeError(f"{child.args!r} did not start")


def _end(child: subprocess.Popen[str]) -> None:
    child.kill()
    with child:  # closes its pipes
        pass


def show(found: Mapping[str, Sequence[Storm]]) -> bool:
    """Print a table; returns whether the limit holds."""
    processes = ("binding", "API server", "etcd")
    heads = "".join(f"{name:>12}" for name in processes)
    figures = f"{'p50':>7}{'p99':>7} {'least to most':>16}{'max':>7}{'in all':>8}{'created/s':>11}"
    print(f"  {'seconds, medians':18}{figures}   CPU ms per pod:{heads}")
    for configuration, rounds in found.items():
        p99 = [one.p99 for one in rounds]
        cpu = "".join(f"{median(one.cpu[name] for one in rounds):12.2f}" for name in processes)
        print(
            f"  {configuration:18}{median(one.p50 for one in rounds):7.2f}{median(p99):7.2f} "
            f"{spread(p99, 2):>16}{median(one.most for one in rounds):7.2f}"
            f"{median(one.in_all for one in rounds):8.2f}{median(one.created for one in rounds):11.0f}   {'':15}{cpu}"
        )
    to_bare = ratios(found[_OURS], found[_BARE], _p99)
    ratio = median(to_bare)
    holds = ratio <= _MOST_TIMES_BARE
    of_rounds = ", ".join(f"{one:.2f}" for one in sorted(to_bare))
    print(f"  p99 of ours / kube-scheduler {median_ratio(found[_OURS], found[_KUBE], _p99):.2f}")
    print(f"  p99 of ours / bare, by rounds: {of_rounds}")
    print(f"  median {ratio:.2f}; at most {_MOST_TIMES_BARE} is wanted: {outcome(holds)}")
    return holds


def _p99(one: Storm) -> float:
    return one.p99


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=3000, help="in a storm")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sitting", type=float, default=4.0, help="pods per node that sit there already")
    parser.add_argument("--services", type=int, default=500, help="of those pods")
    parser.add_argument("--in-flight", type=int, default=64, help="creations at once")
    parser.add_argument("--profile", choices=list(_PROFILES), default="job", help="of ours")
    asked = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as scratch,
        LoadedCluster(asked.nodes, int(asked.sitting * asked.nodes), asked.services, Path(scratch)) as cluster,
        _Creator(cluster.plane, asked.in_flight) as creator,
    ):
        setting = Setting(cluster, creator, asked.profile, Path(scratch))
        found = in_turn(
            (_BARE, _KUBE, _OURS),
            asked.rounds,
            lambda one, number: setting.measure(one, f"storm-{number}-{one}", asked.pods),
        )
    print(
        f"{asked.nodes} nodes, {asked.rounds} rounds of {asked.pods} pods, {asked.in_flight} creations at once, "
        f"{machine_load()}"
    )
    finish(show(found))


if __name__ == "__main__":
    main()
