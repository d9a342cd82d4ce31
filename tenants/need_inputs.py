"""Gathers what owners' needs follow from: pods that count in quotas, and the model's forecast of their services.

    copy    under the lock: references only, milliseconds with 100,000 pods
    gather  without it: services with their pods of today, services that have none, curves of the model

service                                pods of a half hour
runs on and on, number follows load    expected by the model, and as many more as there are now, which fades
runs on and on, else                   as many as now
of Jobs                                expected by the model, and no fewer than still run
without a pod now                      expected by the model, if it expected none at times before; a pod is like the
                                       last one seen, else the predicted load of all of them is what they need
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.assuming_cluster import AssumingCluster
from cluster.predicted.horizon import HORIZON_DAYS, LIVE_HALF_LIFE_SLOTS, Horizon
from cluster.predicted.pod_profiles import Profiles
from cluster.runs.expected import ExpectedRuns
from cluster.tables.changes import Seat
from cluster.tables.columns import per_unit
from forecast.calendar import SLOT_MINUTES, SLOTS_PER_DAY
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import ServiceKey
from kube.objects.objects import PodInfo
from placement.usable_forecast import usable_forecast
from tenants.elastic_quota import RATES
from tenants.ledger import Charge, QuotaLedger
from tenants.need import ServicePods, pods_of_jobs, pods_of_lasting, sleeps, still_running
from tenants.quota_amounts import PODS, Units
from tenants.quota_tree import NO_QUOTA, QuotaTree

STEP_SECONDS: Final = 60.0 * SLOT_MINUTES

_STEPS_BEFORE: Final = 4
"""Half hours in which a service that has no pod now was expected to have some, before it counts as gone."""

_LOADS: Final = {RESOURCES[CPU].name: CPU, RESOURCES[MEMORY].name: MEMORY, **RATES}
"""Resource of the model by the name in a quota."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The tables as they were for a moment.

    charges, pods, seats : by UID
    profiles, horizon    : of the model
    waiting              : (n_quotas, n_resources) of quotas' own pods
    """

    now: float
    tree: QuotaTree
    profiles: Profiles
    horizon: Horizon
    charges: Mapping[str, Charge]
    pods: Mapping[str, PodInfo]
    seats: Mapping[str, Seat]
    services: Sequence[ServiceKey]
    waiting: Ints


@dataclass(frozen=True, slots=True)
class Gathered:
    """
    start    : unix seconds at which step 0, the half hour under way, began
    services : with pods of every step
    further  : (n_steps, n_quotas, n_resources) units that services need of which no pod was ever seen
    examples : one pod of each service that has some
    """

    start: float
    services: ServicePods
    further: Floats
    examples: Mapping[ServiceKey, PodInfo]


def copied(cluster: AssumingCluster, ledger: QuotaLedger, now: float) -> Copied | None:
    """To be called under the lock of the tables; None = there are no quotas, or no forecast to go by.

    now: unix seconds
    """
    predicted = usable_forecast(cluster)
    if predicted is None or not ledger.tree.quotas:
        return None
    state = cluster.state
    return Copied(
        now=now,
        tree=ledger.tree,
        profiles=predicted.profiles,
        horizon=predicted.horizon,
        charges=dict(ledger.charges),
        pods=dict(state.pods),
        seats=dict(state.seat_of),
        services=list(state.services),
        waiting=ledger.waiting.copy(),
    )


def without_pods(seen: Copied, with_pods: Iterable[ServiceKey]) -> list[ServiceKey]:
    """Return services of tenants that the model knows and that have no pod now."""
    there, profiles, tree = set(with_pods), seen.profiles, seen.tree
    return [
        service
        for service in profiles.row_of
        if service not in there and tree.has_namespace(service.namespace) and profiles.knows(service)
    ]


@dataclass(slots=True)
class Grouped:
    """Pods of one service in one quota. running: until when (unix seconds) each pod of a Job that has a node runs."""

    service: ServiceKey
    row: int
    example: PodInfo
    is_job: bool
    n: int = 0
    n_waiting: int = 0
    units: list[int] = field(default_factory=list)
    running: list[float] = field(default_factory=list)


def grouped(seen: Copied, service_of_waiting: Mapping[str, ServiceKey], runs: ExpectedRuns) -> list[Grouped]:
    """Return the pods that count in quotas, by service and quota.

    service_of_waiting : by UID, of pods without a node
    """
    found: dict[tuple[ServiceKey, int], Grouped] = {}
    for uid, charge in seen.charges.items():
        pod, seat = seen.pods.get(uid), seen.seats.get(uid)
        service = service_of_waiting.get(uid) if seat is None else seen.services[seat.service]
        if pod is None or service is None:
            continue
        group = found.get((service, charge.row))
        if group is None:
            is_job = runs.is_job(pod)
            group = Grouped(service, charge.row, pod, is_job, units=[0] * len(charge.units))
            found[service, charge.row] = group
        group.n += 1
        group.units = [a + b for a, b in zip(group.units, charge.units, strict=True)]
        if not charge.is_used:
            group.n_waiting += 1
        elif group.is_job:
            began = seen.now if pod.started is None else pod.started
            group.running.append(began + runs.of(pod, service).long)
    return list(found.values())


def asleep_in(
    tree: QuotaTree, services: Sequence[ServiceKey], examples: Mapping[ServiceKey, PodInfo]
) -> Mapping[ServiceKey, int]:
    """Return the quota of services without a pod: that of the pod that was seen last, else the first one of their
    namespace."""
    found = {}
    for service in services:
        example = examples.get(service)
        row = tree.first_row(service.namespace) if example is None else tree.row_of(example)
        if row != NO_QUOTA:
            found[service] = row
    return found


def gathered(
    seen: Copied, groups: Sequence[Grouped], asleep: Mapping[ServiceKey, tuple[int, Units | None]], n_steps: int
) -> Gathered:
    """Put the pods of all services together.

    asleep : services without a pod, with their quota and the units of one pod; None = not known
    """
    start, slots = steps_of(seen.horizon, seen.now, n_steps)
    known = {group.service for group in groups if seen.profiles.knows(group.service)}
    names = [*known, *asleep]
    curves = _curves(seen, names, slots)
    n_resources = len(seen.tree.resources)
    nothing = np.zeros(n_steps)
    expected = np.array([curves[g.service][_STEPS_BEFORE:] if g.service in known else nothing for g in groups])
    expected = expected.reshape(len(groups), n_steps)
    with_pods = _of_groups(seen, groups, expected, start)
    sleeping = [one for one in asleep if _is_expected_back(one, curves[one])]
    measured = [one for one in sleeping if asleep[one][1] is not None]
    pods = np.array([curves[one][_STEPS_BEFORE:] for one in measured]).reshape(len(measured), n_steps)
    units = [asleep[one][1] for one in measured]
    services = ServicePods(
        row=np.concatenate([with_pods.row, np.array([asleep[one][0] for one in measured], dtype=np.int64)]),
        units=np.concatenate([with_pods.units, np.array(units, dtype=np.int64).reshape(len(measured), n_resources)]),
        pods=np.concatenate([with_pods.pods, pods]),
        held=np.concatenate([with_pods.held, np.zeros_like(pods)]),
    )
    unseen = [one for one in sleeping if asleep[one][1] is None]
    further = _load_of(seen, unseen, [asleep[one][0] for one in unseen], slots, n_steps)
    for one in unseen:
        if PODS in seen.tree.resources:
            further[:, asleep[one][0], seen.tree.resources.index(PODS)] += curves[one][_STEPS_BEFORE:]
    return Gathered(start, services, further, {group.service: group.example for group in groups})


def steps_of(horizon: Horizon, now: float, n_steps: int) -> tuple[float, Ints]:
    """Return when the half hour under way began, and the slot of each step, counted from midnight of the horizon's
    today."""
    position = horizon.position(now)
    start = now - (position - math.floor(position)) * STEP_SECONDS
    # The middle of each step: clocks that change move it by whole slots.
    middles = start + STEP_SECONDS * (np.arange(n_steps) + 0.5)
    slots = np.array([math.floor(horizon.position(float(one))) for one in middles], dtype=np.int64)
    return start, np.clip(slots, 0, HORIZON_DAYS * SLOTS_PER_DAY - 1)


# Inside


def _curves(seen: Copied, names: Sequence[ServiceKey], slots: Ints) -> Mapping[ServiceKey, Floats]:
    """(_STEPS_BEFORE + n_steps,) pods by service, the last half hours before now first."""
    if not names:
        return {}
    today = seen.horizon.days[0]
    days = (today - timedelta(days=1), *seen.horizon.days[: int(slots.max()) // SLOTS_PER_DAY + 1])
    at = SLOTS_PER_DAY + np.concatenate([np.arange(slots[0] - _STEPS_BEFORE, slots[0]), slots])
    return dict(zip(names, seen.profiles.expected_replicas(names, days)[:, at], strict=True))


def _of_groups(seen: Copied, groups: Sequence[Grouped], expected: Floats, start: float) -> ServicePods:
    n_steps, profiles = expected.shape[1], seen.profiles
    is_job = np.array([group.is_job for group in groups], dtype=bool)
    n = np.array([group.n for group in groups], dtype=np.int64)
    waiting = np.array([group.n_waiting for group in groups], dtype=np.int64)
    follows = np.array([profiles.autoscaled(g.service) and profiles.knows(g.service) for g in groups], dtype=bool)
    ends = [(at, until) for at, group in enumerate(groups) for until in group.running]
    of_pod = np.array([at for at, _ in ends], dtype=np.int64)
    # A pod that has run for longer than is usual may end at any moment: it counts for this half hour.
    until = np.array([math.ceil(min((one - start) / STEP_SECONDS, 1e6)) - 1 for _, one in ends], dtype=np.int64)
    running = still_running(of_pod, np.maximum(until, 0), len(groups), n_steps)
    lasting = pods_of_lasting(n, expected, follows, half_life=LIVE_HALF_LIFE_SLOTS)
    units = [[-(-one // group.n) for one in group.units] for group in groups]
    return ServicePods(
        row=np.array([group.row for group in groups], dtype=np.int64),
        units=np.array(units, dtype=np.int64).reshape(len(groups), len(seen.tree.resources)),
        pods=np.where(is_job[:, None], pods_of_jobs(expected, running), lasting),
        held=np.where(is_job[:, None], running, np.maximum(lasting - waiting[:, None], 0.0)),
    )


def _is_expected_back(service: ServiceKey, curve: Floats) -> bool:
    return service.runs_to_completion or bool(sleeps(curve[None, : _STEPS_BEFORE + 1])[0])


def _load_of(seen: Copied, services: Sequence[ServiceKey], rows: Sequence[int], slots: Ints, n_steps: int) -> Floats:
    """(n_steps, n_quotas, n_resources) units of their predicted load."""
    tree = seen.tree
    found = np.zeros((n_steps, len(tree.quotas), len(tree.resources)))
    if not services:
        return found
    days = seen.horizon.days[: int(slots.max()) // SLOTS_PER_DAY + 1]
    load = seen.profiles.total(services, days)[:, :, slots]  # (n_services, n_resources of the model, n_steps)
    for at, name in enumerate(tree.resources):
        resource = _LOADS.get(name)
        if resource is not None:
            np.add.at(found[:, :, at].T, np.array(rows), load[:, resource] * per_unit(name))
    return found
