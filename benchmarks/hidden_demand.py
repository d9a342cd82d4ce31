"""Which services are found that a CPU limit holds back: by flat tops of their usage, and by throttled periods.

    python -m benchmarks.hidden_demand [--seeds N]

Made-up services, two weeks each, half hour by half hour out of minutes. Each has 1 to 12 replicas that share an evening
peak unevenly, and bursts within the minute. The limit of a pod is 0.5 to 4 times the peak of its mean demand. What a
pod wants beyond its limit in a period of 0.1 s is throttled and lost. So the truth is known: demand is hidden if 5 % or
more of it is lost in the tenth of the half hours in which the service wants most.

    flat       `trainer.audit.unknowns.ceiling`, on the means of the pods
    throttled  `forecast.hidden_demand`, with other values of THROTTLED and LEAST_SHARE beside those in use

Constants are chosen on the even seeds; the odd ones are reported beside them. `found`: of the services with hidden
demand, `false`: of the others. The bound: how many services want at least the cores that the rule names, at 0.99 of
their peak half hours' demand of the busiest pod, and how much of that it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final
from unittest.mock import patch

import numpy as np
from scipy.special import ndtr

from base.arrays import Bools, Floats
from benchmarks.harness import command_line
from forecast import hidden_demand as rule
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.limit_hits import PodHits
from forecast.resources import CPU
from testing.clusters.constructed import constructed
from trainer.audit.unknowns import ceiling

SERVICES, DAYS, MINUTES = 60, 14, 30
LOST, PEAK = 0.05, 0.9
CHOICES: Final = tuple((throttled, share) for throttled in (0.05, 0.1, 0.25) for share in (0.02, 0.05, 0.1))


@dataclass(frozen=True, slots=True)
class Made:
    """history: with limit hits. hidden: (n_services,) the truth. wanted: (n_services,) cores of the busiest pod"""

    history: History
    hidden: Bools
    wanted: Floats


def made(seed: int) -> Made:
    """One cluster of services."""
    rng = np.random.default_rng(seed)
    history, _ = constructed(seed=seed, n_services=SERVICES, n_nodes=4, n_days=DAYS)
    n_slots = DAYS * SLOTS_PER_DAY
    hour = np.arange(n_slots) % SLOTS_PER_DAY / 2
    service: list[int] = []
    throttled: list[Floats] = []
    cores: list[Floats] = []
    usage = np.array(history.usage_per_pod)
    hidden, wanted = np.zeros(SERVICES, dtype=np.bool_), np.zeros(SERVICES)
    counts = rng.integers(1, 13, SERVICES)
    for s, n_pods in enumerate(counts.tolist()):
        curve = 0.1 + np.exp(-(((hour - rng.uniform(0, 24) + 12) % 24 - 12) ** 2) / rng.uniform(4, 20))
        noise = np.exp(rng.uniform(0.02, 0.3) * rng.standard_normal((n_pods, n_slots, MINUTES)))
        uneven = np.exp(rng.uniform(0, 0.4) * rng.standard_normal(n_pods))
        want = curve[:, None] * noise * uneven[:, None, None]  # (n_pods, n_slots, minutes)
        limit = np.exp(rng.uniform(np.log(0.5), np.log(4.0)))
        over, used = _throttled(want, limit, rng.uniform(0.1, 0.8))
        usage[s, CPU] = used.mean(axis=(0, 2)).reshape(DAYS, SLOTS_PER_DAY)
        demand, got = want.mean(axis=(0, 2)), used.mean(axis=(0, 2))
        top = demand >= np.quantile(demand, PEAK)
        hidden[s] = 1 - got[top].sum() / demand[top].sum() >= LOST
        wanted[s] = np.quantile(want.mean(axis=2).max(axis=0)[top], 0.99)
        service += [s] * n_pods
        throttled.append(over.mean(axis=2))
        cores.append(used.mean(axis=2))
    replicas = np.broadcast_to(counts[:, None, None], (SERVICES, DAYS, SLOTS_PER_DAY)).astype(np.float32)
    share, measured = np.concatenate(throttled), np.concatenate(cores)
    pod, slot = np.nonzero(share > 0)
    hits = PodHits(
        pod,
        slot,
        share[pod, slot].astype(np.float32),
        measured[pod, slot].astype(np.float32),
        np.full(len(pod), np.nan, dtype=np.float32),
        np.ones((SERVICES, DAYS), dtype=np.bool_),
    ).of_services(np.array(service), replicas)
    return Made(replace(history, usage_per_pod=usage, replicas=replicas, limit_hits=hits), hidden, wanted)


def _throttled(want: Floats, limit: float, spread: float) -> tuple[Floats, Floats]:
    """Share of periods over the limit, and mean usage: of demand that is lognormal within the minute, mean `want`."""
    mu = np.log(want) - spread**2 / 2
    z = (np.log(limit) - mu) / spread
    over = 1 - ndtr(z)
    return np.where(over > 1e-4, over, 0.0), want * ndtr(z - spread) + limit * over


def _lines(name: str, halves: list[list[tuple[Bools, Bools]]]) -> str:
    cells = []
    for half in halves:
        marked, hidden = (np.concatenate(parts) for parts in zip(*half, strict=True))
        cells.append(f"found {marked[hidden].mean():6.1%}  false {marked[~hidden].mean():6.1%}")
    return f"{name:28s} {'   |   '.join(cells)}"


def _halves(clusters: list[Made], marks: list[Bools]) -> list[list[tuple[Bools, Bools]]]:
    pairs = [(one, made.hidden) for one, made in zip(marks, clusters, strict=True)]
    return [pairs[0::2], pairs[1::2]]


def report(n_seeds: int) -> Iterator[str]:
    """The lines of the report."""
    clusters = [made(seed) for seed in range(n_seeds)]
    n_hidden = sum(int(one.hidden.sum()) for one in clusters)
    yield f"{n_hidden} of {SERVICES * n_seeds} services hide demand; even seeds | odd seeds"
    flat = [np.isfinite(ceiling(one.history.usage_per_pod[:, CPU].reshape(SERVICES, -1))[0]) for one in clusters]
    yield _lines("flat", _halves(clusters, flat))
    for throttled, share in CHOICES:
        with patch.multiple(rule, THROTTLED=throttled, LEAST_SHARE=share):
            marks = [rule.hidden_demand(one.history).marked[:, 0] for one in clusters]
        yield _lines(f"throttled {throttled:g}, share {share:g}", _halves(clusters, marks))
    found = [rule.hidden_demand(one.history) for one in clusters]
    for name, half in (("even", slice(0, None, 2)), ("odd", slice(1, None, 2))):
        ratio = np.concatenate([f.cores / one.wanted for f, one in zip(found[half], clusters[half], strict=True)])
        ratio = ratio[np.isfinite(ratio)]
        yield f"bound, {name} seeds: at or below demand {np.mean(ratio <= 1):.1%}, median {np.median(ratio):.2f} of it"


def main() -> None:
    """Print the shares that both rules find, for even and odd seeds."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    print("\n".join(report(parser.parse_args().seeds)))


if __name__ == "__main__":
    main()
