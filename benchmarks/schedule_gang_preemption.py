"""A gang that preempts beside as many single pods, through a real API server, with one process of `schedule`.

    python -m benchmarks.schedule_gang_preemption [--nodes 1000] [--members 16] [--rounds 7]

The nodes are full, as those of schedule_preemption.py. The process places a gang, and then as many single pods of the
same shape, round after round, the next round in the opposite order; after each the cluster is as it was.

'seconds' is from the first request that makes a pod to the last binding, as a watch sees it: making the pods, search,
nominations, evictions, backoff, and bindings. 'search' is what all searches for victims took in the process. Victims
are counted. The figures are medians, the ratio that of the rounds. The first round is not counted: the tables of
preemption are made then. Ends with status 1 if the gang has more victims, or takes more than twice the time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.harness import command_line, finish, machine_load, median_ratio, outcome, spread
from benchmarks.schedule_gangs import install_groups
from benchmarks.schedule_preemption import FullCluster
from benchmarks.schedule_process import OUR_NAME, HeldProcess
from benchmarks.scheduler_load import Bindings
from placement.pod_groups.group_of_pod import GROUP_LABEL
from testing.processes.webhook_process import Api

_GANG, _SINGLE = "gang", "single"
_GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/podgroups"
_LONGEST: Final = 120.0
_REST_SECONDS: Final = 3.0
_MOST: Final = 2.0
_SEARCH: Final = 'forecast_scheduling_duration_seconds_sum{stage="post_filter"}'


@dataclass(frozen=True, slots=True)
class Preempted:
    """seconds: until all are bound; search: milliseconds of searching; victims: evicted pods."""

    seconds: float
    search: float
    victims: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A full cluster, and a process that schedules in it."""

    cluster: FullCluster
    process: HeldProcess
    n_members: int

    def measure(self, kind: str, name: str) -> Preempted:
        """Place a gang, or single pods; then everything is as before."""
        labels = {GROUP_LABEL: name} if kind == _GANG else {}
        if labels:
            with Api(self.cluster.plane) as api:
                api.request("POST", _GROUPS.format("default"), _group(name, self.n_members))
        time.sleep(_REST_SECONDS)
        searched = self._searched()
        with Bindings(self.cluster.plane, name) as bindings:
            began = time.perf_counter()
            made = self.cluster.create_high(name, self.n_members, OUR_NAME, labels)
            times = bindings.times(self.n_members, _LONGEST, self.process.end_of_log)
        search = 1000 * (self._searched() - searched)
        return Preempted(times[-1] - began, search, len(self.cluster.restore(made)))

    def _searched(self) -> float:
        text = self.process.process.http.get("/metrics").raise_for_status().text
        series = (line for line in text.splitlines() if line.startswith(_SEARCH))
        return sum(float(line.rpartition(" ")[2]) for line in series)


def _group(name: str, members: int) -> dict[str, object]:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": members},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure gangs and single pods that preempt, and print a table."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args(arguments)
    found: dict[str, list[Preempted]] = {_GANG: [], _SINGLE: []}
    with tempfile.TemporaryDirectory() as scratch, FullCluster(asked.nodes, Path(scratch)) as cluster:
        install_groups(cluster.plane)
        directory = Path(scratch) / "ours"
        with HeldProcess(cluster.plane, directory, models=directory / "no-models") as process:
            process.release()
            setting = Setting(cluster, process, asked.members)
            for number in range(asked.rounds + 1):
                for kind in found if number % 2 == 0 else reversed(found):
                    found[kind].append(setting.measure(kind, f"{kind}-{number}"))
    counted = {kind: rounds[1:] for kind, rounds in found.items()}
    print(f"{asked.members} members into {asked.nodes} full nodes, {asked.rounds} rounds, {machine_load()}")
    print(f"  {'':10}{'seconds':>9} {'least to most':>17}{'search ms':>11}{'victims':>9}")
    for kind, rounds in counted.items():
        seconds = [one.seconds for one in rounds]
        search, victims = median(one.search for one in rounds), median(one.victims for one in rounds)
        print(f"  {kind:10}{median(seconds):9.2f} {spread(seconds, 2):>17}{search:11.0f}{victims:9.0f}")
    pairs = list(zip(counted[_GANG], counted[_SINGLE], strict=True))
    ratio = median_ratio(counted[_GANG], counted[_SINGLE], lambda one: one.seconds)
    more = max(gang.victims - single.victims for gang, single in pairs)
    holds = ratio <= _MOST and more <= 0
    print(
        f"  gang / single: {ratio:.2f} of the time, at most {_MOST:g} is wanted; {max(more, 0)} victims more: "
        f"{outcome(holds)}"
    )
    finish(holds)


if __name__ == "__main__":
    main()
