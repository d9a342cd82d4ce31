"""1,000 pods at full rate through the real kube-scheduler, before any metric has seen one of them.

python -m benchmarks.real_burst [--rounds N] [--lag SECONDS]

100 nodes of ratio 1 : 2 : 4, 40 services of 25 pods that peak at hours of their own. Share of CPU that the nodes really
use at their daily peaks once all pods are there: without the charge every pod is advised on a cluster in which those
of the last moments are nowhere. So that the number of those is not up to how fast kube-scheduler happens to be beside
the watch, all that the API server says reaches the extender with a lag, as from one that is busy.
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from base.arrays import Floats, Ints
from benchmarks.evening_rollout import EveningRollout
from benchmarks.real_scheduler import Cluster
from benchmarks.zones_and_images import images_on_nodes
from cluster.predicted.pod_profiles import Profiles
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import CPU, MEMORY
from testing.clusters.large_cluster import large_cluster
from testing.servers.control_plane.tcp_proxy import TcpProxy
from testing.servers.shipped_extender import shipped_extender

N_NODES, N_PODS, N_SERVICES, DAYS = 100, 1000, 40, 7
_PEAK, _REQUESTED = 0.55, 0.5
CHARGES = {"extender without the charge": 0, "extender as shipped": 2}
"""Seconds for which a node is charged for a pod (AnswerOptions.charge)."""
LAG_SECONDS = 0.3
"""Of what the API server says to the extender; a charge outlasts it."""


def burst(seed: int = 0) -> EveningRollout:
    """The pods, and what they will use: exactly what the model expects of them."""
    now = datetime.now(UTC)
    made = large_cluster(N_NODES, N_PODS, N_SERVICES, first_day=now.date(), seed=seed)
    model, rng = made.model, np.random.default_rng(seed)
    replicas = N_PODS // N_SERVICES
    days = model.calendar.horizon(model.first_day, DAYS)
    curves = Profiles(model).mean(list(model.services), np.full(N_SERVICES, float(replicas)), days)
    services = np.repeat(np.arange(N_SERVICES), replicas)
    load = curves[services]
    # All nodes together are 55 % full at the cluster's own peak.
    peak = load.sum(axis=0, dtype=np.float64).max(axis=1)  # (n_resources,)
    size = model.node_capacity[:, CPU] / model.node_capacity[:, CPU].sum()
    capacity = size[:, None] * peak / _PEAK
    return EveningRollout(
        model=model,
        keys=model.services,
        services=services,
        requests=np.tile(_REQUESTED * capacity[:, [CPU, MEMORY]].sum(axis=0) / N_PODS, (N_PODS, 1)),
        load=load,
        capacity=capacity.astype(np.float64),
        order=rng.permutation(N_PODS),
        images=images_on_nodes(N_SERVICES, N_NODES, rng),
    )


def place_burst(cluster: Cluster, charge: float | None, lag_seconds: float = LAG_SECONDS) -> Ints:
    """(n_pods,) row of the node of each pod.

    charge      : seconds of AnswerOptions.charge, None = kube-scheduler alone
    lag_seconds : by which the extender hears of everything later than kube-scheduler does
    """
    if charge is None:
        return cluster.place([])
    with (
        TcpProxy(cluster.plane.api_server.port, lag_seconds=lag_seconds) as proxy,
        cluster.extender(f"extender-{charge}", url=proxy.url, charge=charge) as process,
    ):
        return cluster.place([shipped_extender(process.url)])


def cpu_peaks(of: EveningRollout, placement: Ints) -> Floats:
    """(n_nodes,) share of CPU in use at each node's highest half hour of an ordinary day."""
    day = of.node_shares(placement)[:, CPU, SLOTS_PER_DAY : 2 * SLOTS_PER_DAY]
    return np.asarray(day.max(axis=1))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="bursts of each kind")
    parser.add_argument("--lag", type=float, default=LAG_SECONDS, help="seconds that the extender hears things late")
    asked = parser.parse_args()
    print(f"the extender hears what the API server says {asked.lag:g} s late", flush=True)
    kinds: dict[str, float | None] = {"kube-scheduler": None, **CHARGES}
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for seed in range(asked.rounds):
        of = burst(seed)
        with tempfile.TemporaryDirectory() as scratch, Cluster(of, Path(scratch)) as cluster:
            for kind, charge in kinds.items():
                peaks = cpu_peaks(of, place_burst(cluster, charge, asked.lag))
                found[kind].append((float(peaks.std() / peaks.mean()), float(peaks.max())))
                print(
                    f"round {seed}, {kind}: CV of peaks {found[kind][-1][0]:.3f}, highest {peaks.max():.0%}", flush=True
                )
    for kind, figures in found.items():
        cv, highest = np.median(np.array(figures), axis=0)
        print(f"{kind:>28}: median CV of CPU peaks {cv:.3f}, median of the highest {highest:.0%}")


if __name__ == "__main__":
    main()
