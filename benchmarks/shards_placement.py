"""What parting the nodes costs in placement: N replicas beside a single decider, in memory, the same pods.

    python -m benchmarks.shards_placement [--nodes 5000,20000] [--replicas 1,2,4,8] [--per-node 4] [--seeds 3]

Pods of 200 services come in waves, 16 of each service in a wave, until there are `--per-node` on each node; then gangs
of 64 pods of six cores each, until the cluster has no room for a further one. Each unit goes through the product's own
dispatch, passing on and plans over all nodes (scheduler/shards/). One set of tables stands for those of all replicas:
it is as fresh for each as its own would be for its own nodes. Nodes move between shards after each wave, as the keeper
does every half minute. A loan is granted at once.

Shown are the coefficient of variation of the predicted CPU peaks of all nodes, the highest one, the hot share (above
80 % of capacity), how many gangs were placed, and how many units were passed on, planned over all nodes, and how many
nodes were lent. A single decider is the same code with one replica. Ends with status 1 where a limit does not hold.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.harness import command_line, finish, machine_load, numbers, outcome
from benchmarks.schedule_answered import cluster_with_zones, fill, still_scorer, waiting_pods
from forecast.hot_share import HOT_SHARE
from forecast.resources import CPU
from forecast_scheduler.settings.document import Settings, with_options
from forecast_scheduler.settings.feature_options import schedule_policy
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo
from placement.pod_groups.group_of_pod import GROUP_LABEL
from placement.pod_groups.minima import Minima
from placement.pod_groups.pod_group import PodGroupInfo
from placement.policies.policy import OnePolicyForAll
from profiles.schedule_tables import schedule_tables
from scheduler.assembly import assembled_profiles
from scheduler.binding.bind_plugins import DryRun
from scheduler.cycle.placing import UnitPlacer
from scheduler.placing_core import placing_core
from scheduler.queue.queued_pods import Popped, QueuedPodInfo
from scheduler.shard_tables import ShardLeases
from scheduler.shards.assignment import dispatcher, even_rooms
from scheduler.shards.node_shards import HandedOver, handing_over
from scheduler.shards.passing_on import PASSED_ON, PassedOn
from scheduler.shards.shard_room import node_rooms, nodes_to_move, shard_rooms
from scheduler.shards.sharded_cycle import PlannedNominations, ShardedCycle
from testing.clusters.large_cluster import LargeCluster

_SERVICES: Final = 200
_WAVE: Final = 16
_GANG: Final = 64
_MOST_WORSE: Final = 1.02
_SHARDS: Final = 32
_NEVER: Final = 1e18


@dataclass(slots=True)
class Counts:
    """passed: pods that were passed on; lent: nodes."""

    passed: int = 0
    lent: int = 0


@dataclass(frozen=True, slots=True)
class Quality:
    """variation, highest, hot: of the nodes' predicted CPU peaks; gangs: placed whole; left: pods without a node."""

    variation: float
    highest: float
    hot: float
    gangs: int
    left: int
    counts: Counts


class _EveryLease:
    """Stands for a LeaseSet: whatever is asked for is held."""

    identity = "0"

    def holds(self, name: str) -> bool:
        return True


class Replicas:
    """N replicas over one set of tables. Units go from one to the other as the pods' annotations say."""

    def __init__(self, made: LargeCluster, n: int) -> None:
        settings = with_options(
            Settings(),
            {"schedule": {"domain": "", "scheduler_name": "forecast-scheduler", "preemption": {"enabled": False}}},
        )
        options = settings.schedule.model_copy(
            update={"shards": settings.schedule.shards.model_copy(update={"enabled": True, "count": _SHARDS})}
        )
        self.n, self.counts = n, Counts()
        self._scorer = still_scorer()
        held: Any = ShardLeases(_EveryLease(), None, lambda: True)  # type: ignore[arg-type]
        self._tables = schedule_tables(self._scorer, options, settings.node_rules, None, held)
        shards = self._tables.shards
        assert shards is not None
        self._shards = shards
        profiles = assembled_profiles(
            options, OnePolicyForAll(schedule_policy(settings)), self._tables, DryRun(), clock=self._scorer.tables.clock
        )
        core = placing_core(self._scorer, self._tables, profiles, options, clock=self._scorer.tables.clock)
        fill(self._scorer, made)
        self._tables.common.keep_up()
        nominations = PlannedNominations()
        with self._scorer.tables.reading() as cluster:
            nothing: Any = lambda *ignored: False  # noqa: E731
            self._cycle = core.cycle(cluster, preempt=nothing, withdraw=nothing)
            planning = core.cycle(cluster, preempt=nominations, withdraw=nothing, is_plan=True)
        self._sharded = ShardedCycle(
            self._cycle,
            planning,
            nominations,
            shards.ownership,
            shards.responsibility,
            loans=self,
            alone=shards.alone,
            pass_on=self._pass_on,
        )
        self._shards_of = [[one for one in range(_SHARDS) if one % n == number] for number in range(n)]
        self._wanted: list[str] = []

    # Loans

    def want(self, unit: str, nodes: Sequence[str]) -> None:
        """Note the nodes: `_try` runs the unit over all nodes then."""
        self._wanted += nodes

    def served(self, unit: str) -> None:
        """Nothing to return: the nodes were lent for one run."""

    # What happens

    def measure_rooms(self) -> None:
        """What the keepers do every half minute: weights by room, and nodes from full shards to empty ones."""
        with self._scorer.tables.reading() as cluster:
            ownership = self._shards.ownership
            rooms, shards = node_rooms(cluster), ownership.shards()
            of_shards = shard_rooms(rooms, shards, _SHARDS)
            known = dict(enumerate(of_shards.tolist()))
            holders = {one: str(one % self.n) for one in range(_SHARDS)}
            self._shards.responsibility.use(dispatcher(holders, even_rooms(known)))
            rows = np.flatnonzero(cluster.state.alive)
            moves = nodes_to_move(
                known,
                range(_SHARDS),
                rows,
                shards[rows],
                rooms[rows].min(axis=1),
                most_difference=0.1,
                most=20 * self.n,
            )
            moved = [_handed_over(cluster.state.nodes[row], int(shards[row]), to) for row, to in moves]
        for node in moved:
            self._scorer.tables.put(Kind.NODES, node)
        with self._scorer.tables.reading():
            ownership.welcome(nodes={node.name for node in moved})

    def place(self, unit: str, pods: Sequence[PodInfo], *, is_gang: bool = False) -> int:
        """Place a unit; returns how many of its pods have a node at the end."""
        for pod in pods:
            self._scorer.tables.put(Kind.PODS, pod)
        waiting, placed = list(pods), 0
        for _ in range(3 * self.n + 6):
            before = self.counts.passed, len(self._wanted)
            done = self._try(unit, waiting, is_gang=is_gang)
            placed += len(done)
            waiting = [pod for pod in waiting if pod.uid not in done]
            if not waiting or (self.counts.passed, len(self._wanted)) == before:
                break
        if waiting:
            for pod in waiting:
                self._scorer.tables.delete(Kind.PODS, pod)
        return placed

    def quality(self, gangs: int, left: int) -> Quality:
        """Return what the forecast says of the nodes now."""
        with self._scorer.tables.reading() as cluster:
            assert cluster.predicted is not None
            peaks = cluster.predicted.load.highest(CPU).astype(np.float64)
        hot = float((peaks > HOT_SHARE).mean())
        return Quality(float(peaks.std() / peaks.mean()), float(peaks.max()), hot, gangs, left, self.counts)

    def add_group(self, namespace: str, name: str) -> None:
        """A gang that is placed as a whole."""
        gangs = self._tables.gangs
        assert gangs is not None
        with self._scorer.tables.reading():
            gangs.put_group(PodGroupInfo(namespace, name, name, 1, 0.0, minima=Minima(members=_GANG)))

    # Inside

    def _try(self, unit: str, pods: Sequence[PodInfo], *, is_gang: bool) -> set[str]:
        responsibility, ownership = self._shards.responsibility, self._shards.ownership
        done: set[str] = set()
        by_replica: dict[int, list[PodInfo]] = {}
        with self._scorer.tables.changing() as cluster:
            for one in pods:
                pod = cluster.state.pods[one.uid]
                holder = responsibility.holder(pod)
                by_replica.setdefault(0 if holder is None else int(holder), []).append(pod)
            for number, mine in by_replica.items():
                ownership.use(self._shards_of[number])
                popped = Popped(unit, is_gang, tuple(QueuedPodInfo(pod, unit, 0.0) for pod in mine))
                placer = UnitPlacer(self._tables.view, cluster, self._scorer.tables.level()[0], until=_NEVER)
                n_wanted = len(self._wanted)
                decided = self._sharded.run(popped, placer)
                done |= {queued.pod.uid for queued, _ in decided.placed}
                if len(self._wanted) > n_wanted:
                    self.counts.lent += len(self._wanted) - n_wanted
                    left = tuple(queued for queued in popped.pods if queued.pod.uid not in done)
                    with ownership.lifted():
                        decided = self._cycle.run(replace(popped, pods=left), placer)
                    done |= {queued.pod.uid for queued, _ in decided.placed}
        return done

    def _pass_on(self, passed: Sequence[tuple[PodInfo, PassedOn]]) -> None:
        """Write it into the tables, as the watch would."""
        self.counts.passed += len(passed)
        with self._scorer.tables.changing() as cluster:
            for pod, said in passed:
                cluster.put_pod(replace(pod, annotations={**pod.annotations, PASSED_ON: said.text}))


def _handed_over(node: NodeInfo | None, source: int, to: int) -> NodeInfo:
    """Return the node as the patch of its owner leaves it."""
    assert node is not None
    said = json.loads(handing_over("", HandedOver(source, to, "listed")))["metadata"]
    annotations = {key: text for key, text in said["annotations"].items() if text is not None}
    return replace(node, labels={**node.labels, **said["labels"]}, annotations=annotations)


def measure(made: LargeCluster, n: int, per_node: float, seed: int) -> Quality:
    """Waves of services, then gangs until three in a row do not fit."""
    replicas = Replicas(made, n)
    rng = np.random.default_rng(seed)
    left, wave = 0, 0
    while wave * _WAVE * _SERVICES < per_node * len(made.nodes):
        replicas.measure_rooms()
        pods = waiting_pods(made, _WAVE * _SERVICES, _SERVICES, f"wave-{wave}")
        for service in rng.permutation(_SERVICES).tolist():
            of_service = pods[service * _WAVE : (service + 1) * _WAVE]
            unit = f"owner:{of_service[0].namespace}/{of_service[0].owner_uid}-{wave}"
            left += _WAVE - replicas.place(unit, of_service)
        wave += 1
    gangs = failed = number = 0
    quality = replicas.quality(0, left)
    while failed < 3:
        if number % 50 == 0:
            replicas.measure_rooms()
        pods = waiting_pods(made, _GANG, 1, f"gang-{number}")
        name = f"gang-{number}"
        replicas.add_group(pods[0].namespace, name)
        big = {"cpu": 6.0, "memory": 2.0**30, "pods": 1.0}
        members = [
            replace(pod, labels={GROUP_LABEL: name}, requests=big, nonzero_requests=(6.0, 2.0**30)) for pod in pods
        ]
        n_placed = replicas.place(f"{pods[0].namespace}/{name}", members, is_gang=True)
        assert n_placed in (0, _GANG), f"{n_placed} of a gang of {_GANG} were placed"
        gangs += n_placed == _GANG
        failed = 0 if n_placed else failed + 1
        number += 1
    return replace(quality, gangs=gangs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each size."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", default="5000,20000")
    parser.add_argument("--replicas", default="1,2,4,8")
    parser.add_argument("--per-node", type=float, default=4.0, help="pods that are placed")
    parser.add_argument("--seeds", type=int, default=3, help="orders in which the services come")
    asked = parser.parse_args(arguments)
    holds = True
    for n_nodes in numbers(asked.nodes):
        made = cluster_with_zones(n_nodes, 4.0, _SERVICES)
        found = {
            n: [measure(made, n, asked.per_node, seed) for seed in range(asked.seeds)] for n in numbers(asked.replicas)
        }
        print(f"{n_nodes} nodes, {asked.seeds} seeds, {machine_load()}")
        heads = ("beside one", 12), ("highest", 9), ("hot", 8), ("gangs", 18), ("left", 6), ("passed", 8), ("lent", 7)
        print(f"  {'replicas':10}{'CV':>8}" + "".join(f"{head:>{width}}" for head, width in heads))
        one = found[min(found)]
        for n, rounds in found.items():
            worse = median(ours.variation / single.variation for ours, single in zip(rounds, one, strict=True))
            gangs = [quality.gangs for quality in rounds]
            variation, highest = median(q.variation for q in rounds), median(q.highest for q in rounds)
            print(
                f"  {n:<10}{variation:8.4f}{worse:12.4f}{highest:9.1%}"
                f"{median(q.hot for q in rounds):8.2%}{gangs!s:>18}{sum(q.left for q in rounds):6}"
                f"{sum(q.counts.passed for q in rounds):8}{sum(q.counts.lent for q in rounds):7}",
                flush=True,
            )
            holds = holds and worse <= _MOST_WORSE and gangs >= [single.gangs for single in one]
        print(
            f"  a CV within {_MOST_WORSE - 1:.0%} and as many gangs as a single decider are wanted: {outcome(holds)}\n"
        )
    finish(holds)


if __name__ == "__main__":
    main()
