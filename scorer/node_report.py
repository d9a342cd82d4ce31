"""What makes the expected peak of a node, and what helps: services by their share, the best other node for each of the
largest pods, and the effect of such a move on both peaks.

The tables are locked for a few milliseconds per pod; curves are computed from copies.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
from msgspec.structs import replace

from base.arrays import Bools, Floats
from base.errors import InputError, UnknownName
from cluster.degradation import Level, level_of_nodes
from cluster.live_tables import LiveTables
from cluster.predicted.node_curves import NodeInputs
from cluster.predicted.node_load import LoadInputs, PeakHours, load_inputs
from cluster.predicted.pod_profiles import ProfileKey
from cluster.predicted.predicted_cluster import PredictedCluster
from cluster.tracking import TrackedCluster
from forecast.calendar import SLOTS_PER_DAY
from forecast.resources import resource_index
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from scorer.answers import BetterNode, NodeReport, PodOnNode, ServiceOnNode
from scorer.highest_peak import expected_peaks
from scorer.node_now import measured_pods, used_now
from scorer.scoring import score_pod
from scorer.scoring_policy import ScoringPolicies, opts_out


@dataclass(frozen=True, slots=True)
class _Seated:
    pod: PodInfo
    service: ServiceKey
    key: ProfileKey


def node_report(
    tables: LiveTables, policies: ScoringPolicies, node: str, *, day: date | None = None, top: int = 5
) -> NodeReport:
    """Report on one node.

    day : local day of the model; None = the next 24 hours
    top : most pods to find another node for
    Raises UnknownName for a node that is not there, InputError for a day outside the forecast.
    """
    if top < 0:
        raise InputError(f"top is {top}: 0 pods or more are needed")
    with tables.reading() as cluster:
        row = _row_of(cluster, node)
        now_used = used_now(tables, cluster, row)
        info = cluster.state.nodes[row]
        level, _ = tables.level()
        level = Level(int(level_of_nodes(level, cluster.measured_nodes())[row]))
        n_pods, version = int(cluster.state.pod_count[row]), tables.version
        ready = info is not None and info.ready and not info.unschedulable
        predicted, now = cluster.predicted, tables.now()
        found = NodeReport(
            name=node,
            peak_hours=None,
            now=now,
            pods=n_pods,
            ready=ready,
            level=level,
            model_version=version,
            peak=None,
            resources=now_used.of_each(None),
            measured_seconds_ago=now_used.seconds_ago,
            not_measured=now_used.why_not,
        )
        if predicted is None:
            return replace(found, notes=("no model has been published",))
        horizon = predicted.horizon
        hours = PeakHours.asked(horizon, day)
        load = load_inputs(predicted, [row], widen=tables.widen(horizon))
        seated = _seated_on(cluster, predicted, row)
    (peak,) = expected_peaks(load, hours)
    found = replace(found, peak_hours=hours.words, peak=peak, resources=now_used.of_each(load))
    if peak is None:
        return replace(found, notes=("no resource of the node has a known capacity",))
    r, curves, first = resource_index(peak.resource), load.curves(hours.window), hours.window.start
    slots = hours.slots - first  # of the curves
    slot = int(hours.slots[curves.curve(0)[0, r, slots].argmax()])
    use = _use_at(load, r, slot)
    total = float(curves.mean()[0, r, slot - first])
    services = _services(seated, use, total)
    largest = sorted(seated, key=lambda one: (-use.get(one.key, 0.0), one.pod.namespace, one.pod.name))[:top]
    uses = (use, _use_at(load, r, horizon.slot))
    measured, trouble = measured_pods(tables, peak.resource, [one.pod for one in largest])
    return replace(
        found,
        notes=(trouble,) if trouble else (),
        starts=tuple(map(horizon.start_of, hours.slots.tolist())),
        expected=tuple(curves.curve(0)[0, r, slots].tolist()),
        bound=tuple(curves.curve(1)[0, r, slots].tolist()),
        besides_pods=max(0.0, total - sum(one.usage for one in services)),
        services=services,
        largest=tuple(
            replace(
                _pod_on_node(tables, policies, one, node, day, hours, uses[0].get(one.key, 0.0)),
                expected_now=uses[1].get(one.key),
                measured_now=measured.get((one.pod.namespace, one.pod.name)),
            )
            for one in largest
        ),
    )


def _row_of(cluster: TrackedCluster, node: str) -> int:
    state = cluster.state
    row = state.row_of.get(node)
    if row is None or state.nodes[row] is None:
        raise UnknownName(
            "node", node, sorted(name for name, row in state.row_of.items() if state.nodes[row] is not None)
        )
    return row


def _seated_on(cluster: TrackedCluster, predicted: PredictedCluster, row: int) -> list[_Seated]:
    """Pods that count in the predicted load of the node; without those of DaemonSets and of
    one-off owners, which are part of its base."""
    state = cluster.state
    found = []
    for uid, seat in state.seat_of.items():
        if seat.node == row and (placed := predicted.placed.get(uid)) is not None and placed.weight and placed.present:
            found.append(_Seated(state.pods[uid], state.services[seat.service], predicted.keys[placed.profile]))
    return found


def _use_at(load: LoadInputs, resource: int, slot: int) -> dict[ProfileKey, float]:
    """What one pod of each profile is expected to use of a resource in a half hour, counted from midnight of today."""
    number, of_day = divmod(slot, SLOTS_PER_DAY)
    nodes = load.nodes
    usage = load.profiles.mean_of(nodes.keys, nodes.replicas, (load.horizon.days[number],))[:, resource, of_day]
    return dict(zip(nodes.keys, usage.tolist(), strict=True))


def _services(seated: list[_Seated], use: Mapping[ProfileKey, float], total: float) -> tuple[ServiceOnNode, ...]:
    """Shares are of `total`, or of what the pods use together if a live correction has the node use less."""
    pods, usage = Counter[str](), defaultdict[str, float](float)
    for one in seated:
        pods[str(one.service)] += 1
        usage[str(one.service)] += use.get(one.key, 0.0)
    total = max(total, sum(usage.values()))
    return tuple(
        ServiceOnNode(service, pods[service], used, used / total if total > 0 else 0.0)
        for service, used in sorted(usage.items(), key=lambda item: (-item[1], item[0]))
    )


def _pod_on_node(
    tables: LiveTables,
    policies: ScoringPolicies,
    one: _Seated,
    node: str,
    day: date | None,
    hours: PeakHours,
    usage: float,
) -> PodOnNode:
    none = PodOnNode(f"{one.pod.namespace}/{one.pod.name}", str(one.service), usage, None)
    with tables.reading() as cluster:
        predicted, here = cluster.predicted, cluster.state.row_of.get(node)
        placed = None if predicted is None else predicted.placed.get(one.pod.uid)
        if predicted is None or placed is None or placed.node != here or not _as_asked(predicted, day, hours):
            return replace(none, why_not="the cluster has changed since: ask again")
        best = _best_other(tables, cluster, predicted, policies, one.pod, here)
        if best is None:
            return replace(none, why_not="no other node has room for its requests")
        rows, extra = [here, best, best], [None, None, placed.profile]
        load = load_inputs(predicted, rows, extra, widen=tables.widen(predicted.horizon))
        other, key = cluster.state.names[best], predicted.keys[placed.profile]
    load = dataclasses.replace(load, nodes=_one_less(load.nodes, key))
    without, before, after = expected_peaks(load, hours)
    if without is None or before is None or after is None:
        return replace(none, why_not=f"no resource of {other} has a known capacity")
    return replace(none, better=BetterNode(other, without, before, after))


def _as_asked(predicted: PredictedCluster, day: date | None, hours: PeakHours) -> bool:
    """Whether the half hours of the report still are the same ones."""
    horizon = predicted.horizon
    if day is not None and day not in horizon.days:
        return False
    return np.array_equal(PeakHours.asked(horizon, day).slots, hours.slots)


def _best_other(
    tables: LiveTables,
    cluster: TrackedCluster,
    predicted: PredictedCluster,
    policies: ScoringPolicies,
    pod: PodInfo,
    here: int,
) -> int | None:
    """Find the row that the pod's policy ranks first among other nodes where the pod may go and fits by requests."""
    with cluster.without(pod.uid):
        rows = np.flatnonzero(_candidates(cluster, predicted, pod, here))
        if not len(rows):
            return None
        level = Level.NEUTRAL if opts_out(pod) else tables.level()[0]
        scored = score_pod(cluster, pod, rows, policies.scoring(pod).policy, level)
    # Without a forecast the ranking is one part of a sum, and may be the same for all nodes.
    order = scored.total if scored.profile is None else scored.ranking
    return int(rows[int(np.argmax(np.where(scored.out_of_memory, -np.inf, order)))])


def _candidates(cluster: TrackedCluster, predicted: PredictedCluster, pod: PodInfo, here: int) -> Bools:
    """(n_rows,) other nodes that the pod may use and whose unrequested rest holds what it requests."""
    state = cluster.state
    usable, mask_of = cluster.usable_nodes.usable_by([pod])
    request: Floats = state.request_vector(pod)
    fits = (state.requested + request <= state.allocatable) | (request == 0.0)
    found: Bools = usable[mask_of[0]] & state.alive & fits.all(axis=1)
    found[predicted.load.n_nodes :] = False  # rows without a node yet
    found[here] = False
    return found


def _one_less(inputs: NodeInputs, key: ProfileKey) -> NodeInputs:
    """The same with one pod fewer on the first node."""
    pods = inputs.pods.copy()
    for pair in np.flatnonzero((inputs.node == 0) & (pods > 0)).tolist():
        if inputs.keys[inputs.profile[pair]] == key:
            pods[pair] -= 1
            break
    return dataclasses.replace(inputs, pods=pods)
