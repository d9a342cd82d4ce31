"""Plugin DynamicResources: pods get the devices that their ResourceClaims ask for.

    queue     pre_enqueue   the claims are there
    cycle     filter        where claims that are allocated can be used, and the others can be allocated
              reserve       devices are chosen, and count as used from now on
    binding   pre_bind      finalizer, allocation and reservation are written
    failure   unreserve     what was written is taken back; devices are used until it is known that it was
              post_filter   a claim that keeps its only pod from every node is deallocated

Source: framework/plugins/dynamicresources of Kubernetes 1.37. A pod that is rejected is not helped by eviction, as
upstream has it: a claim outlives its pods by a moment.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from kube.session.session_calls import Session
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.filters.filter import ClusterView, Filter, PlainFilter, Rejection, rejected
from placement.filters.rejections import every_node, found
from placement.scores.node_score import NodeScore, default_normalize
from placement.status import SUCCESS, Code, Status
from profiles.gpu.dra.allocation_status import made_allocation
from profiles.gpu.dra.allocator import AllocationFailed, NodeUnusable
from profiles.gpu.dra.claim_feasibility import NO_DEVICES, ClaimFeasibility, misfits
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.claim_writer import NotWritten
from profiles.gpu.dra.claim_writes import (
    READY_SECONDS,
    WRITE_SECONDS,
    ClaimWrites,
    DeviceReadiness,
    PodAllocations,
    needs_conditions,
    readiness_of,
)
from profiles.gpu.dra.dra_objects import ClaimKey, ResourceClaimInfo
from profiles.gpu.dra.extended_resources import created_key
from profiles.gpu.dra.pod_claims import (
    MissingClaim,
    PodClaims,
    asks_for_devices,
    claims_of_pod,
    names_of,
    open_claims,
    usable_claims,
)
from profiles.gpu.dra.slice_cards import SliceCardTable
from profiles.gpu.dra.unsupported import refusal_of

logger = logging.getLogger(__name__)

_NAME: Final = "DynamicResources"
_ELSEWHERE: Final = "resourceclaim not available on the node"
_MARGIN_SECONDS: Final = 60.0


class DynamicResources(PlainFilter, NodeScore):
    """PreEnqueue, Filter, Score, Reserve, PreBind, PostBind, PostFilter.

    table : Follower, to be attached to the tables; watches feed its sinks, and the queue receives its listeners:
            `on_claim` as UNSCHEDULED_POD_CHANGED, `on_room` as FORECAST_CHANGED
    """

    name = _NAME
    woken_by = frozenset({EventKind.NODE_ADDED, EventKind.NODE_CHANGED, EventKind.FORECAST_CHANGED})

    def __init__(
        self,
        session: Session | None,
        view: ClusterView,
        table: DraTable,
        *,
        keep: Callable[[str, float], None] = lambda uid, until: None,
        is_assumed: Callable[[str], bool] = lambda uid: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        session    : None = a dry run, nothing is written
        keep       : called under the lock with the UID of a pod and the unix seconds until which it stays assumed
        is_assumed : whether the tables have the pod, by UID, where the API server is not known to have it
        """
        self.table, self._view = table, view
        self._keep, self._is_assumed, self._clock = keep, is_assumed, clock
        self.feasibility: Final = ClaimFeasibility(table)
        self._writes: Final = ClaimWrites(session, table, is_held=self._is_held)
        self.writer: Final = self._writes.writer
        self._held: dict[str, PodAllocations] = {}  # by UID, changed under the lock of the tables
        table.on_pod.append(self._seen)

    def slice_cards(self, resources: Sequence[str]) -> SliceCardTable:
        """Counts cards by the same selectors. resources: of which one is a card."""
        return SliceCardTable(self.table, resources, self.feasibility.expressions.matches)

    def tick(self) -> None:
        """Every second or so: searches that were interrupted go on."""
        with self.table.locked():
            if self.feasibility.time.may_go_on():
                self.table.room()

    # Queue

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if not pod.resource_claims:
            return SUCCESS
        claims = claims_of_pod(pod, self.table)
        if not isinstance(claims, MissingClaim):
            return SUCCESS
        if claims.key is not None:
            self.table.await_claim(claims.key, pod)
        return Status(Code.UNRESOLVABLE, _NAME, claims.reason)

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        return Hint.QUEUE if pod.resource_claims or self._asks(pod) else Hint.SKIP

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Whether it says nothing of the pod, wherever others land."""
        return not self._asks(pod)

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Each of them by itself: what one is given decides where the next can go."""
        return pod.uid if pod.resource_claims or self._asks(pod) else None

    # Cycle

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        if not self._asks(pod):
            return ()
        found_out = self._rejections(pod, view)
        if found_out:
            self.table.was_rejected()
        return found_out

    def post_filter(
        self, pod: PodInfo, view: ClusterView, filters: Sequence[Filter], rejections: Sequence[Rejection]
    ) -> Status:
        """Never a nomination. See PostFilter."""
        status = Status(Code.UNSCHEDULABLE, _NAME, "still not schedulable")
        if not self._asks(pod) or self.writer is None:
            return status
        if (made := self.table.extended_claim_of(pod)) is not None and self._writes.remove(made.key, pod):
            return Status(Code.UNSCHEDULABLE, _NAME, f"resource claim {made.name} is being deleted")
        claims = usable_claims(pod, self.table)
        if isinstance(claims, str):
            return status
        others = rejected([one for one in rejections if one.reason != _ELSEWHERE], view.n_rows)
        for claim, _ in claims.allocated:
            keeps_away = self._out_of_reach(claim, view) & ~others & view.state.alive
            if keeps_away.any() and self._is_only_for(claim, pod) and self._writes.deallocate(claim, pod):
                return Status(Code.UNSCHEDULABLE, _NAME, f"resource claim {claim.name} is being deallocated")
        return status

    def skips(self, pod: PodInfo, view: ClusterView, rows: Ints) -> bool:
        claims = usable_claims(pod, self.table) if names_of(pod) else ""
        has_lists = isinstance(claims, PodClaims) and any(
            request.is_list for claim in claims.open for request in claim.spec.requests
        )
        return not has_lists

    def score(self, pod: PodInfo, view: ClusterView, rows: Ints) -> Ints:
        """Nodes where earlier entries of firstAvailable can be had, see NodeScore."""
        claims = usable_claims(pod, self.table)
        scores = np.zeros(view.n_rows, dtype=np.int64)
        if isinstance(claims, str):
            return scores[rows]
        wanted = np.zeros(view.n_rows, dtype=bool)
        wanted[rows] = True
        for nodes, to_allocate, _ in open_claims(claims, pod, self.table, view):
            if to_allocate:
                meant = nodes & wanted
                scores[meant] = self.feasibility.answers(to_allocate, view, meant).score[: view.n_rows][meant]
        return default_normalize(scores[rows], reverse=False)

    def reserve(self, pod: PodInfo, node: str) -> Status:
        """See Reserve; under the lock of the tables."""
        if not self._asks(pod):
            return SUCCESS
        status = self._reserve(pod, node)
        if not status.is_success:
            self.pre_enqueue(pod)  # it may wait for a claim that was there a moment ago
            self.table.was_rejected()
        return status

    def unreserve(self, pod: PodInfo, node: str) -> None:
        if pod.uid not in self._held:
            return
        with self.table.locked():
            held = self._held.get(pod.uid)
            if held is None or held.node != node:
                return
            del self._held[pod.uid]
            written = []
            made = None if held.extended is None else created_key(pod)
            for key, (uid, _) in held.claims.items():
                flight, claim = self.table.in_flight.get(key), self.table.claim(*key)
                if flight is not None and flight.uid == uid:
                    flight.users.discard(pod.uid)
                if made is not None and key == made:
                    continue
                if claim is not None and claim.uid == uid and (key in held.sent or claim.is_reserved_for(pod.uid)):
                    written.append(claim)
                elif flight is not None and flight.uid == uid and not flight.users:
                    self.table.forget(key)
        for claim in written:
            self._writes.give_back(claim, pod)
        if made is not None and made in held.sent:
            self._writes.remove(made, pod)

    # Binding

    def concerns(self, pod: PodInfo) -> bool:
        return pod.uid in self._held

    async def pre_bind(self, pod: PodInfo, node: str) -> Status:
        held = self._held.get(pod.uid)
        if held is None or held.node != node or self.writer is None:
            return Status(Code.ERROR, _NAME, "what was reserved is gone")
        try:
            await self._writes.write(held, pod)
        except NotWritten as error:
            return Status(Code.ERROR, _NAME, str(error))
        except TimeoutError:
            return Status(Code.ERROR, _NAME, f"claims were not written in {WRITE_SECONDS:g} s")
        try:
            await self._writes.ready(held, self._clock)
        except NotWritten as error:
            return Status(Code.ERROR, _NAME, str(error))
        held.is_written = True
        return SUCCESS

    def post_bind(self, pod: PodInfo, node: str) -> None:
        """See PostBind: what was allocated for the pod stays its own. In a dry run it is not bound: its devices are
        used until it is gone, or another scheduler has bound it.
        """
        held = self._held.get(pod.uid)
        if held is not None and held.node == node and self.writer is not None:
            with self.table.locked():
                self._bound(pod, held)

    # Inside

    def _asks(self, pod: PodInfo) -> bool:
        return asks_for_devices(pod, self.table)

    def _seen(self, pod: PodInfo) -> None:
        """Take from the watch what became of a pod, if no other part reports it: the answer to its binding was lost, or
        this is a dry run. While claims are being written, their writer reports it.
        """
        held = self._held.get(pod.uid)
        if held is None or (self.writer is not None and not held.is_written):
            return
        is_gone = pod.uid not in self.table.state.pods
        if not is_gone and (not pod.node or self._is_assumed(pod.uid)):
            return
        if is_gone or self.writer is None:
            self.unreserve(pod, held.node)
        else:
            self._bound(pod, held)

    def _bound(self, pod: PodInfo, held: PodAllocations) -> None:
        self._held.pop(pod.uid, None)
        self.table.made.difference_update(uid for uid, _ in held.claims.values())

    def _reserve(self, pod: PodInfo, node: str) -> Status:
        claims, row = usable_claims(pod, self.table), self._view.state.row_of.get(node)
        if isinstance(claims, str) or row is None:
            return Status(Code.UNSCHEDULABLE, _NAME, claims if isinstance(claims, str) else f"node {node} is gone")
        if any(self._out_of_reach(claim, self._view)[row] for claim, _ in claims.allocated):
            return Status(Code.UNSCHEDULABLE, _NAME, _ELSEWHERE)
        _, to_allocate, extended = next(one for one in open_claims(claims, pod, self.table, self._view) if one[0][row])
        try:
            chosen = self.feasibility.chosen(to_allocate, self._view, row) if to_allocate else ()
        except (AllocationFailed, NodeUnusable) as error:
            return Status(Code.UNSCHEDULABLE, _NAME, str(error))
        if chosen is None:
            return Status(Code.UNSCHEDULABLE, _NAME, NO_DEVICES)
        held = self._held[pod.uid] = PodAllocations(node, {}, extended)
        for claim, devices in zip(to_allocate, chosen, strict=True):
            made = made_allocation(claim, devices, self.table.class_of, node=node, now=self._clock())
            self.table.reserve(claim, made, pod.uid)
            held.claims[claim.key] = (claim.uid, made)
        for claim, _ in claims.allocated:
            flight = self.table.in_flight.get(claim.key)
            if flight is not None:
                flight.users.add(pod.uid)
            held.claims[claim.key] = (claim.uid, None if flight is None else flight.made)
        seconds = WRITE_SECONDS + _MARGIN_SECONDS
        if any(made is not None and needs_conditions(made.allocation) for _, made in held.claims.values()) or any(
            needs_conditions(allocation) for _, allocation in claims.allocated
        ):
            seconds += READY_SECONDS
        self._keep(pod.uid, self._clock() + seconds)
        return SUCCESS

    def _rejections(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        claims = usable_claims(pod, self.table)
        if isinstance(claims, str):
            self.pre_enqueue(pod)  # it may wait for a claim that was there a moment ago
            return every_node(view, claims)
        elsewhere = np.zeros(view.n_rows, dtype=bool)
        for claim, _ in claims.allocated:
            elsewhere |= self._out_of_reach(claim, view)
        said = list(found(elsewhere, view, _ELSEWHERE, preemptible=False))
        for nodes, to_allocate, extended in open_claims(claims, pod, self.table, view):
            if extended is not None and (why := refusal_of(extended.claim, self.table.class_of)):
                said += found(nodes & ~elsewhere, view, why, preemptible=False)
                continue
            if not to_allocate:
                continue
            try:
                answers = self.feasibility.answers(to_allocate, view, nodes & ~elsewhere)
            except AllocationFailed as error:
                return every_node(view, str(error))
            said += misfits(answers, elsewhere | ~nodes, view)
        return said

    def _out_of_reach(self, claim: ResourceClaimInfo, view: ClusterView) -> Bools:
        """(n_rows,) nodes from which the claim cannot be used with the allocation that it has."""
        allocation = self.table.allocation_of(claim)
        if claim.allocation is not None and readiness_of(claim, self._clock())[0] is DeviceReadiness.FAILED:
            return np.ones(view.n_rows, dtype=bool)
        if allocation is None or allocation.node_terms is None:
            return np.zeros(view.n_rows, dtype=bool)
        return ~self.feasibility.in_terms(allocation.node_terms, view)

    def _is_only_for(self, claim: ResourceClaimInfo, pod: PodInfo) -> bool:
        """Whether it is allocated in the API server, and no other pod uses it or is about to."""
        if claim.allocation is None or any(one.uid != pod.uid for one in claim.consumers):
            return False
        return not any(claim.key in held.claims for held in self._held.values())

    def _is_held(self, key: ClaimKey) -> bool:
        return any(key in held.claims for held in list(self._held.values()))
