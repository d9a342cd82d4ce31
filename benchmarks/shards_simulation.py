"""A simulation of many replicas on a very large cluster: pods/s, latency, conflicts, passes, with measured costs.

    python -m benchmarks.shards_simulation [--nodes 100000] [--replicas 1,5,10,20] [--seconds 120] [--api-rate 14000]

First the costs of this machine are measured in this process: CPU to decide about and bind a pod of 200 services on the
nodes of one replica (--nodes / replicas, at most 20,000 are built), and CPU of a replica that does not lead to follow a
plain pod that another one placed, two events of the watch. Then units arrive as a Poisson process at 70 % of what all
replicas together can place, and each replica serves its own by turns. Sizes of units are log-normal, 5 % are gangs.
Weights and holders are the product's own (scheduler/shards/assignment.py), worked out from Leases that each replica
reads once a second at a moment of its own: for so long two may try the same unit, which counts as a conflict, or none
does. Room goes down as pods are placed; shards that are full pass units on. After a third of the time one replica dies;
others take its shards 12 s later, and a new one gets them back after 30 s.

The simulation knows no API server but a limit of bindings a second, no watch lag but 50 ms, and one core per replica.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.harness import command_line, finish, machine_load, numbers, quantile
from benchmarks.schedule_answered import AnsweredLoop, cluster_with_zones, waiting_pods
from benchmarks.shards_in_memory import SHARED, Held, follow
from scheduler.shard_tables import ShardLeases
from scheduler.shards.assignment import Dispatcher, dispatcher, even_rooms
from testing.watch_lines import pod_line

_SERVICES: Final = 200
_MOST_BUILT: Final = 20_000
_LOAD: Final = 0.7
_DEAD_SECONDS: Final = 12.0
_AWAY_SECONDS: Final = 30.0
_WATCH_SECONDS: Final = 0.05
_PODS_PER_NODE: Final = 30
_GANGS: Final = 0.05
_BATCH: Final = 1024


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of CPU. pod: to decide about and bind one; follow: one that another replica placed."""

    pod: float
    follow: float


def measured_costs(n_nodes: int, n_pods: int) -> Costs:
    """Of this machine, medians of three rounds."""
    made = cluster_with_zones(n_nodes, 4.0, _SERVICES)
    decide, followed = [], []
    with AnsweredLoop(made) as loop:
        for number in range(3):
            pods = waiting_pods(made, n_pods, _SERVICES, f"own-{number}")
            decide.append(loop.schedule(pods).cpu / n_pods)
            loop.remove(pods)
    held: Any = ShardLeases(Held(1, 2), None, lambda: False)  # type: ignore[arg-type]
    with AnsweredLoop(made, SHARED, held=held) as loop:
        shards, names = loop.tables.shards, [node.name for node in made.nodes]
        assert shards is not None
        with loop.scorer.tables.reading():
            shards.ownership.use(held.leases.mine)
            # Every unit is the other one's.
            shards.responsibility.use(dispatcher(dict.fromkeys(range(0, 16, 2), "0"), {}))
            others = [name for name in names if shards.ownership.why_not(name)]
        for number in range(3):
            pods = waiting_pods(made, n_pods, _SERVICES, f"other-{number}")
            lines = [pod_line("ADDED", pod, 1) for pod in pods]
            lines += [pod_line("MODIFIED", pod, 2, node=others[at % len(others)]) for at, pod in enumerate(pods)]
            began = time.process_time()
            for line in lines:
                follow(loop, line)
            followed.append((time.process_time() - began) / n_pods)
    return Costs(median(decide), median(followed))


@dataclass(slots=True)
class _Unit:
    """tries: of replicas, in vain; to: the replica that the leader named, -1 = whose turn it is"""

    key: str
    pods: int
    is_gang: bool
    arrived: float
    tries: int = 0
    to: int = -1


@dataclass(slots=True)
class _Replica:
    queue: list[_Unit] = field(default_factory=list)
    free_at: float = 0.0
    is_alive: bool = True


@dataclass(slots=True)
class Outcome:
    """Seconds of pods from their creation to their binding; the rest are counts."""

    waits: list[float] = field(default_factory=list)
    of_pods: list[int] = field(default_factory=list)
    n_units: int = 0
    conflicts: int = 0
    passed: int = 0
    planned: int = 0
    loans: int = 0
    unplaced: int = 0


class Simulation:
    """One run. Times are seconds since its begin."""

    def __init__(self, costs: Costs, n_nodes: int, n: int, seconds: float, api_rate: float, seed: int) -> None:
        self._costs, self._n, self._seconds, self._api_rate = costs, n, seconds, api_rate
        self._rng = np.random.default_rng(seed)
        self._shards = 4 * n
        # What N cores can do when each follows all pods and decides about its own.
        self.most = min(api_rate, n / (costs.pod + (n - 1) * costs.follow))
        self.rate = _LOAD * self.most
        demanded = self.rate * seconds
        uneven = self._rng.uniform(0.7, 1.3, self._shards)
        free = min(1.15 * demanded, n_nodes * _PODS_PER_NODE)
        self._room = np.floor(free * uneven / uneven.sum())
        self._holder = {shard: shard % n for shard in range(self._shards)}
        self._replicas = [_Replica() for _ in range(n)]
        self._reads = self._rng.uniform(0, 1, n)
        self._published: list[tuple[float, Dispatcher]] = []
        self._api_free = 0.0
        self._events: list[tuple[float, int, str, object]] = []
        self._n_events = 0
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Until all that came within the time is placed, or as long again has passed."""
        now = 0.0
        self._publish(-10.0)
        while now < self._seconds:
            self._at(now, "unit", None)
            now += float(self._rng.exponential(self._mean_unit() / self.rate))
        for at in np.arange(0.0, 2 * self._seconds, 2.5):
            self._at(float(at), "publish", None)
        if self._n > 1:
            self._at(self._seconds / 3, "die", 1)
            self._at(self._seconds / 3 + _DEAD_SECONDS, "take over", 1)
            self._at(self._seconds / 3 + _AWAY_SECONDS, "join", 1)
        while self._events:
            now, _, what, about = heapq.heappop(self._events)
            if now > 2 * self._seconds:
                break
            self._happens(now, what, about)
        left = [unit for one in self._replicas for unit in one.queue]
        self.outcome.unplaced += sum(unit.pods for unit in left)
        return self.outcome

    # Inside

    def _mean_unit(self) -> float:
        return (1 - _GANGS) * math.exp(1.5 + 0.5) + _GANGS * 32

    def _at(self, when: float, what: str, about: object) -> None:
        self._n_events += 1
        heapq.heappush(self._events, (when, self._n_events, what, about))

    def _happens(self, now: float, what: str, about: object) -> None:
        if what == "unit":
            self._arrive(now)
        elif what == "try" and isinstance(about, _Unit):
            self._dispatch(now, about)
        elif what == "serve" and isinstance(about, int):
            self._serve(now, about)
        elif what == "publish":
            self._publish(now)
        elif what == "die" and isinstance(about, int):
            self._replicas[about].is_alive = False
        elif what == "take over" and isinstance(about, int):
            alive = [number for number, one in enumerate(self._replicas) if one.is_alive]
            mine = [shard for shard, holder in self._holder.items() if holder == about]
            for at, shard in enumerate(mine):
                self._holder[shard] = alive[at % len(alive)]
            self._publish(now)
            for unit in self._replicas[about].queue:
                self._at(now + 1.0, "try", unit)
            self._replicas[about].queue = []
        elif what == "join" and isinstance(about, int):
            self._replicas[about].is_alive = True
            self._holder = {shard: shard % self._n for shard in self._holder}
            self._publish(now)

    def _publish(self, now: float) -> None:
        rooms = even_rooms({shard: float(room) for shard, room in enumerate(self._room)})
        new = dispatcher({shard: str(holder) for shard, holder in self._holder.items()}, rooms)
        if not self._published or new.shards != self._published[-1][1].shards:
            self._published.append((now, new))

    def _view(self, replica: int, now: float) -> Dispatcher:
        """What a replica knows: the last that was there when it read the Leases."""
        read = math.floor(now - self._reads[replica]) + self._reads[replica]
        for when, one in reversed(self._published):
            if when <= read:
                return one
        return self._published[0][1]

    def _arrive(self, now: float) -> None:
        is_gang = bool(self._rng.random() < _GANGS)
        pods = int(self._rng.integers(16, 49)) if is_gang else max(1, int(self._rng.lognormal(1.5, 1.0)))
        self.outcome.n_units += 1
        self._dispatch(now + _WATCH_SECONDS, _Unit(f"unit-{self.outcome.n_units}", pods, is_gang, now))

    def _dispatch(self, now: float, unit: _Unit) -> None:
        if unit.to >= 0:
            deciders = [unit.to]
        else:
            views = {id(view): view for _, view in self._published[-3:]}
            candidates = {
                int(view.in_order(unit.key)[min(unit.tries, 1)]) for view in views.values() if self._n > 1
            } or {0}
            deciders = [
                one
                for one in sorted(candidates)
                if self._n == 1 or int(self._view(one, now).in_order(unit.key)[min(unit.tries, 1)]) == one
            ]
        if not deciders:  # every replica takes it for another's, until the next one reads
            self._at(now + 0.1, "try", unit)
            return
        self.outcome.conflicts += len(deciders) - 1
        for extra in deciders[1:]:
            one = self._replicas[extra]
            one.free_at = max(one.free_at, now) + unit.pods * self._costs.pod
        replica = self._replicas[deciders[0]]
        replica.queue.append(unit)
        if replica.is_alive:
            self._at(max(now, replica.free_at), "serve", deciders[0])

    def _serve(self, now: float, number: int) -> None:
        replica = self._replicas[number]
        if not replica.queue or not replica.is_alive or replica.free_at > now:
            return
        unit = replica.queue.pop(0)
        mine = [shard for shard, holder in self._holder.items() if holder == number]
        room = int(self._room[mine].sum())
        fits = unit.pods if unit.pods <= room else (0 if unit.is_gang else room)
        # Following what the others place takes its share of the core.
        share = max(0.05, 1.0 - self.rate * (1 - 1 / self._n) * self._costs.follow)
        replica.free_at = now + max(fits, 1) * self._costs.pod / share
        left = fits
        for shard in mine:
            taken = min(left, int(self._room[shard]))
            self._room[shard] -= taken
            left -= taken
        if fits:
            self._api_free = max(self._api_free, replica.free_at) + fits / self._api_rate
            self.outcome.waits.append(self._api_free - unit.arrived)
            self.outcome.of_pods.append(fits)
        if fits < unit.pods:
            self._pass(replica.free_at, unit, unit.pods - fits)
        self._at(replica.free_at, "serve", number)

    def _pass(self, now: float, unit: _Unit, pods: int) -> None:
        self.outcome.passed += 1
        rest = _Unit(unit.key, pods, unit.is_gang, unit.arrived, unit.tries + 1)
        if rest.tries > 1:  # the leader looks at the nodes of all
            self.outcome.planned += 1
            rooms = [
                sum(self._room[shard] for shard, holder in self._holder.items() if holder == number)
                for number in range(self._n)
            ]
            rest.to = int(np.argmax(rooms))
            if not sum(rooms):
                self.outcome.unplaced += pods
                return
            if rest.is_gang and rooms[rest.to] < pods:
                self.outcome.loans += 1
                now += 0.5
        self._at(now + 2 * _WATCH_SECONDS, "try", rest)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print rates, waits and counts for each number of replicas."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--replicas", default="1,5,10,20")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--api-rate", type=float, default=14_000.0, help="bindings a second at most")
    parser.add_argument("--pods", type=int, default=2000, help="of a round in which costs are measured")
    asked = parser.parse_args(arguments)
    costs_and_rates = ("decide us", 11), ("follow us", 11), ("at most/s", 11), ("offered/s", 11), ("placed/s", 10)
    counts = ("conflicts", 11), ("passed", 9), ("planned", 9), ("loans", 7), ("left", 7)
    heads = *costs_and_rates, ("p50 s", 8), ("p99 s", 8), *counts
    print(f"  {'replicas':10}" + "".join(f"{head:>{width}}" for head, width in heads))
    for n in numbers(asked.replicas):
        costs = measured_costs(min(asked.nodes // n, _MOST_BUILT), asked.pods)
        simulation = Simulation(costs, asked.nodes, n, asked.seconds, asked.api_rate, seed=0)
        found = simulation.run()
        waits = np.repeat(found.waits, found.of_pods).tolist()
        print(
            f"  {n:<10}{1e6 * costs.pod:11.0f}{1e6 * costs.follow:11.0f}{simulation.most:11.0f}{simulation.rate:11.0f}"
            f"{len(waits) / asked.seconds:10.0f}{median(waits):8.2f}{quantile(waits, 0.99):8.2f}"
            f"{found.conflicts / found.n_units:11.2%}{found.passed / found.n_units:9.2%}"
            f"{found.planned / found.n_units:9.2%}{found.loans:7}{found.unplaced:7}",
            flush=True,
        )
    print(f"\n  shares are of the units; {machine_load()}")
    finish(True)


if __name__ == "__main__":
    main()
