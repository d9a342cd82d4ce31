"""A burst of pods within one metric interval: usage stays as last measured while 1,000 pods are placed one by one.

    python -m benchmarks.burst [--seeds 5] [--nodes 100] [--pods 1000]

Nodes of ratio 1 : 2 : 4 are in use by 10 to 30 %; the pods, of 50 services, add about 25 % of the cluster. Every
pod goes to the node with the highest most_available score on which its requests fit. Requests are off from usage by
service (usage x exp(N(0.4, 0.6))), what a pod really uses from its service's profile by exp(N(0, 0.3)). Rules:

    usage as measured        what no metric has seen counts as nothing
    + virtual requests       charged as soon as a pod is placed, from the service's profile
    + of requests            the same where there is no profile: from the pod's requests
    least allocated          requests alone, as kube-scheduler does by default
    the truth                the usage of every placed pod is known at once

Medians over seeds of the true usage once everything runs: coefficient of variation over nodes of the share of CPU and
of memory in use, the fullest node's share of CPU, and nodes above 80 % and 100 % of CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.harness import command_line
from cluster.live.charges import Charges
from cluster.live.virtual_request import virtual_available
from scorer.scores.least_allocated import least_allocated_score
from scorer.scores.most_available import most_available_score

GIB = 1024.0**3
NODE = np.array([8.0, 32 * GIB])
EQUAL = np.ones(2)
N_SERVICES = 50
RULES = ("usage as measured", "+ virtual requests", "+ of requests", "least allocated", "the truth")


@dataclass(frozen=True, slots=True)
class Burst:
    """Axis 2: CPU cores, memory bytes.

    capacity, usage, requested : (n_nodes, 2) before the burst
    profile, request           : (n_services, 2) of one pod
    service                    : (n_pods,) in order of arrival
    true                       : (n_pods, 2) what each will use
    """

    capacity: Floats
    usage: Floats
    requested: Floats
    profile: Floats
    request: Floats
    service: Ints
    true: Floats


def burst(n_nodes: int, n_pods: int, rng: np.random.Generator) -> Burst:
    """Draw one."""
    capacity = rng.choice([1.0, 2.0, 4.0], (n_nodes, 1)) * NODE
    service = rng.integers(0, N_SERVICES, n_pods)
    profile = np.exp(rng.normal(0, 0.7, (N_SERVICES, 2))) * NODE
    profile *= 0.25 * capacity.sum(axis=0) / profile[service].sum(axis=0)
    request = profile * np.exp(rng.normal(0.4, 0.6, (N_SERVICES, 2)))
    usage = capacity * rng.uniform(0.1, 0.3, (n_nodes, 2))
    requested = np.minimum(usage * np.exp(rng.normal(0.4, 0.3, (n_nodes, 2))), 0.7 * capacity)
    true = profile[service] * np.exp(rng.normal(0, 0.3, (n_pods, 2)))
    return Burst(capacity, usage, requested, profile, request, service, true)


def place(case: Burst, rule: str, rng: np.random.Generator) -> Floats:
    """True usage of the nodes once all pods run: (n_nodes, 2)."""
    n_nodes = len(case.capacity)
    charges = Charges(2, window_seconds=60.0, grace_seconds=60.0)
    requested, true_usage = case.requested.copy(), case.usage.copy()
    for pod, service in enumerate(case.service.tolist()):
        request = case.request[service]
        virtual = case.request[service] if rule == "+ of requests" else case.profile[service]
        fits = (requested + request <= case.capacity).all(axis=1)
        if not fits.any():
            continue
        if rule == "least allocated":
            score = least_allocated_score(requested, request, case.capacity).astype(np.float64)
        else:
            seen = true_usage if rule == "the truth" else case.usage
            available = virtual_available(case.capacity, seen, charges.total(n_nodes))
            score = most_available_score(available, virtual, case.capacity, EQUAL)
        score = np.where(fits, score, -1.0)
        node = int(rng.choice(np.flatnonzero(score == score.max())))
        requested[node] += request
        true_usage[node] += case.true[pod]
        if rule.startswith("+"):
            charges.charge(str(pod), node, virtual, started=None, now=0.0)
    return true_usage


def main() -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=int, default=1000)
    arguments = parser.parse_args()
    print(f"{'':22}{'CV cpu':>9}{'CV memory':>11}{'fullest cpu':>13}{'above 80 %':>12}{'above 100 %':>13}")
    for rule in RULES:
        figures = []
        for seed in range(arguments.seeds):
            case = burst(arguments.nodes, arguments.pods, np.random.default_rng(seed))
            share = place(case, rule, np.random.default_rng(seed + 1000)) / case.capacity
            cv = share.std(axis=0) / share.mean(axis=0)
            cpu = share[:, 0]
            figures.append([*cv, cpu.max(), (cpu > 0.8).mean(), (cpu > 1.0).mean()])
        cv_cpu, cv_memory, fullest, hot, over = np.median(figures, axis=0)
        print(f"{rule:22}{cv_cpu:9.3f}{cv_memory:11.3f}{fullest:13.1%}{hot:12.1%}{over:13.1%}")


if __name__ == "__main__":
    main()
