"""GPU tenants on a production trace: does each get its min, and what do quotas cost in allocated cards?

    python -m benchmarks.tenants_gpu --traces DIR [--seeds 3]

Nodes and pods are those of openb (gpu_packing_trace.py), by the GPU profile of our own loop, which writes nothing (the
dry loop): filters, cards one by one, fragmentation, gangs, preemption. Pods go to five tenants at random, by shares of
30, 25, 20, 15 and 10 %, and each tenant is guaranteed that share of 90 % of the cards: no policy fills them all, since
pods leave parts of cards that fit no other. The rest is lent (`pool: nodes`). Pods come until 130 % of the cards are
asked for. The first tenant comes last: the others have borrowed its cards by then. Evicted pods are made anew and wait.

    no quotas   the same pods in the same order: who comes first has the cards
    quotas      lent, and taken back

Shown: percent of the cards allocated, and for each tenant what it has and asked for, in percent of its min. A tenant
gets its min unless less than that was asked for, or none of its waiting pods fits: `left` is how many pods of it wait
although the quota admits them, as those that ask for eight cards of a named type on one node. Ends with status 1 where
quotas cost more than 0.3 points of allocation, or a tenant has less than 99 % of its min and of what it asked for.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Final

import numpy as np

from benchmarks.gpu_packing_trace import Trace, arrivals, find_traces, read_trace
from benchmarks.gpu_throughput import cluster_of, pods_of
from benchmarks.harness import command_line, finish, print_aims
from benchmarks.schedule_answered import fill, still_scorer
from cluster.file_session import FileSession
from forecast_scheduler.settings.document import Settings, with_options
from forecast_scheduler.settings.feature_options import schedule_policy
from kube.decoding.decoding import Kind
from kube.objects.objects import PodInfo
from placement.policies.policy import OnePolicyForAll
from profiles.dry_loop import DryLoop
from profiles.schedule_tables import schedule_tables
from tenants.elastic_quota import ElasticQuota
from tenants.quota_tree import CARD_UNITS
from testing.clusters.large_cluster import large_cluster

SHARES: Final = (0.30, 0.25, 0.20, 0.15, 0.10)
GUARANTEED: Final = 0.9
"""Share of the cards that all tenants together are guaranteed."""

FIRST_SEED: Final = 42
MOST_LOST: Final = 0.3
"""Points of allocation that quotas may cost at most."""

LEAST_OF_MIN: Final = 0.99
_NAME: Final = "forecast-scheduler"
_CARDS: Final = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Outcome:
    """allocated: percent of the cards; used, asked, least: cards by tenant; left: pods that wait and are admitted."""

    allocated: float
    used: tuple[float, ...]
    asked: tuple[float, ...]
    least: tuple[float, ...]
    left: tuple[int, ...]
    evicted: int
    seconds: float


class GpuCluster:
    """The dry loop over the nodes of the trace. Pods that it places are bound; those it evicts wait again."""

    def __init__(self, trace: Trace, quotas: Sequence[ElasticQuota]) -> None:
        options = {
            "domain": "",
            "scheduler_name": "another",
            "profiles": ["gpu"],
            "gpu": {"scheduler_name": _NAME, "idle_cpu": {"plain_pods": "anywhere"}, "tide": {"enabled": False}},
            "preemption": {"protect_started": 0},
            "tenants": {"by_forecast": False, "pool": "nodes"},
        }
        settings = with_options(Settings(), {"schedule": options})
        self.scorer = still_scorer()
        self.tables = schedule_tables(self.scorer, settings.schedule, settings.node_rules)
        policy = OnePolicyForAll(schedule_policy(settings))
        self._loop = DryLoop(settings.schedule, self.scorer, self.tables, policy, FileSession())
        made = cluster_of(trace)
        assert self.tables.tenants is not None
        self.ledger = self.tables.tenants.quotas.ledger
        self.tables.tenants.sink.replace(list(quotas))
        fill(self.scorer, made)
        self.n_evicted = 0

    def come(self, pods: Sequence[PodInfo]) -> None:
        """Place these; whom they evict waits again, until nothing changes any more."""
        tables = self.scorer.tables
        while pods:
            for pod in pods:
                tables.put(Kind.PODS, pod)
            before = self.pods()
            self._loop.look_around()
            self._loop.run()
            after = self.pods()
            with tables.reading() as cluster:
                placed = [cluster.state.pods[uid] for uid in cluster.assumed.uids()]
            for pod in placed:
                annotations = {**pod.annotations, **self.tables.rules.annotations_of(pod, pod.node)}
                tables.put(Kind.PODS, replace(pod, started=1.0, annotations=annotations))
            gone = [pod for uid, pod in before.items() if uid not in after]
            self.n_evicted += len(gone)
            pods = [replace(pod, uid=f"{pod.uid}+", node="", started=None) for pod in gone]

    def pods(self) -> dict[str, PodInfo]:
        """Return all pods that are there, by UID."""
        with self.scorer.tables.reading() as cluster:
            return dict(cluster.state.pods)


def run(trace: Trace, seed: int, *, has_quotas: bool) -> Outcome:
    """One seed of the default pods."""
    rng, n_cards = np.random.default_rng(seed), int(trace.nodes.n_devices.sum())
    shapes = arrivals(trace.pods["default"], CARD_UNITS * n_cards, rng)
    names = [f"tenant-{number}" for number in range(len(SHARES))]
    owner = rng.choice(len(SHARES), len(shapes), p=SHARES)
    least = tuple(float(int(share * GUARANTEED * n_cards)) for share in SHARES)
    quotas = [ElasticQuota(name, name, guaranteed={_CARDS: cards}) for name, cards in zip(names, least, strict=True)]
    world = GpuCluster(trace, quotas if has_quotas else ())
    like = large_cluster(3, 3, 1, first_day=datetime.now(UTC).date()).pods[0]
    pods = [
        replace(pod, namespace=names[number], created=0.0)
        for pod, number in zip(pods_of(shapes, like, f"pod-{seed}"), owner.tolist(), strict=True)
    ]
    began = time.perf_counter()
    world.come([pod for pod in pods if pod.namespace != names[0]])
    world.come([pod for pod in pods if pod.namespace == names[0]])
    seconds = time.perf_counter() - began
    asked_of = {pod.uid: shape.asked_milli / CARD_UNITS for pod, shape in zip(pods, shapes, strict=True)}
    used, asked = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    left = dict.fromkeys(names, 0)
    assert world.tables.tenants is not None
    denied = world.tables.tenants.quotas.denial
    for pod in world.pods().values():
        cards = asked_of[pod.uid.rstrip("+")]
        asked[pod.namespace] += cards
        used[pod.namespace] += cards if pod.node else 0.0
        left[pod.namespace] += not pod.node and cards > 0 and denied(pod) is None
    return Outcome(
        100 * sum(used.values()) / n_cards,
        tuple(used.values()),
        tuple(asked.values()),
        least,
        tuple(left.values()),
        world.n_evicted,
        seconds,
    )


def main() -> None:
    """Run all seeds and print what each tenant has."""
    parser = command_line(__doc__)
    parser.add_argument("--traces", type=Path, help="directory of the traces; openb/ is looked for in it")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    trace = read_trace(find_traces(options.traces))
    print(f"{'seed':>4} {'':10} {'allocated':>9} {'evicted':>8} {'s':>5}   has / asked for, percent of min (left)")
    found: dict[str, list[Outcome]] = {"no quotas": [], "quotas": []}
    for seed in range(FIRST_SEED, FIRST_SEED + options.seeds):
        for name, outcomes in found.items():
            one = run(trace, seed, has_quotas=name == "quotas")
            outcomes.append(one)
            each = (
                f"{100 * used / least:.0f} / {100 * asked / least:.0f} ({left})"
                for used, asked, least, left in zip(one.used, one.asked, one.least, one.left, strict=True)
            )
            print(
                f"{seed:4} {name:10} {one.allocated:8.2f}% {one.evicted:8} {one.seconds:5.0f}   {', '.join(each)}",
                flush=True,
            )
    lost = mean(one.allocated for one in found["no quotas"]) - mean(one.allocated for one in found["quotas"])
    worst = min(
        used / min(asked, least)
        for one in found["quotas"]
        for used, asked, least in zip(one.used, one.asked, one.least, strict=True)
    )
    finish(
        print_aims(
            [
                (f"quotas cost at most {MOST_LOST} points of allocation: {lost:.2f}", lost <= MOST_LOST),
                (f"each tenant has its min, or what it asked for: {worst:.1%} at worst", worst >= LEAST_OF_MIN),
            ]
        )
    )


if __name__ == "__main__":
    main()
