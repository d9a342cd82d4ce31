"""What several replicas cost and reach without an API server: each a process of its own, each follows all pods.

    python -m benchmarks.shards_in_memory [--nodes 5000] [--pods 5000] [--replicas 1,2,4,8] [--rounds 3]

Every replica is the loop of benchmarks/schedule_in_memory with the nodes of its own shards. Its own pods wait in its
queue when the clock starts. Of the others' pods it gets what the watch says while it places its own: a line for each
that is created, and one for each that another replica has bound. The lines are as long as those of an API server, and
are decoded and put into the tables as far as the replica follows them (scheduler/shards/foreign_pods.py); the first one
leads; no pod of these needs the leader. What it takes to get the lines from process to process is measured by its
threads, and left out of the CPU. Pods are of 200 services.

CPU is in microseconds per pod, of all replicas together; pods/s is that of the slowest replica: from the common start
to the moment when it has placed its own and followed all. More replicas than cores only say what the CPU is. Ends with
status 1 where a limit does not hold.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, Final

from benchmarks.harness import command_line, finish, in_turn, machine_load, numbers, outcome, spread
from benchmarks.schedule_answered import AnsweredLoop, cluster_with_zones, waiting_pods
from kube.decoding.decoding import WATCHED, Kind
from kube.decoding.watched_kinds import decode_watch_line
from kube.objects.objects import PodInfo
from scheduler.shard_tables import ShardLeases
from scheduler.shards.assignment import dispatcher
from testing.watch_lines import pod_line

_SERVICES: Final = 200
_SHARDS: Final = 16
SHARED: Final = {"leader_election": {"enabled": True}, "shards": {"enabled": True, "count": _SHARDS}}
_NODE: Final = "a-node-whose-name-is-put-in-later"
_MOST_GROWTH: Final = 1.2
_LEAST_SPEEDUP: Final = 1.7
_LONGEST: Final = 300.0


@dataclass(frozen=True, slots=True)
class Cost:
    """seconds: of the slowest replica; cpu: seconds of all together."""

    seconds: float
    cpu: float


class Held:
    """Stands for the Leases of one replica."""

    def __init__(self, me: int, n: int) -> None:
        self.identity, self.mine = str(me), {one for one in range(_SHARDS) if one % n == me}

    def holds(self, name: str) -> bool:
        return int(name.rsplit("-", 1)[1]) in self.mine


def replica(me: int, n: int, n_nodes: int, n_pods: int, hub: Connection) -> None:
    """One process: builds its cluster, places its pods, follows the others'."""
    made = cluster_with_zones(n_nodes, 4.0, _SERVICES)
    pods = waiting_pods(made, n_pods, _SERVICES, "batch")
    created = {pod.uid: pod_line("ADDED", pod, 1) for pod in pods}
    bound = {pod.uid: pod_line("MODIFIED", pod, 2, node=_NODE) for pod in pods}
    news: list[tuple[str, str]] = []
    transport: list[float] = []
    held = Held(me, n)
    options = SHARED if n > 1 else {}
    leases: Any = ShardLeases(held, None, lambda: me == 0) if n > 1 else None  # type: ignore[arg-type]
    with AnsweredLoop(made, options, held=leases, on_bound=lambda pod, node: news.append((pod.uid, node))) as loop:
        shards, tables = loop.tables.shards, loop.scorer.tables
        mine: list[PodInfo] = pods
        with tables.reading():
            if shards is not None:
                shards.ownership.use(held.mine)
                holders = {one: str(one % n) for one in range(_SHARDS)}
                shards.responsibility.use(dispatcher(holders, {}))
                mine = [pod for pod in pods if shards.responsibility.is_mine(pod)]
        mine_uids = {pod.uid for pod in mine}
        others = [created[pod.uid] for pod in pods if pod.uid not in mine_uids]
        followed = threading.Event()
        following = threading.Thread(target=_follow, args=(loop, hub, others, bound, followed, transport), daemon=True)
        hub.send("ready")
        _go.wait(_LONGEST)
        began, cpu = time.perf_counter(), time.process_time()
        following.start()
        sending = threading.Thread(target=_send, args=(hub, news, len(mine), transport), daemon=True)
        sending.start()
        loop.schedule(mine)
        sending.join(_LONGEST)
        followed.wait(_LONGEST)
        hub.send((time.perf_counter() - began, time.process_time() - cpu - sum(transport), followed.is_set()))


_go: Any = None


def _start(go: Any, *arguments: Any) -> None:
    global _go
    _go = go
    replica(*arguments)


def _send(hub: Connection, news: list[tuple[str, str]], n: int, transport: list[float]) -> None:
    """Tell the others what is bound, every 20 ms."""
    sent, began = 0, time.thread_time()
    while sent < n:
        time.sleep(0.02)
        if batch := news[sent:]:
            sent += len(batch)
            hub.send(batch)
    transport.append(time.thread_time() - began)


def _follow(
    loop: AnsweredLoop,
    hub: Connection,
    others: Sequence[bytes],
    bound: dict[str, bytes],
    followed: threading.Event,
    transport: list[float],
) -> None:
    """What the thread of the watch does."""
    for line in others:
        follow(loop, line)
    place, seen = _NODE.encode(), 0
    while seen < len(others):
        began = time.thread_time()
        lines = [bound[uid].replace(place, node.encode()) for uid, node in hub.recv()]
        transport.append(time.thread_time() - began)
        for line in lines:
            follow(loop, line)
        seen += len(lines)
    followed.set()


def follow(loop: AnsweredLoop, line: bytes) -> None:
    """Do what the watch does with a line."""
    tables = loop.scorer.tables
    if loop.tables.shards is None or not loop.tables.shards.foreign.is_foreign(line):
        event = decode_watch_line(WATCHED[Kind.PODS], line)
        assert event.object is not None
        tables.put(Kind.PODS, event.object)


def cost_of(n: int, n_nodes: int, n_pods: int) -> Cost:
    """One round with as many replicas."""
    context = multiprocessing.get_context("spawn")
    go = context.Event()
    hubs, processes = [], []
    for me in range(n):
        ours, theirs = context.Pipe()
        process = context.Process(target=_start, args=(go, me, n, n_nodes, n_pods, theirs), daemon=True)
        process.start()
        theirs.close()
        hubs.append(ours)
        processes.append(process)
    try:
        for hub in hubs:
            if not hub.poll(_LONGEST) or hub.recv() != "ready":
                raise TimeoutError("a replica did not start")
        go.set()
        results: dict[int, tuple[float, float, bool]] = {}
        deadline = time.monotonic() + _LONGEST
        while len(results) < n and time.monotonic() < deadline:
            for me, hub in enumerate(hubs):
                while me not in results and hub.poll(0.001):
                    said = hub.recv()
                    if isinstance(said, tuple):
                        results[me] = said
                        continue
                    for other, to in enumerate(hubs):
                        if other != me:
                            to.send(said)
        if len(results) < n or not all(followed for _, _, followed in results.values()):
            raise TimeoutError(f"{len(results)} of {n} replicas were done in {_LONGEST:.0f} s")
    finally:
        for process in processes:
            process.kill()
            process.join()
    return Cost(max(seconds for seconds, _, _ in results.values()), sum(cpu for _, cpu, _ in results.values()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print CPU and pods/s for each number of replicas."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--replicas", default="1,2,4,8")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    counts = numbers(asked.replicas)
    found = in_turn(counts, asked.rounds, lambda n, number: cost_of(n, asked.nodes, asked.pods))
    print(f"{asked.nodes} nodes, {asked.rounds} rounds of {asked.pods} pods, {machine_load()}")
    heads = ("CPU us per pod", 16), ("beside one", 12), ("pods/s", 9), ("least to most", 18), ("beside one", 12)
    print(f"  {'replicas':10}" + "".join(f"{head:>{width}}" for head, width in heads))
    one, holds = found[min(counts)], True
    for n, rounds in found.items():
        growth = median(ours.cpu / single.cpu for ours, single in zip(rounds, one, strict=True))
        speedup = median(single.seconds / ours.seconds for ours, single in zip(rounds, one, strict=True))
        rates = [asked.pods / cost.seconds for cost in rounds]
        cpu = 1e6 * median(cost.cpu for cost in rounds) / asked.pods
        print(f"  {n:<10}{cpu:16.0f}{growth:12.2f}{median(rates):9.0f} {spread(rates):>17}{speedup:12.2f}", flush=True)
        holds = holds and growth <= _MOST_GROWTH and (n != 2 or speedup >= _LEAST_SPEEDUP)
    print(
        f"  at most {_MOST_GROWTH} times the CPU of one, and at least {_LEAST_SPEEDUP} times its pods/s with two, are "
        f"wanted: {outcome(holds)}"
    )
    finish(holds)


if __name__ == "__main__":
    main()
