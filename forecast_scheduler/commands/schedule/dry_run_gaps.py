"""What a dry run or an explanation of a cluster file could not judge by, because the file does not hold it.

Each gap names the missing input and what follows. All of them are found by comparing the pods in question with the
objects of the file; a file that holds everything has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cluster.degradation import Level
from cluster.runs.expected import RunSource
from cluster.tables.cluster_file import ClusterObjects
from kube.decoding.decoding import Kind
from kube.decoding.watched_kinds import Watched
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from kube.objects.storage_objects import VolumeClaimInfo, VolumeInfo
from placement.devices.device_demand import gpu_demand
from placement.disruption_budgets import WATCHED_BUDGETS
from placement.pod_groups.group_of_pod import group_of
from placement.policies.policy import POLICY_ANNOTATION, shortened_name
from placement.policies.provider import PolicyProvider
from placement.topology.zone_decoding import node_resource_topologies
from placement.virtual_node_table import is_labelled_virtual
from profiles.dry_loop import Planned, gpus_in, jobs_in
from profiles.gpu.dra.dra_decoding import WATCHED_CLAIMS, WATCHED_SLICES
from profiles.job.cron.cron_jobs import WATCHED_CRON_JOBS
from scheduler.gangs.group_decoding import WATCHED_GROUPS
from scheduler.scheduling_tables import ScheduleTables
from scorer.scorer import Scorer

_NAMED: Final = 3
_KNOWN: Final = 10
_BINDINGS: Final = ("forecast-scheduler.io", "SchedulerConfigBinding")


@dataclass(frozen=True, slots=True)
class Gap:
    """what: the missing input, in a few words; because: what was not found, and what follows."""

    what: str
    because: str


def gaps_of_scores(scorer: Scorer) -> Iterator[Gap]:
    """What the scores lack: a forecast, and measured usage."""
    status = scorer.status()
    if status.level >= Level.REQUESTS:
        yield Gap("forecast", f"{'; '.join(status.reasons)}: nodes are judged by requests, nothing waits for a valley")
    if not status.measured_nodes:
        reasons = "no usage was given (--prometheus, or --history with --at): no live correction of the forecast"
        yield Gap("live usage", f"usage is measured on 0 of {status.nodes} nodes: {reasons}")


def gaps_of_volumes(pods: Iterable[PodInfo], objects: ClusterObjects) -> Iterator[Gap]:
    """Claims that these pods mount, and volumes of such claims, that the file does not hold."""
    claims = {
        (one.namespace, one.name): one
        for one in objects.others.get(Kind.CLAIMS, ())
        if isinstance(one, VolumeClaimInfo)
    }
    volumes = {one.name for one in objects.others.get(Kind.VOLUMES, ()) if isinstance(one, VolumeInfo)}
    wanted = {(pod.namespace, volume.claim) for pod in pods for volume in pod.volumes if volume.claim}
    missing = sorted(f"{namespace}/{name}" for namespace, name in wanted - claims.keys())
    if missing:
        yield Gap("volumes", f"PersistentVolumeClaims {_named(missing)} are not in the file: pods that mount them wait")
    bound = [claims[key] for key in wanted & claims.keys()]
    lost = sorted({one.volume for one in bound if one.volume and one.volume not in volumes})
    if lost:
        yield Gap(
            "volumes", f"PersistentVolumes {_named(lost)} are not in the file: the nodes they allow are not known"
        )
    classes = {one.name for one in objects.others.get(Kind.STORAGE_CLASSES, ())}
    unknown = sorted({one.storage_class for one in bound if not one.volume and one.storage_class} - classes)
    if unknown:
        yield Gap("volumes", f"StorageClasses {_named(unknown)} are not in the file: what they could provision is open")


def gaps_of_claims(pods: Iterable[PodInfo], objects: ClusterObjects) -> Iterator[Gap]:
    """ResourceClaims of these pods, and the devices to allocate, that the file does not hold."""
    there = {one.key for one in objects.of(WATCHED_CLAIMS)}
    asking = [pod for pod in pods if pod.resource_claims]
    wanted = {(pod.namespace, one.claim) for pod in asking for one in pod.resource_claims if one.claim is not None}
    missing = sorted(f"{namespace}/{name or '(not created yet)'}" for namespace, name in wanted - there)
    if missing:
        yield Gap("ResourceClaims", f"{_named(missing)} are not in the file: their pods wait")
    if asking and not _count(objects, WATCHED_SLICES):
        yield Gap("ResourceClaims", "the file holds no ResourceSlice: no device can be allocated")


def gaps_of_policies(pods: Iterable[PodInfo], provider: PolicyProvider | None) -> Iterator[Gap]:
    """Pods whose annotation names a policy that is not in effect. provider: None = the settings name no policies."""
    unknown = {
        f"{pod.namespace}/{pod.name}": shortened_name(pod.annotations[POLICY_ANNOTATION])
        for pod in pods
        if pod.annotations.get(POLICY_ANNOTATION)
        and (provider is None or provider.policies.choice(pod, provider.labels_of).unknown)
    }
    if not unknown:
        return
    names = ", ".join(map(repr, sorted(set(unknown.values()))[:_NAMED]))
    if provider is None:
        where = "no policies are given (policies.file of the settings, --policies): the settings apply to their pods"
    else:
        known = ", ".join([*provider.policies.policies][:_KNOWN])
        where = f"there is no such policy (there are {known}): rules or the default choose theirs"
    yield Gap("policies", f"annotation {POLICY_ANNOTATION} of {_named(sorted(unknown))} names {names}, and {where}")


def gaps_of_tables(
    planned: Sequence[Planned],
    objects: ClusterObjects,
    tables: ScheduleTables,
    namespaces: Sequence[str],
) -> Iterator[Gap]:
    """What gangs, jobs, preemption, cards and policies lack for the pods of a dry run.

    namespaces : those whose labels policy rules ask for and the file does not hold
    """
    pods = [one.pod for one in planned]
    yield from _gangs(pods, objects, tables)
    yield from gaps_of_volumes(pods, objects)
    yield from gaps_of_claims(pods, objects)
    yield from _jobs(pods, objects, tables)
    yield from _evictions(planned, objects)
    yield from _cards(pods, objects, tables)
    if namespaces:
        yield Gap("namespaces", f"labels of {_named(namespaces)} are not in the file: rules by them do not hold there")
    unadmitted = [f"{pod.namespace}/{pod.name}" for pod in pods if pod.uid == f"{pod.namespace}/{pod.name}"]
    if unadmitted:
        yield Gap(
            "admission", f"{_named(unadmitted)} have no UID: the webhook's templates and defaults are not applied"
        )
    elif objects.further.get(_BINDINGS):
        n = len(objects.further[_BINDINGS])
        yield Gap(
            "admission", f"{n} SchedulerConfigBindings are in the file: they are applied to pods at creation only"
        )


def other_waiting_pods(pods: Iterable[PodInfo], names: Collection[str]) -> Iterator[Gap]:
    """Pods that wait for schedulers of which nothing is decided here."""
    others: dict[str, int] = {}
    for pod in pods:
        if waits(pod) and not pod.terminating and pod.scheduler_name not in names:
            others[pod.scheduler_name] = others.get(pod.scheduler_name, 0) + 1
    for name, n in sorted(others.items()):
        yield Gap("other schedulers", f"{n} pods wait for {name}: where they go is not decided here")


# Inside


def _gangs(pods: Sequence[PodInfo], objects: ClusterObjects, tables: ScheduleTables) -> Iterator[Gap]:
    named = {group for pod in pods if (group := group_of(pod)) is not None}
    if tables.gangs is None:
        if named:
            yield Gap(
                "gangs", f"schedule.gangs.enabled is false: pods of {_named(sorted(named))} are placed one by one"
            )
        return
    there = {one.key for watched in WATCHED_GROUPS.values() for one in objects.of(watched)}
    missing = sorted(named - there - {group.key for _, group in tables.gangs.stated() if group is not None})
    if missing:
        yield Gap("gangs", f"PodGroups {_named(missing)} are not in the file: their pods wait")


def _jobs(pods: Sequence[PodInfo], objects: ClusterObjects, tables: ScheduleTables) -> Iterator[Gap]:
    jobs = jobs_in(tables)
    if jobs is None:
        return
    if not _count(objects, WATCHED_CRON_JOBS):
        yield Gap("storms", "the file holds no CronJob: no storm of starting jobs is foreseen, no room is kept for one")
    runs, state = jobs.runs, tables.view.state
    of_jobs = [pod for pod in pods if runs.is_job(pod)]
    unknown = [pod for pod in of_jobs if runs.of(pod, state.service_key(pod)).source is RunSource.DEFAULT]
    if unknown:
        shown = _named([pod.name for pod in unknown])
        yield Gap("run lengths", f"nothing says how long {shown} run: each counts for scorer.default_run")
    virtual = [node.name for node in objects.nodes if is_labelled_virtual(node)]
    if virtual:
        yield Gap("providers", f"{_named(virtual)} are virtual nodes: how their provider answers now is not in a file")


def _evictions(planned: Sequence[Planned], objects: ClusterObjects) -> Iterator[Gap]:
    evicted = [victim for one in planned for victim in one.evicts]
    if not evicted:
        return
    if not _count(objects, WATCHED_BUDGETS):
        yield Gap("disruption budgets", "the file holds no PodDisruptionBudget: none protects the pods to be evicted")
    owned = sum(bool(victim.owner_uid) for victim in evicted)
    if owned:
        yield Gap("replacements", f"controllers make {owned} new pods for those evicted: they are not placed here")


def _cards(pods: Sequence[PodInfo], objects: ClusterObjects, tables: ScheduleTables) -> Iterator[Gap]:
    gpus, rules = gpus_in(tables), tables.rules
    devices = rules.devices
    if gpus is not None and any(devices.n_devices[row] > 0 for row in gpus.node_pods.rows_with_offline):
        yield Gap("idle cores", "offline pods sit on GPU nodes: whether they have to make room is not decided here")
    if any(gpu_demand(pod, devices.options) is not None for pod in pods):
        yield Gap(
            "past demand for cards", "a running scheduler weighs the pods of the last hours: here those in the file"
        )
        zones = rules.topology.zones
        if zones is not None and not _count(objects, node_resource_topologies(devices.options)):
            yield Gap("NUMA zones", "the file holds no NodeResourceTopology: pods are not aligned with zones")


def _count(objects: ClusterObjects, watched: Watched[Any]) -> int:
    return len(objects.further.get((watched.group, watched.singular), ()))


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
