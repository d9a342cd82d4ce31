"""What quotas cost: decisions of our own loop with 1,000 tenants and 100,000 pods, and of the same loop without quotas.

    python -m benchmarks.tenants_scale [--nodes 5000] [--sitting 20] [--tenants 1000] [--pods 5000] [--rounds 5]
    python -m benchmarks.tenants_scale --changes [--nodes 5000] [--sitting 20] [--tenants 1000] [--rounds 5]

The loop of `forecast-scheduler schedule` in memory (schedule_answered.py). Each tenant has a namespace of two services,
and a quota: its min is 0.7 to 1.6 times what its pods request, so that a third of the tenants borrow. The pods that
come are of all tenants, those of a tenant one after the other.

    no quotas   no ElasticQuota is there
    quotas      they are heeded; pods go by priority and age
    fair        and tenants wait in their queue, in the order of their shares

Each configuration runs in every round. Shown are CPU microseconds of the whole process per pod, medians over the
rounds, and the median of the rounds' ratios. Ends with status 1 where the ratio is above 1.1.

With --changes: what a change of one quota costs, as the watch hands it over, with honest quotas and with 1,000 more
that name 40 resources each, which nobody else names. Shown are milliseconds in all, and of CPU for which the lock of
the tables was held at a time. Ends with status 1 where that is above 100 ms.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.harness import command_line, finish, in_turn, machine_load, median_ratio, print_aims, spread
from benchmarks.schedule_answered import AnsweredLoop, Round, cluster_with_zones, fill, still_scorer, waiting_pods
from cluster.assuming_cluster import AssumingCluster
from forecast_scheduler.settings.document import Settings
from profiles.schedule_tables import schedule_tables
from tenants.elastic_quota import ElasticQuota
from tenants.quotas import QuotaSink
from testing.clusters.large_cluster import LargeCluster

_CONFIGURATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "no quotas": {"fair": False},
    "quotas": {"fair": False},
    "fair": {"fair": True},
}
_SERVICES_PER_TENANT: Final = 2
_MOST_RATIO: Final = 1.1
_LONGEST_LOCK_SECONDS: Final = 0.1
_HOSTILE: Final = 1000
_RESOURCES_OF_ONE: Final = 40


def quotas_of(made: LargeCluster, further: float, seed: int = 0) -> list[ElasticQuota]:
    """One for each namespace. further: pods that come to each of them, on average."""
    rng = np.random.default_rng(seed)
    used: dict[str, dict[str, float]] = {}
    n_pods: dict[str, int] = {}
    for pod in made.pods:
        amounts = used.setdefault(pod.namespace, {"cpu": 0.0, "memory": 0.0})
        n_pods[pod.namespace] = n_pods.get(pod.namespace, 0) + 1
        for resource in amounts:
            amounts[resource] += pod.requests.get(resource, 0.0)
    found = []
    for namespace, amounts in used.items():
        factor = rng.uniform(0.7, 1.6) * (1 + further / n_pods[namespace])
        least = {resource: math.ceil(factor * amount * 1000) / 1000 for resource, amount in amounts.items()}
        found.append(ElasticQuota(namespace, namespace, guaranteed=least))
    return found


@contextmanager
def loops(made: LargeCluster, quotas: Sequence[ElasticQuota]) -> Iterator[dict[str, AnsweredLoop]]:
    """One for each configuration."""
    with ExitStack() as stack:
        found = {}
        for name, tenants in _CONFIGURATIONS.items():
            loop = found[name] = AnsweredLoop(made, {"tenants": dict(tenants)})
            assert loop.tables.tenants is not None
            loop.tables.tenants.sink.replace([] if name == "no quotas" else list(quotas))
            stack.enter_context(loop)
        yield found


class _LockTimes:
    """A way to the tables that notes how much CPU was used while their lock was held: other work here is not ours.

    Nor are collections of garbage, which stop all threads with the lock and without it.
    """

    def __init__(self, reading: Callable[[], AbstractContextManager[AssumingCluster]]) -> None:
        self._reading, self.longest = reading, 0.0
        self._collecting, self._began = 0.0, 0.0
        gc.callbacks.append(self._collects)

    @contextmanager
    def __call__(self) -> Iterator[AssumingCluster]:
        with self._reading() as cluster:
            began = time.thread_time() - self._collecting
            yield cluster
            self.longest = max(self.longest, time.thread_time() - self._collecting - began)

    def _collects(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self._collecting += time.thread_time() - self._began


def hostile_quotas(n_quotas: int = _HOSTILE, n_resources: int = _RESOURCES_OF_ONE) -> list[ElasticQuota]:
    """Each in a namespace of its own, and each names resources that no other quota names."""
    return [
        ElasticQuota(f"h{at}", "q", guaranteed={f"example.com/r{at}-{n}": 1.0 for n in range(n_resources)})
        for at in range(n_quotas)
    ]


def changes(made: LargeCluster, honest: Sequence[ElasticQuota], n_rounds: int) -> bool:
    """Measure what one changed quota costs and print it; returns whether the lock was held for a short time only."""
    scorer = still_scorer()
    settings = Settings()
    tables = schedule_tables(scorer, settings.schedule, settings.node_rules, None, None)
    fill(scorer, made)
    gc.collect()
    gc.freeze()  # as the process does when it has a model
    assert tables.tenants is not None
    quotas = tables.tenants.quotas
    first = honest[0]
    pod = replace(made.pods[0], uid="comes", name="comes", node="", namespace=first.namespace, started=None)
    kinds: dict[str, Callable[[int], ElasticQuota]] = {
        "amount": lambda n: replace(first, guaranteed={**first.guaranteed, "cpu": 100.0 + n}),
        "resource": lambda n: replace(first, guaranteed={**first.guaranteed, f"example.com/x{n}": 1.0}),
        "quota": lambda n: ElasticQuota(first.namespace, f"a{n}", guaranteed={"cpu": 1.0}),
    }
    print(f"  {'quotas':10} {'change of':10} {'ms in all':>10} {'ms of lock':>11} {'ms of next decision':>20}")
    worst = 0.0
    for name, others in {"honest": [], "hostile": hostile_quotas()}.items():
        lock = _LockTimes(scorer.tables.reading)
        sink = QuotaSink(quotas, lock, ())
        sink.replace([*honest, *others])
        gc.freeze()
        for what, changed in kinds.items():
            in_all, held, decided = [], [], []
            for number in range(n_rounds):
                lock.longest, began = 0.0, time.thread_time()
                sink.put(changed(number))
                in_all.append(time.thread_time() - began)
                with lock():
                    began = time.thread_time()
                    quotas.denial(pod)
                    decided.append(time.thread_time() - began)
                held.append(lock.longest)
            worst = max(worst, *held)
            shown = (1e3 * max(one) for one in (in_all, held, decided))
            print(f"  {name:10} {what:10} {next(shown):10.1f} {next(shown):11.1f} {next(shown):20.1f}")
    return worst <= _LONGEST_LOCK_SECONDS


def main() -> None:
    """Measure all configurations and print their ratios."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--sitting", type=int, default=20, help="pods on each node at the beginning")
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--changes", action="store_true", help="measure what a change of one quota costs")
    options = parser.parse_args()
    made = cluster_with_zones(
        options.nodes,
        options.sitting,
        _SERVICES_PER_TENANT * options.tenants,
        services_per_namespace=_SERVICES_PER_TENANT,
    )
    quotas = quotas_of(made, options.pods / options.tenants)
    print(f"{options.nodes} nodes, {len(made.pods)} pods, {len(quotas)} tenants, {options.pods} pods come")
    if options.changes:
        text = f"a change of one quota holds the lock for {1e3 * _LONGEST_LOCK_SECONDS:.0f} ms at most"
        finish(print_aims([(text, changes(made, quotas, options.rounds))]))
        return
    with loops(made, quotas) as of:

        def measure(name: str, number: int) -> Round:
            pods = waiting_pods(made, options.pods, options.tenants * _SERVICES_PER_TENANT, f"{name}-{number}")
            done = of[name].schedule(pods)
            of[name].remove(pods)
            return done

        for name in of:
            measure(name, -1)  # what is made once is no part of a decision
        found = in_turn(of, options.rounds, measure)
    print(f"  {'':10} {'CPU us per pod':>15} {'least to most':>17} {'to no quotas':>13}")
    ratios = {}
    for name, rounds in found.items():
        each = [1e6 * one.cpu / one.n_pods for one in rounds]
        ratios[name] = median_ratio(rounds, found["no quotas"], lambda one: one.cpu / one.n_pods)
        print(f"  {name:10} {median(each):15.0f} {spread(each):>17} {ratios[name]:13.3f}")
    print(machine_load())
    finish(
        print_aims(
            (f"a decision with {name} costs at most {_MOST_RATIO} times that without", ratios[name] <= _MOST_RATIO)
            for name in ("quotas", "fair")
        )
    )


if __name__ == "__main__":
    main()
