"""Which pods may not be moved, and why: the first reason that holds, the plainest first.

A pod is moved by evicting it, so something must create it again; the service must be whole before, and must not be
gone meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from base.excluded import SYSTEM_NAMESPACES
from forecast.service_key import NO_OWNER
from kube.objects.eviction_annotations import AUTOSCALER_SAFE_LOCAL_VOLUMES
from kube.objects.objects import PodInfo, PodPhase
from placement.pod_groups.group_of_pod import group_of
from rebalancer.costs.move_facts import MoveFacts, Occasion, VolumeReach
from rebalancer.costs.owner_wish import MOVE_BY_SURGE, REBALANCE, OwnerWish, Wish
from rebalancer.rebalance_settings import CostOptions
from scorer.scoring_policy import OPT_OUT_ANNOTATION, opts_out

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
"""Above are system-cluster-critical and system-node-critical (pkg/apis/scheduling/types.go)."""

SURGED_KINDS: Final = frozenset({"Deployment"})
"""Owners that can be made to start a replacement before the pod goes."""


def protection(pod: PodInfo, facts: MoveFacts, occasion: Occasion, wish: OwnerWish, options: CostOptions) -> str:
    """Return why a pod may not be moved on this occasion; "" = it may."""
    for reasons in (
        _of_its_state(pod, occasion, options),
        _of_its_kind(pod, facts, wish, options),
        _of_its_owner(pod, occasion, wish),
        _of_its_disks(pod, facts, wish, options),
        _of_its_service(pod, facts, occasion, wish),
    ):
        for reason in reasons:
            return reason
    return ""


def needs_surge(facts: MoveFacts) -> bool:
    """Whether its service is gone while it moves, unless a second replica comes first."""
    return facts.replicas <= 1


def _of_its_state(pod: PodInfo, occasion: Occasion, options: CostOptions) -> Iterator[str]:
    if pod.stands_in:
        yield "it holds the room of a Reservation, and is no pod"
    if not pod.node:
        yield "it is on no node"
    if pod.terminating:
        yield "it is being deleted"
    if pod.phase is not PodPhase.RUNNING:
        yield f"its phase is {pod.phase.value}"
    if pod.ready is None:
        yield "it is not ready"
    if occasion.begin.timestamp() - pod.created < options.least_age:
        yield f"it is younger than {options.least_age:g} s"


def _of_its_kind(pod: PodInfo, facts: MoveFacts, wish: OwnerWish, options: CostOptions) -> Iterator[str]:
    kind = facts.service.kind
    if facts.excluded:
        yield facts.excluded
    if pod.owner == NO_OWNER:
        yield "it has no controller that would create it again"
    if facts.service.belongs_to_node:
        yield f"it belongs to its node ({kind})"
    if kind not in options.owners:
        yield f"its owner is a {kind}, which rebalance.cost.owners does not name"
    if group_of(pod) is not None:
        yield "it is part of a gang, which runs with all of its pods or none"
    if pod.resource_claims:
        yield "it holds devices by resource claims"
    if wish.freed_by:
        return
    if pod.priority > HIGHEST_USER_PRIORITY:
        yield "its priority is that of system pods"
    if pod.namespace in SYSTEM_NAMESPACES:
        yield f"its namespace {pod.namespace} is that of the system"
    if pod.shares_host:
        yield f"it shares its node's network or processes: annotation {REBALANCE}: allowed lifts this"


def _of_its_owner(pod: PodInfo, occasion: Occasion, wish: OwnerWish) -> Iterator[str]:
    if opts_out(pod):
        yield f"annotation {OPT_OUT_ANNOTATION}"
    if wish.wish is Wish.NEVER:
        yield wish.because
    if wish.hours is not None and not wish.hours.overlaps(occasion.begin, occasion.end, occasion.zone):
        yield f"its owner allows moves in these hours only: {wish.hours.text}"


def _of_its_disks(pod: PodInfo, facts: MoveFacts, wish: OwnerWish, options: CostOptions) -> Iterator[str]:
    if not (wish.freed_by or options.move_local_storage):
        safe = {name.strip() for name in pod.annotations.get(AUTOSCALER_SAFE_LOCAL_VOLUMES, "").split(",")}
        lost = [name for name in pod.local_volumes if name not in safe]
        if lost:
            yield f"the content of its local volume {lost[0]} would be lost"
    if facts.volumes is VolumeReach.NODE:
        yield "a volume of it is bound to its node"
    if facts.volumes is VolumeReach.UNKNOWN:
        yield "it is not known where its volumes can be mounted"


def _of_its_service(pod: PodInfo, facts: MoveFacts, occasion: Occasion, wish: OwnerWish) -> Iterator[str]:
    begin = occasion.begin.timestamp()
    if facts.cooling_until is not None and begin < facts.cooling_until:
        yield "it or another pod of its service has moved lately"
    if facts.service.runs_to_completion:
        # Single pods are usual there, and what counts is whether it still runs when it matters.
        if facts.remaining_seconds is None:
            yield "it is not known how long its Job still runs"
        elif begin + facts.remaining_seconds <= occasion.peak.timestamp():
            yield "its Job ends before the peak"
    else:
        if facts.ready_replicas < facts.replicas:
            yield f"only {facts.ready_replicas} of {facts.replicas} replicas of its service are ready"
        if needs_surge(facts) and not (wish.by_surge and facts.service.kind in SURGED_KINDS):
            yield f"it is the only replica: annotation {MOVE_BY_SURGE} lifts this for pods of a Deployment"
    if facts.disruptions_allowed == 0 and not needs_surge(facts):
        yield "a PodDisruptionBudget allows no disruption now"
