"""Gangs beside single pods, through a real API server: `forecast-scheduler schedule` as a process, with a model.

    python -m benchmarks.schedule_gangs [--nodes 1000] [--groups 200] [--members 16] [--rounds 3]

    gangs   so many PodGroups, each with as many members, which are all needed
    single  as many pods of the same services and of the same shape, in no group

All pods are there before the process gets its Lease. pods/s is that from the first to the last binding, as a watch sees
them. A round measures both, the next one in the opposite order; the ratio is the median of the rounds'. The gangs are
counted: no group may have been bound in part. Ends with status 1 where a limit does not hold.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.harness import command_line, finish, in_turn, machine_load, median_ratio, outcome, spread
from benchmarks.schedule_process import OUR_NAME, HeldProcess, prepare
from benchmarks.schedule_throughput import Measured, measured
from benchmarks.scheduler_load import BATCH_LABEL, LoadedCluster
from placement.pod_groups.group_of_pod import GROUP_LABEL
from testing.processes.process_figures import cpu_of
from testing.processes.shipped_schedule import shipped
from testing.processes.webhook_process import Api, Refused
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually

_GANGS, _SINGLE = "gangs", "single"
_GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups"
_LEAST: Final = 0.6
_LONGEST: Final = 300.0
_INSTALL_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster whose API server knows PodGroups. directory: of logs."""

    cluster: LoadedCluster
    directory: Path
    n_groups: int
    n_members: int

    def measure(self, kind: str, name: str) -> Measured:
        """Bind a batch; its pods and groups are gone afterwards. Raises AssertionError for half a gang."""
        n_pods = self.n_groups * self.n_members
        groups = self._groups(name) if kind == _GANGS else []
        made = self.cluster.batch(
            name,
            n_pods,
            n_services=self.n_groups,  # pod i is of service, and of group, i % n_groups
            scheduler_name=OUR_NAME,
            labels_of=lambda i: {GROUP_LABEL: f"{name}-{i % self.n_groups}"} if groups else {},
        )
        try:
            with (
                self.cluster.bindings(name) as bindings,
                HeldProcess(self.cluster.plane, self.directory / name, models=self.cluster.models) as ours,
            ):
                processes = {"binding": ours.pid}
                before = cpu_of(processes)
                ours.release()
                times = bindings.times(n_pods, _LONGEST, ours.end_of_log)
                cpu = cpu_of(processes)["binding"] - before["binding"]
            self._check(name)
        finally:
            self.cluster.writer.delete_many(made)
            with Api(self.cluster.plane) as api:
                for path in groups:
                    api.request("DELETE", path)
        return measured(times, {"binding": cpu})

    def _groups(self, name: str) -> list[str]:
        """Made; their paths."""
        paths = []
        with Api(self.cluster.plane) as api:
            for number, of in enumerate(self.cluster.sets[: self.n_groups]):
                collection = _GROUPS.format(of["metadata"]["namespace"])
                manifest = {
                    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                    "kind": "PodGroup",
                    "metadata": {"name": f"{name}-{number}"},
                    "spec": {"minMember": self.n_members},
                }
                api.request("POST", collection, manifest)
                paths.append(f"{collection}/{name}-{number}")
        return paths

    def _check(self, name: str) -> None:
        listed = self.cluster.writer.list_all("pods")
        labels = [one["metadata"]["labels"] for one in listed if one["spec"].get("nodeName")]
        bound = Counter(of.get(GROUP_LABEL) for of in labels if of.get(BATCH_LABEL) == name)
        assert all(n == self.n_members for group, n in bound.items() if group is not None), bound


def install_groups(plane: ControlPlane) -> None:
    """The definition of PodGroups, served."""
    with Api(plane) as api:
        for path, manifest in shipped("crds/podgroups/podgroups.yaml"):
            api.request("POST", path, manifest)

        def is_served() -> bool:
            try:
                api.request("GET", _GROUPS.format("default"))
            except Refused:
                return False
            return True

        if not eventually(is_served, _INSTALL_SECONDS):
            raise RuntimeError("the API server does not serve PodGroups")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sitting", type=float, default=4.0, help="pods per node that sit there already")
    asked = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as scratch,
        LoadedCluster(asked.nodes, int(asked.sitting * asked.nodes), asked.groups, Path(scratch)) as cluster,
    ):
        prepare(cluster.plane)
        install_groups(cluster.plane)
        setting = Setting(cluster, Path(scratch), asked.groups, asked.members)
        found = in_turn((_GANGS, _SINGLE), asked.rounds, lambda kind, number: setting.measure(kind, f"{kind}-{number}"))
    print(f"{asked.nodes} nodes, {asked.groups} groups of {asked.members}, {asked.rounds} rounds, {machine_load()}")
    print(f"  {'':12}{'pods/s':>8} {'least to most':>17}{'middle':>9}{'CPU ms':>9}")
    for kind, rounds in found.items():
        rates = [one.rate for one in rounds]
        cpu = median(one.cpu["binding"] for one in rounds)
        print(
            f"  {kind:12}{median(rates):8.0f} {spread(rates):>17}{median(one.middle for one in rounds):9.0f}{cpu:9.2f}"
        )
    ratio = median_ratio(found[_GANGS], found[_SINGLE], lambda one: one.rate)
    print(f"  gangs / single: {ratio:.2f}, at least {_LEAST} is wanted: {outcome(ratio >= _LEAST)}")
    finish(ratio >= _LEAST)


if __name__ == "__main__":
    main()
