"""Low-priority pods in the gap below the evening's peak: how much work they get done, and what it costs the services.

300 pods of the sample on 60 nodes (evening_rollout.py), placed by the true future so that they themselves leave few
nodes hot; at 04:00 low-priority pods come, more than there is room for, each of which uses a twentieth of a small
node around the clock. Admitted

    requests     while their requests fit, which are what they use
    small        while their requests fit, which are a tenth of what they use
    forecast     by PredictedGap, below 80 % of capacity in the next 24 hours; requests are a tenth
    up to 90 %   the same below 90 %, which is still hot beyond 80 %
    no pods      for comparison
    true future  while the node stays below 80 % in the 24 hours that really came: nobody can know

to the node with the fewest of them, by its size; then what really came is played back for the 24 hours. Run as
`python -m benchmarks.colocation [--seeds N] [--json FILE]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np

from base.arrays import Bools, Floats, Ints
from benchmarks.evening_rollout import EveningRollout, evening_rollout
from benchmarks.harness import command_line
from cluster.live.usage import NodeUsage
from cluster.model_watch import LoadedModel
from cluster.predicted.pod_bounds import VIRTUAL_REQUEST_ANNOTATION
from cluster.state_source import StateSource
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import NO_OWNER
from kube.decoding.decoding import ApiObject, Kind, decode_object, decode_pod
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView, rejected
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.index.index import PlacementIndex
from profiles.online.colocation_loop import Colocation
from profiles.online.colocation_settings import GapOptions
from scorer.scorer import Scorer
from testing.servers.cluster_objects import Manifest

TODAY = date(2026, 5, 19)
HOUR, CEILING = 4, 0.8
_FIRST = 2 * HOUR
_PER_SMALL_NODE, _SMALL_REQUEST = 20, 0.1
_COUNTED = (CPU, MEMORY)

Admits = Callable[[PodInfo], Bools]
"""(n_nodes,) nodes that take one more, in the order of the rollout's nodes."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """
    pods    : of low priority that were let in
    cores   : of the cluster that they use, as a share
    hot     : share of node-half-hours of the evening, 17:00 to 23:00, beyond the ceiling of CPU or memory
    hot_all : of the whole day
    highest : share of CPU or memory in use, of any node at any time
    mean    : share of CPU in use, of the cluster over the day
    """

    pods: int
    cores: float
    hot: float
    hot_all: float
    highest: float
    mean: float


class Scene:
    """The cluster at 04:00 with its services placed."""

    def __init__(self, rollout: EveningRollout, ceiling: float = CEILING) -> None:
        self.rollout = rollout
        start = rollout.model.calendar.midnight(TODAY).timestamp()
        self.now = start + 3600 * HOUR
        source = StateSource(lambda: (True, self.now, {}))
        self.scorer = Scorer(usage=_Usage(self), clock=lambda: self.now, source=source)
        self.colocation = Colocation(self.scorer.tables, GapOptions(ceiling=ceiling))
        sets = rollout.replica_sets()
        _give_uids(sets)
        self.scorer.tables.replace(Kind.NODES, [_decoded(Kind.NODES, one) for one in rollout.nodes()])
        self.scorer.tables.replace(Kind.REPLICA_SETS, [_decoded(Kind.REPLICA_SETS, one) for one in sets])
        self.scorer.tables.install(LoadedModel("v1", rollout.model, {}))
        with self.scorer.tables.reading() as cluster:
            self.view = ClusterView(cluster, PlacementIndex(cluster.state))
            cluster.listeners.append(self.view.index.apply)
        self.rows = np.array([self.view.state.row_of[name] for name in rollout.node_names])
        self.fit = NodeResourcesFit()
        pods = rollout.pods(sets)
        _give_uids(pods)
        online = [decode_pod(one) for one in pods]
        placement = rollout.oracle()
        node_of = {rollout.pod_name(i): rollout.node_names[row] for i, row in enumerate(placement.tolist())}
        for pod in online:
            self.scorer.tables.put(Kind.PODS, replace(pod, node=node_of[pod.name], started=self.now - 7200))
        self.online = rollout.node_shares(placement)[:, :, : 2 * SLOTS_PER_DAY]
        self.scorer.tables.tick()
        self.scorer.tables.measure()
        self.colocation.bounds.refresh(self.scorer.tables)

    def usage(self) -> NodeUsage:
        """As Prometheus would tell it: of the half hour before."""
        used = np.nan_to_num(self.online[:, :, _FIRST - 1] * self.rollout.capacity)
        return NodeUsage(tuple(self.rollout.node_names), used, np.full(len(used), self.now))


def _decoded(kind: Kind, manifest: Manifest) -> ApiObject:
    return decode_object(kind, json.dumps(manifest).encode())[0]


def _give_uids(manifests: Sequence[Manifest]) -> None:
    for one in manifests:
        one["metadata"]["uid"] = one["metadata"]["name"]


class _Usage:
    """A UsageSource."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def read(self) -> NodeUsage:
        return self._scene.usage()

    def node_history(self, *unused: object) -> Floats:
        raise NotImplementedError

    def service_history(self, *unused: object) -> Floats:
        raise NotImplementedError

    def pods(self, *unused: object) -> dict[tuple[str, str], float]:
        raise NotImplementedError


RULES = ("no pods", "requests", "small", "forecast", "up to 90 %", "true future")


def colocation(seed: int = 0, rules: Sequence[str] = RULES, history: Path = Path("data/sample")) -> dict[str, Admitted]:
    """Every rule on the same cluster."""
    rollout = evening_rollout(TODAY, history=history, seed=seed)
    return {rule: _admit(Scene(rollout, 0.9 if rule == "up to 90 %" else CEILING), rule) for rule in rules}


def _admit(scene: Scene, rule: str) -> Admitted:
    capacity = scene.rollout.capacity
    use = np.zeros(len(RESOURCES))
    use[CPU] = capacity[:, CPU].min() / _PER_SMALL_NODE
    use[MEMORY] = capacity[:, MEMORY].min() / _PER_SMALL_NODE / 4
    day = slice(_FIRST, _FIRST + SLOTS_PER_DAY)
    counts = np.zeros(len(capacity), dtype=np.int64)
    added = use / capacity  # (n_nodes, n_resources) shares

    def by_requests(pod: PodInfo) -> Bools:
        passing: Bools = ~rejected(scene.fit.filter(pod, scene.view), scene.view.n_rows)
        return np.asarray(passing[scene.rows])

    def by_forecast(pod: PodInfo) -> Bools:
        full = rejected(scene.colocation.filter.filter(pod, scene.view), scene.view.n_rows)
        return np.asarray(by_requests(pod) & ~full[scene.rows])

    def by_the_true_future(pod: PodInfo) -> Bools:
        share = scene.online[:, :, day] + ((counts + 1)[:, None] * added)[:, :, None]
        return np.asarray(by_requests(pod) & (share[:, _COUNTED].max(axis=(1, 2)) <= CEILING))

    admits: dict[str, Admits] = {
        "requests": by_requests,
        "small": by_requests,
        "forecast": by_forecast,
        "up to 90 %": by_forecast,
        "true future": by_the_true_future,
    }
    if rule in admits:
        request = use * (1.0 if rule == "requests" else _SMALL_REQUEST)
        _fill(scene, admits[rule], use, request, counts)
    share = scene.online[:, :, day] + (counts[:, None] * added)[:, :, None]
    hot: Bools = np.asarray((share[:, _COUNTED] > CEILING).any(axis=1))  # (n_nodes, n_slots)
    evening = slice(2 * (17 - HOUR), 2 * (23 - HOUR))
    return Admitted(
        pods=int(counts.sum()),
        cores=float(counts.sum() * use[CPU] / capacity[:, CPU].sum()),
        hot=float(hot[:, evening].mean()),
        hot_all=float(hot.mean()),
        highest=float(share[:, _COUNTED].max()),
        mean=float((share[:, CPU].mean(axis=1) * capacity[:, CPU]).sum() / capacity[:, CPU].sum()),
    )


def _fill(scene: Scene, admits: Admits, use: Floats, request: Floats, counts: Ints) -> None:
    """Place until no node takes one more. counts: (n_nodes,), counted up."""
    said = json.dumps({"cpu": f"{use[CPU]:.6f}", "memory": f"{use[MEMORY]:.0f}"})
    template = decode_pod(
        {"metadata": {"name": "batch", "namespace": "batch", "uid": "batch"}, "spec": {"containers": []}}
    )
    template = replace(
        template,
        owner=NO_OWNER,
        priority=-1,
        requests={"cpu": float(request[CPU]), "memory": float(request[MEMORY])},
        nonzero_requests=(float(request[CPU]), float(request[MEMORY])),
        annotations={VIRTUAL_REQUEST_ANNOTATION: said},
    )
    limit = round(scene.rollout.capacity[:, CPU].sum() / use[CPU])
    for number in range(limit):
        pod = replace(template, uid=f"batch-{number}", name=f"batch-{number}")
        takes = admits(pod)
        if not takes.any():
            return
        node = int(np.where(takes, counts / scene.rollout.capacity[:, CPU], np.inf).argmin())
        scene.scorer.tables.put(Kind.PODS, replace(pod, node=scene.rollout.node_names[node], started=scene.now))
        counts[node] += 1


def main() -> None:
    """Print one table of the means over the seeds."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    runs = [colocation(seed) for seed in range(args.seeds)]
    print(f"{'admitted by':12} {'pods':>6} {'cores':>7} {'hot 17-23h':>11} {'hot':>7} {'highest':>8} {'mean CPU':>9}")
    for rule in RULES:
        m = {k: float(np.mean([asdict(run[rule])[k] for run in runs])) for k in asdict(runs[0][rule])}
        print(
            f"{rule:12} {m['pods']:6.0f} {m['cores']:7.1%} {m['hot']:11.1%} {m['hot_all']:7.1%} {m['highest']:8.0%} "
            f"{m['mean']:9.1%}"
        )
    if args.json:
        args.json.write_text(json.dumps([{rule: asdict(of) for rule, of in run.items()} for run in runs], indent=2))


if __name__ == "__main__":
    main()
