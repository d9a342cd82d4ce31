"""Peak weights by regression: time, memory, share identified and error, beside two simple ways to get them.

    python -m benchmarks.regression [--services 5000] [--nodes 5000] [--days 14] [--measured]

A constructed cluster with known truth (testing/clusters/constructed.py): evening, morning and flat services,
nodes of ratio 1 : 2 : 4, every service released and reshuffled once a week, a quarter autoscaled, 5 % noise. By default
no pod is measured for any of the five resources, which is the hardest case; with --measured only log is left to the
nodes. Rivals in the same process, on the first resource that no pod is measured for:

  own peak hour : non-negative regression of each node's daily peak on its pods at the hour of that peak
  requests      : the cluster's load shared out by requests
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import scipy.sparse as sp
from scipy.optimize import lsq_linear

from base.arrays import Bools, Floats
from benchmarks.harness import command_line, peak_gib
from forecast.calendar import SLOTS_PER_DAY
from forecast.history import History
from forecast.peak_weights import fit_peak_weights
from forecast.peak_weights.pods_on_nodes import day_counts
from forecast.resources import LOG, RESOURCES
from testing.clusters.constructed import constructed


def own_peak_hour(history: History, measured: int) -> Floats:
    """The peak of a pod as the naive way finds it: (n_services,). Its node's peak hour, not its own."""
    n_services, n_nodes = len(history.services), len(history.nodes)
    rows, peaks = [], []
    for day in range(history.n_days):
        usage = history.node_usage[:, measured, day]
        begin = day * SLOTS_PER_DAY
        counts = day_counts(history.placements.between(begin, begin + SLOTS_PER_DAY), n_services, n_nodes)
        slot = usage.argmax(axis=1)
        picked = counts[slot * n_nodes + np.arange(n_nodes)].tocoo()
        rows.append(sp.csr_matrix((picked.data, (picked.row, picked.col % n_services)), shape=(n_nodes, n_services)))
        peaks.append(usage.max(axis=1))
    size = sp.csr_matrix(np.tile(history.capacity[:, :1] / history.capacity[:, 0].mean(), (history.n_days, 1)))
    scale = float(np.mean(peaks))
    solved = lsq_linear(sp.hstack([sp.vstack(rows), size]).tocsr(), np.concatenate(peaks) / scale, (0, np.inf))
    return np.asarray(solved.x[:n_services] * scale)


def main() -> None:
    """Print the figures."""
    parser = command_line(__doc__)
    parser.add_argument("--services", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--measured", action="store_true", help="all resources but log are measured per pod")
    parser.add_argument("--rivals", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    history, truth = constructed(
        n_services=arguments.services,
        n_nodes=arguments.nodes,
        n_days=arguments.days,
        # About twelve pods on a node whatever the sizes.
        replicas=_replicas(arguments.services, arguments.nodes),
        unmeasured=(LOG,) if arguments.measured else tuple(range(len(RESOURCES))),
        seed=1,
    )
    before = peak_gib()
    pods = (history.placements.end - history.placements.first).sum() / (history.n_days * SLOTS_PER_DAY)
    print(f"{arguments.services} services, {arguments.nodes} nodes, {arguments.days} days, {pods:,.0f} pods at a time")
    started = time.perf_counter()
    weights = fit_peak_weights(history)
    print(
        f"regression: {time.perf_counter() - started:.1f} s, peak {peak_gib():.2f} GiB in the process, "
        f"{before:.2f} GiB of them before it began (history and truth)"
    )
    workday = np.array([day.weekday() < 5 for day in history.days])
    print(f"{'resource':<9} {'identified':>10} {'level':>7} {'peak':>7} {'within 10 %':>12}   weighted by load")
    for r, name in enumerate(RESOURCES):
        true = truth.weight[:, r][:, workday].mean(axis=1)  # (n_services, 48)
        load = true.mean(axis=1) * history.replicas.mean(axis=(1, 2))
        ours = weights.weight[:, r, 0].astype(np.float64)
        known = weights.identified[:, r]
        level, peak = _errors(ours, true)
        print(
            f"{name.name:<9} {load[known].sum() / load.sum():>10.1%} {_mean(level, load, known):>7.1%} "
            f"{_mean(peak, load, known):>7.1%} {load[known & (level <= 0.1)].sum() / load[known].sum():>12.1%}"
        )
        if r == LOG and arguments.rivals:
            everything = np.ones(len(load), dtype=np.bool_)
            print(f"  peak error over all services: {_mean(peak, load, everything):.1%}")
            requests = weights.prior[:, r].astype(np.float64) / true.mean(axis=1)
            print(f"  requests                    : {_mean(np.abs(requests - 1), load, everything):.1%} of the level")
            started = time.perf_counter()
            naive = own_peak_hour(history, r)
            off = np.abs(naive / true.max(axis=1) - 1)
            seconds = time.perf_counter() - started
            print(f"  own peak hour               : {_mean(off, load, everything):.1%} of the peak, {seconds:.0f} s")


def _replicas(n_services: int, n_nodes: int) -> tuple[int, int]:
    mean = 12 * n_nodes / n_services
    return max(1, round(mean / 2)), max(2, round(mean * 1.7))


def _errors(ours: Floats, true: Floats) -> tuple[Floats, Floats]:
    """Relative error of the mean and at the slot of the true peak, both (n_services,)."""
    at = true.argmax(axis=1)[:, None]
    level = np.abs(ours.mean(axis=1) / true.mean(axis=1) - 1)
    peak = np.abs(np.take_along_axis(ours, at, 1) / np.take_along_axis(true, at, 1) - 1)
    return level, peak[:, 0]


def _mean(error: Floats, load: Floats, which: Bools) -> float:
    return float((error[which] * load[which]).sum() / load[which].sum())


if __name__ == "__main__":
    main()
