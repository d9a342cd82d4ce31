"""What quotas cost: decisions of our own loop with 1,000 tenants and 100,000 pods, and of the same loop without quotas.

    python -m benchmarks.tenants_scale [--nodes 5000] [--sitting 20] [--tenants 1000] [--pods 5000] [--rounds 5]

The loop of `forecast-scheduler schedule` in memory (schedule_answered.py). Each tenant has a namespace of two services,
and a quota: its min is 0.7 to 1.6 times what its pods request, so that a third of the tenants borrow. The pods that
come are of all tenants, those of a tenant one after the other.

    no quotas   no ElasticQuota is there
    quotas      they are heeded; pods go by priority and age
    fair        and tenants wait in their queue, in the order of their shares

Each configuration runs in every round. Shown are CPU microseconds of the whole process per pod, medians over the
rounds, and the median of the rounds' ratios. Ends with status 1 where the ratio is above 1.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.harness import command_line, finish, in_turn, machine_load, median_ratio, print_aims, spread
from benchmarks.schedule_answered import AnsweredLoop, Round, cluster_with_zones, waiting_pods
from tenants.elastic_quota import ElasticQuota
from testing.clusters.large_cluster import LargeCluster

_CONFIGURATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "no quotas": {"fair": False},
    "quotas": {"fair": False},
    "fair": {"fair": True},
}
_SERVICES_PER_TENANT: Final = 2
_MOST_RATIO: Final = 1.1


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


def main() -> None:
    """Measure all configurations and print their ratios."""
    parser = command_line(__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--sitting", type=int, default=20, help="pods on each node at the beginning")
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    made = cluster_with_zones(
        options.nodes,
        options.sitting,
        _SERVICES_PER_TENANT * options.tenants,
        services_per_namespace=_SERVICES_PER_TENANT,
    )
    quotas = quotas_of(made, options.pods / options.tenants)
    print(f"{options.nodes} nodes, {len(made.pods)} pods, {len(quotas)} tenants, {options.pods} pods come")
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
