"""The state of the tide: GPUs held in each pool, the model's forecast of services, and the annotations of trainings.

look        under the lock of the tables: copies of sums and references, milliseconds
uses_of     services on the inference side, and the forecast of each
trainings   workloads with what they may have; pods of training that cannot be scaled count with the others
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from base.arrays import Floats, Ints
from cluster.predicted.horizon import Horizon
from cluster.predicted.pod_profiles import Profiles
from cluster.tracking import TrackedCluster
from forecast.service_key import ServiceKey
from kube.objects.counted_pods import WAITING_SECONDS
from kube.objects.objects import PodInfo
from placement.devices.declared_devices import PodGpus
from placement.pod_groups.group_of_pod import group_of
from placement.usable_forecast import usable_forecast
from profiles.gpu.gpu_settings import TideOptions
from profiles.gpu.tide.gpu_demand import ServiceGpus
from profiles.gpu.tide.gpu_holders import GpuPod, SittingGangs, TideTable
from profiles.gpu.tide.tide_annotation import MOVES, MoveRecord, read_record
from profiles.gpu.tide.tide_plan import Training
from profiles.gpu.tide.training_annotations import LEAST, Role, TrainingTerms, role_of, training_terms
from profiles.gpu.tide.workloads import WorkloadState


def least_by_workload(gangs: SittingGangs, pods: Iterable[GpuPod]) -> dict[ServiceKey, int]:
    """Return replicas that a training needs whose pods are a gang: with fewer none of its pods can run."""
    of_workload: dict[ServiceKey, list[PodInfo]] = {}
    for one in pods:
        if one.role is Role.TRAINING and group_of(one.pod) is not None:
            of_workload.setdefault(one.workload, []).append(one.pod)
    return {workload: least_of_gang(gangs, its) for workload, its in of_workload.items()}


def least_of_gang(gangs: SittingGangs, pods: Sequence[PodInfo]) -> int:
    """Return how many of these pods of one workload are needed in addition to the group's other members; 0 = they are
    in no group, or the group is unusable.
    """
    group = group_of(pods[0])
    if group is None:
        return 0
    mine = {pod.uid for pod in pods}
    others = {pod.uid for pod in (*gangs.sitting(group), *gangs.waiting(group))} - mine
    return max(0, gangs.minimum(group) - len(others))


def least_with_gang(gang: int, least: int, most: int) -> int:
    """Replicas. gang: that its gang needs; a gang that is larger than the training may be does not make it larger."""
    return max(least, min(gang, most))


def gang_mistake(gang: int, said: int | None, most: int) -> str:
    """For people, '' = none. said: as min-replicas has it."""
    if gang > most:
        return f"its PodGroup needs {gang} of its pods, and it has {most} at most: it cannot run"
    if said is not None and said < gang:
        return f"{LEAST} is {said}, and its PodGroup needs {gang} of its pods: it has {gang} at least"
    return ""


@dataclass(frozen=True, slots=True)
class Look:
    """
    pods     : all that hold GPUs or wait for some
    pool     : (n_rows,) number of each node's pool, -1 = none
    pools    : names
    capacity : (n_pools,) GPUs
    largest  : (n_pools,) GPUs of the largest node
    profiles : what the model expects; None = there is no usable forecast
    horizon  : the week of the forecast
    gangs    : who knows the PodGroups; None = they are not heeded
    least    : replicas that gangs need of workloads of training that have pods
    """

    pods: tuple[GpuPod, ...]
    pool: Ints
    pools: tuple[str, ...]
    capacity: Floats
    largest: Floats
    profiles: Profiles | None
    horizon: Horizon | None
    gangs: SittingGangs | None
    least: Mapping[ServiceKey, int]


@dataclass(frozen=True, slots=True)
class KnownTraining:
    """A training with the workload that it is, the record of its moves, what it says, its replicas before the tide
    moved it, and those that its gang needs."""

    training: Training
    state: WorkloadState
    record: MoveRecord
    terms: TrainingTerms
    size: int
    gang: int = 0


def look(table: TideTable, cluster: TrackedCluster) -> Look:
    """Under the lock of the tables."""
    predicted = usable_forecast(cluster)
    return Look(
        pods=tuple(table.pods.values()),
        pool=table.pool_of_rows(cluster.state.n_rows).copy(),
        pools=tuple(table.pools),
        capacity=table.capacity(),
        largest=table.largest(),
        profiles=None if predicted is None else predicted.profiles,
        horizon=None if predicted is None else predicted.horizon,
        gangs=table.gangs,
        least={} if table.gangs is None else least_by_workload(table.gangs, table.pods.values()),
    )


def workloads_seen(seen: Look) -> dict[ServiceKey, str]:
    """Workloads that pods of training belong to, and the UID that these name; '' = of a Deployment they name none."""
    return {
        one.workload: one.pod.owner_uid if one.workload.kind == one.pod.owner.kind else ""
        for one in seen.pods
        if one.role is Role.TRAINING
    }


def uses_of(seen: Look, known: Sequence[KnownTraining], now: float) -> list[ServiceGpus]:
    """All that is not to be moved. Pods that wait count if they are of inference, and may be helped by GPUs.

    now: unix seconds
    """
    n_pools = len(seen.pools)
    scaled = {one.state.key: one.training.pool for one in known}
    # Time for which they may wait for draining trainings alone.
    made_since = now - WAITING_SECONDS - max((one.training.lead for one in known), default=0.0)
    held: dict[str, Floats] = {}
    waiting: dict[str, Floats] = {}
    of_service: dict[str, list[GpuPod]] = {}
    for one in seen.pods:
        pool = _pool(seen, one.row)
        if one.role is Role.TRAINING and (one.row < 0 or scaled.get(one.workload) == pool):
            continue
        name = str(one.workload if one.role is Role.TRAINING else one.service)
        held.setdefault(name, np.zeros(n_pools))
        waiting.setdefault(name, np.zeros(n_pools))
        if pool >= 0:
            held[name][pool] += one.gpus
        if one.role is not Role.TRAINING:
            of_service.setdefault(name, []).append(one)
    uses = []
    for name, of_it in held.items():
        pods = of_service.get(name, [])
        share = _share(of_it, pods, seen)
        can_run = [one for one in pods if one.row >= 0 or _may_find_a_node(one, seen, made_since)]
        for pod in can_run:
            if pod.row < 0 and pod.role is Role.INFERENCE:
                waiting[name] += pod.gpus * _where_it_fits(pod.gpus, share, seen)
        expected = _expected(can_run or pods, seen)
        uses.append(ServiceGpus(name, of_it, waiting[name], share, expected, training=not pods))
    return uses


def trainings_of(
    seen: Look, states: Mapping[ServiceKey, WorkloadState], options: TideOptions, pod_gpus: PodGpus
) -> list[KnownTraining]:
    """Those of the workloads that the tide may move. pod_gpus: of a template, where there are no pods."""
    pods: dict[ServiceKey, list[GpuPod]] = {}
    for one in seen.pods:
        if one.role is Role.TRAINING:
            pods.setdefault(one.workload, []).append(one)
    found = []
    for key, state in states.items():
        known = _training(state, pods.get(key, ()), seen, options, pod_gpus)
        if known is not None:
            found.append(known)
    return sorted(found, key=lambda one: one.training.key)


# Inside

_SMALL: Final = 1e-6


def _pool(seen: Look, row: int) -> int:
    return int(seen.pool[row]) if 0 <= row < len(seen.pool) else -1


def _share(held: Floats, pods: Sequence[GpuPod], seen: Look) -> Floats:
    """Of the GPUs of a service that each pool has; of one that has none yet by the pools' sizes."""
    if held.sum() > 0:
        return np.asarray(held / held.sum())
    total = seen.capacity.sum()
    return np.asarray(seen.capacity / total) if total > 0 else np.zeros(len(seen.pools))


def _may_find_a_node(one: GpuPod, seen: Look, made_since: float) -> bool:
    """Return whether the pod waits for GPUs alone, as far as is known."""
    fits = bool((seen.largest >= one.gpus - _SMALL).any())
    return fits and not one.pod.gates and one.pod.created > made_since


def _where_it_fits(gpus: float, share: Floats, seen: Look) -> Floats:
    """(n_pools,) of one pod: as its service's, in pools that have a node of its size."""
    fits = seen.largest >= gpus - _SMALL
    of_it = np.where(fits, share, 0.0)
    if not of_it.any():
        of_it = np.where(fits, seen.capacity, 0.0)
    total = of_it.sum()
    return np.asarray(of_it / total) if total > 0 else of_it


def _expected(pods: Sequence[GpuPod], seen: Look) -> Floats | None:
    """(n_slots,) GPUs from the half hour under way on, of a service whose replicas follow its load."""
    if not pods or seen.profiles is None or seen.horizon is None:
        return None
    service = pods[0].service
    if not (service in seen.profiles.row_of and seen.profiles.autoscaled(service)):
        return None
    replicas = seen.profiles.expected_replicas([service], seen.horizon.days)[0]
    per_pod = float(np.mean([one.gpus for one in pods]))
    return np.asarray(replicas[max(0, min(seen.horizon.slot, len(replicas) - 1)) :] * per_pod)


def _training(
    state: WorkloadState, pods: Sequence[GpuPod], seen: Look, options: TideOptions, pod_gpus: PodGpus
) -> KnownTraining | None:
    of_pod = next((one.pod.annotations for one in pods), None)
    if of_pod is None:
        of_pod = {} if state.template is None else state.template.annotations
    said = [one for one in (state.annotations, of_pod) if one]
    if state.is_over or state.replicas is None or not seen.pools:
        return None
    if not pods and state.template is not None and role_of(state.template.annotations) is not Role.TRAINING:
        return None  # a workload with the label only: its pods count with inference, and must not count twice
    terms = training_terms(*said)
    record = read_record(state.annotations.get(MOVES)).seen_with(state.replicas, options.dwell, state.generation)
    gpus = max((one.gpus for one in pods), default=0.0)
    if not gpus and state.template is not None:
        gpus = pod_gpus(state.template, None)
    gpus = gpus or record.gpus
    if gpus <= 0:
        return None
    # A client that changed the number after the tide means the new one.
    size = record.size if record.size and state.replicas == record.after else state.replicas
    least = terms.least if terms.least is not None else min(size, size if terms.most is None else terms.most)
    most = max(least, size if terms.most is None else terms.most)
    gang = _gang(state, pods, record, seen)
    mistakes = "; ".join(filter(None, (terms.mistakes, gang_mistake(gang, terms.least, most))))
    least = least_with_gang(gang, least, most)
    pool = _pool_of(pods, record, seen)
    held = sum(one.gpus for one in pods if _pool(seen, one.row) == pool)
    training = Training(
        key=str(state.key),
        pool=pool,
        gpus=gpus,
        replicas=state.replicas,
        least=least,
        most=most,
        lead=options.lead(terms.grace),
        priority=max((one.pod.priority for one in pods), default=0),
        created=state.created,
        taken=not state.replicas and record.size > 0 and not record.after,
        waiting=any(one.row < 0 for one in pods),
        draining=max(0.0, held - state.replicas * gpus),
        moved=record.at,
        moves=record.moves,
    )
    return KnownTraining(training, state, record, replace(terms, mistakes=mistakes), size, gang)


def _gang(state: WorkloadState, pods: Sequence[GpuPod], record: MoveRecord, seen: Look) -> int:
    """Replicas that its gang needs, 0 = it is in none."""
    if seen.gangs is None:
        return 0
    some_pod = pods[0].pod if pods else state.template
    if some_pod is None:
        return record.gang
    if group_of(some_pod) is None:
        return 0
    known = seen.least.get(state.key, 0) if pods else least_of_gang(seen.gangs, [some_pod])
    return known or record.gang  # PodGroups may not have been read yet


def _pool_of(pods: Sequence[GpuPod], record: MoveRecord, seen: Look) -> int:
    """Where most of its GPUs are; else where they were; else the largest pool."""
    held = np.zeros(len(seen.pools))
    for one in pods:
        if (pool := _pool(seen, one.row)) >= 0:
            held[pool] += one.gpus
    if held.any():
        return int(held.argmax())
    if record.pool in seen.pools:
        return seen.pools.index(record.pool)
    return int(seen.capacity.argmax())
