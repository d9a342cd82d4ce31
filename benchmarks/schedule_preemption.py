"""A storm of pods of high priority into a full cluster: our own loops beside kube-scheduler, through a real API server.

    python -m benchmarks.schedule_preemption [--nodes 1000] [--pods 1000] [--rounds 3]

Every node has 3.8 cores, and pods of low priority that request 0.4, 0.4, 0.9 and 1.8 of them; each of the new pods
requests 0.9 and fits nowhere. One eviction is enough for one of them, that of the largest pod for two. There is no
kubelet: victims have a grace period of 0 and are gone at once. Both schedulers begin with the same pods on the same
nodes; the new pods are there before either may begin, and half of the low ones are of a lower priority still.

pods/s is that from the first to the last binding, as a watch sees them; 'seconds' from when the scheduler began, which
for ours is 3 s of taking the Lease and for kube-scheduler its start. Victims are counted, and how many of them were of
the less low priority. A round measures both, the next one in the opposite order.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.harness import command_line, in_turn, machine_load, median_ratio, spread
from benchmarks.schedule_process import OUR_NAME, HeldProcess, prepare
from benchmarks.schedule_throughput import measured
from benchmarks.scheduler_load import BATCH_LABEL, Bindings
from testing.servers.cluster_objects import ClusterWriter, Manifest, node, pod, replica_set, running
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.kube_scheduler import KubeScheduler

_KUBE, _OURS = "kube-scheduler", "ours"
_SITTING: Final = ("400m", "400m", "900m", "1800m")
_WANTED: Final = "900m"
_PRIORITIES: Final = {"low": 10, "lower": 5, "high": 1000}
_LONGEST: Final = 600.0


@dataclass(frozen=True, slots=True)
class Stormed:
    """rate: pods/s; seconds: until the last binding; victims: evicted pods; of_low: those of them of priority `low`."""

    rate: float
    seconds: float
    victims: int
    of_low: int


class FullCluster:
    """Context manager: a control plane with nodes that have no room."""

    def __init__(self, n_nodes: int, directory: Path) -> None:
        self._n_nodes, self._directory = n_nodes, directory
        self.plane = ControlPlane()

    def __enter__(self) -> FullCluster:
        self.plane.__enter__()
        self.writer = ClusterWriter(self.plane)
        prepare(self.plane)
        for name, value in _PRIORITIES.items():
            self.writer.create(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )
        names = [f"node-{i:05d}" for i in range(self._n_nodes)]
        self.writer.create_many(node(name, cpu="4") for name in names)
        owner = self.writer.create(replica_set("batch-5d9c7b6f4d", deployment="batch"))
        self._urgent = self.writer.create(replica_set("shop-7d9f8b6c5d", deployment="shop"))
        self._sitting = {
            manifest["metadata"]["name"]: manifest
            for i, name in enumerate(names)
            for k, cpu in enumerate(_SITTING)
            for manifest in (
                _of_priority(
                    "low" if (i + k) % 2 else "lower",
                    pod(f"{name}-{k}", node=name, owner=owner, cpu=cpu, status=running("2026-01-05T07:11:13Z")),
                ),
            )
        }
        self.writer.create_many(self._sitting.values())
        return self

    def __exit__(self, *unused: object) -> None:
        self.writer.close()
        self.plane.stop()

    def storm(self, scheduler: str, name: str, n_pods: int) -> Stormed:
        """Schedule so many pods of high priority; then everything is as before."""
        made = self.create_high(name, n_pods, OUR_NAME if scheduler == _OURS else "default-scheduler")
        with (
            Bindings(self.plane, name) as bindings,
            self._scheduler(scheduler, self._directory / name) as (release, end_of_log),
        ):
            release()
            began = time.perf_counter()
            times = bindings.times(n_pods, _LONGEST, end_of_log)
        victims = self.restore(made)
        of_low = sum(one["spec"]["priorityClassName"] == "low" for one in victims)
        return Stormed(measured(times, {}).rate, times[-1] - began, len(victims), of_low)

    def create_high(
        self, name: str, n_pods: int, scheduler_name: str, labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """Pods of high priority that fit nowhere."""
        return self.writer.create_many(
            _of_priority(
                "high",
                pod(
                    f"{name}-{i:05d}",
                    owner=self._urgent,
                    cpu=_WANTED,
                    labels={BATCH_LABEL: name, **(labels or {})},
                    scheduler_name=scheduler_name,
                ),
            )
            for i in range(n_pods)
        )

    def restore(self, made: Sequence[Manifest]) -> list[Manifest]:
        """Delete these pods, and make the pods again that were evicted for them; returns the latter."""
        left = {one["metadata"]["name"] for one in self.writer.list_all("pods")}
        victims = [manifest for name, manifest in self._sitting.items() if name not in left]
        self.writer.delete_many(made)
        self.writer.create_many(victims)
        return victims

    @contextmanager
    def _scheduler(self, scheduler: str, directory: Path) -> Iterator[tuple[Callable[[], None], Callable[[], str]]]:
        if scheduler == _KUBE:
            with KubeScheduler(self.plane) as kube:
                yield lambda: None, kube.end_of_log
        else:
            with HeldProcess(self.plane, directory, models=directory / "no-models") as ours:
                yield ours.release, ours.end_of_log


def _of_priority(name: str, manifest: Manifest) -> Manifest:
    manifest["spec"] |= {"priorityClassName": name, "terminationGracePeriodSeconds": 0}
    return manifest


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch, FullCluster(asked.nodes, Path(scratch)) as cluster:
        found = in_turn(
            (_KUBE, _OURS), asked.rounds, lambda name, number: cluster.storm(name, f"{name}-{number}", asked.pods)
        )
    print(f"{asked.pods} pods into {asked.nodes} full nodes, {asked.rounds} rounds, {machine_load()}")
    print(f"  {'':16}{'pods/s':>8} {'least to most':>17}{'seconds':>9}{'victims':>9}{'of low':>9}")
    for name, rounds in found.items():
        rates = [one.rate for one in rounds]
        figures = [median(getattr(one, of) for one in rounds) for of in ("seconds", "victims", "of_low")]
        print(
            f"  {name:16}{median(rates):8.1f} {spread(rates, 1):>17}{figures[0]:9.1f}{figures[1]:9.0f}{figures[2]:9.0f}"
        )
    ratio = median_ratio(found[_OURS], found[_KUBE], lambda one: one.rate)
    print(f"  ours / kube-scheduler: {ratio:.2f} of the rate")


if __name__ == "__main__":
    main()
