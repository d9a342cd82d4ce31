"""Bind plugins of the advisor: in place of a binding, the pod's node is nominated and our gate removed; in shadow mode
nothing is written. Advice waits here for the write that carries it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from advisor.advice_requests import advice_note, own_terms, pending_pod
from advisor.followed_advice import Following, Way, as_canary
from advisor.pods_waiting_for_advice import GatedPods
from advisor.preferred_pods import preferred_nodes
from advisor.stale_nominations import withdraw
from base.excluded import ExcludedOptions
from forecast.service_key import service_of_pod
from kube.binding.binding_steps import BindingRequest, BindingResult, BindingVerdict, SeenPod, what_is_seen
from kube.client.api_answer import ApiAnswer, is_gone
from kube.client.pod_writes import MERGE, nomination_body, pod_path
from kube.failure_notice import FailureNotice
from kube.objects.objects import PodInfo
from kube.session.session_calls import Requests, is_passing, is_passing_or_conflict, request_with_retries
from kube.status.pod_conditions import STRATEGIC_MERGE
from placement.decisions.decision import Advice
from placement.decisions.recorder import DecisionRecorder
from placement.gate_exemptions import AdviceMode, labelled_mode, why_not_held
from placement.gate_removal import may_go_without_note, remove_gate
from placement.preferred_nodes import preferred_terms
from placement.status import SUCCESS, Status
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.outcome import BindStatus, bind_status
from scorer.answers import Peak

_MOST: Final = 10_000

logger = logging.getLogger(__name__)
_TRIES: Final = 2
_THROTTLED: Final = 429
_REFUSED: Final = (403, 422)
_MOST_CANARIES: Final = 100

_SEEN_WHOLE: Final = 100
"""Nodes that fit a pod, of which kube-scheduler looks at all (minFeasibleNodesToFind in its schedule_one.go)."""


class AdviceNotes:
    """Implements Advised of the loop. For any thread."""

    def __init__(self, recorder: DecisionRecorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._notes: OrderedDict[str, Advice] = OrderedDict()
        self.n_advised = 0  # so far

    def advised(self, advice: Advice) -> None:
        """Keep it until it is written."""
        with self._lock:
            self._notes[advice.uid] = advice
            self.n_advised += 1
            if len(self._notes) > _MOST:
                self._notes.popitem(last=False)

    def take(self, uid: str) -> Advice | None:
        """Return the advice about a pod, once; None = it is not known any more."""
        with self._lock:
            return self._notes.pop(uid, None)

    def written(self, advice: Advice | None) -> None:
        """kube-scheduler has it: keep it until the pod is bound."""
        if advice is not None:
            self._recorder.advised(advice)


class AdviceFigures:
    """Since the start: pods that were nominated, pods that only prefer nodes, and nominations that were taken back, by
    the binder or by the thread that looks for stale ones."""

    def __init__(self) -> None:
        self.advised = self.preferred = self.withdrawn = 0
        self._lock = threading.Lock()

    def count_released(self, *, is_nominated: bool) -> None:
        """A pod was released with its advice."""
        with self._lock:
            self.advised += is_nominated
            self.preferred += not is_nominated

    def count_withdrawn(self) -> None:
        """A nomination was taken back."""
        with self._lock:
            self.withdrawn += 1


class AdviceBinder:
    """Implements Bind; to be called in the session's loop.

    limit   : notified of 429s and of successes
    notes   : of the advice that is to be written
    gated   : says who writes about a pod
    seconds : for one request
    figures : counted up; the exporter reads them
    following  : says how a pod is advised
    ranking_of : nodes for a pod, the best first; called in a thread, as is
    peak_of    : expected peak of a node with the pod; None = not known
    makes_room : whether kube-scheduler may have evicted pods of the node for this one, whose nomination stays then
    n_nodes    : that a pod prefers at most
    released : called in a thread with each pod whose gate was removed; None = no part has to know
    """

    name = "Advice"

    def __init__(
        self,
        session: Requests,
        limit: InFlightLimit,
        *,
        notes: AdviceNotes,
        gated: GatedPods,
        seconds: float,
        figures: AdviceFigures,
        following: Following,
        ranking_of: Callable[[PodInfo], Sequence[str]],
        peak_of: Callable[[PodInfo, str], Peak | None],
        makes_room: Callable[[PodInfo, str], bool],
        n_nodes: int,
        released: Callable[[PodInfo], None] | None = None,
    ) -> None:
        self._session, self._limit, self._seconds = session, limit, seconds
        self._notes, self._gated = notes, gated
        self._notice = FailureNotice(
            logger, "no node was nominated (grant patch on pods/status)", "nodes are nominated again"
        )
        self.figures: Final = figures
        self._following, self._n_nodes = following, n_nodes
        self._ranking_of, self._peak_of, self._makes_room = ranking_of, peak_of, makes_room
        self._canaries: OrderedDict[str, str] = OrderedDict()  # by UID, nominated to another node than they got here
        self._released = released

    async def bind(self, pod: PodInfo, node: str) -> BindStatus:
        """SUCCESS = nominated and released, UNSCHEDULABLE = not nominated, ERROR = it is not known whether released."""
        advice = self._notes.take(pod.uid)
        if not self._gated.claim(pod.uid):
            return self._status(BindingVerdict.GONE, "the pod has been released without advice, or is gone")
        is_released, way = False, self._following.way(pod.uid, advice)
        try:
            found = await self._nominate(pod, node, advice, way)
            if isinstance(found, BindStatus):
                return found
            if found is Way.CANARY and advice is not None and advice.runner_up is not None:
                advice = as_canary(advice, partial(self._peak_of, pod, advice.runner_up))
            status = await self._release(pod, node, advice, found)
            is_released = status.is_success
        finally:
            self._gated.released(pod.uid, is_gone=is_released)
            if not is_released:
                self._following.given_up(pod.uid)
        if is_released:
            if self._released is not None:
                await asyncio.to_thread(self._released, pod)
            self._notes.written(advice)
        return status

    async def _nominate(self, pod: PodInfo, node: str, advice: Advice | None, way: Way) -> Way | BindStatus:
        """Return how the pod is advised then: without a nomination, if the API server does not take it. Or why not."""
        if way is Way.CANARY and advice is not None and advice.runner_up is not None:
            node = self._canaries[pod.uid] = advice.runner_up
            if len(self._canaries) > _MOST_CANARIES:
                self._canaries.popitem(last=False)
        elif not way.nominates:
            return way
        answer = await self._patch(f"{pod_path(pod)}/status", nomination_body(pod, node), MERGE)
        if is_gone(answer):
            return self._status(BindingVerdict.GONE, f"the pod is gone: {answer.text}")
        if _is_stored(answer, node):
            self._notice.succeeded()
            self._gated.nominated(pod.uid, node)
            self._following.nominated(pod.uid, pod.namespace, node, way)
            return way
        self._notice.failed(answer.text or "the API server dropped status.nominatedNodeName")
        if answer.is_success or answer.status in _REFUSED:
            self._following.refused(pod.uid, pod.namespace)
            return Way.PREFER
        # After no answer it may be nominated all the same: the pod is looked at again.
        verdict = BindingVerdict.UNKNOWN if is_passing(answer) else BindingVerdict.REFUSED
        return self._status(verdict, f"{node} was not nominated: {answer.text}")

    async def _release(self, pod: PodInfo, node: str, advice: Advice | None, way: Way) -> BindStatus:
        """Remove the gate, and say what was advised; node: the best."""
        terms = await self._terms(pod, node, advice, is_canary=way is Way.CANARY) if way.prefers else []
        mode = way.value if way in (Way.CANARY, Way.PREFER) else ""
        # In a thread: the peak of the node is worked out now.
        note = await asyncio.to_thread(advice_note, advice, "not known any more", nominated=node, mode=mode)

        def patch(body: bytes) -> Awaitable[ApiAnswer]:
            return self._patch(pod_path(pod), body, STRATEGIC_MERGE)

        answer = await remove_gate(patch, pod, note, preferred=terms)
        if terms and may_go_without_note(answer):
            # An admission policy of an earlier release allows the removal of the gate alone.
            if not way.nominates:
                note = advice_note(None, f"preferred node affinity was refused: {answer.text}")
            answer = await remove_gate(patch, pod, note)
        if answer.is_success:
            self._limit.went_well()
            self.figures.count_released(is_nominated=way.nominates)
            return self._status(BindingVerdict.BOUND)
        if is_gone(answer):
            return self._status(BindingVerdict.GONE, f"the pod is gone: {answer.text}")
        return self._status(BindingVerdict.UNKNOWN, f"our gate was not removed: {answer.text}")

    async def _terms(self, pod: PodInfo, node: str, advice: Advice | None, *, is_canary: bool) -> list[Any]:
        """Return all terms of preferred node affinity for a pod, its own in front.

        node      : the best
        advice    : of a canary, which prefers all nodes but the one that it is nominated to: as it was written
        """
        ranking, nominated = [node], advice.best if is_canary and advice is not None else ""
        if advice is not None and advice.runner_up not in (None, node):
            ranking.append(advice.runner_up or "")
        if advice is None or advice.n_nodes > _SEEN_WHOLE:
            others = await asyncio.to_thread(self._ranking_of, pod)
            ranking += [one for one in others if one not in (*ranking, nominated)]
        terms = preferred_terms(preferred_nodes(ranking, self._n_nodes))
        if not pod.constraints.preferred_node_terms:
            return terms
        # As they are written in the pod: the list is replaced as a whole.
        answer = await self._session.request("GET", pod_path(pod), None, seconds=self._seconds)
        try:
            return [*own_terms(answer.body), *terms] if answer.is_success else []
        except msgspec.DecodeError:
            return []

    async def look(self, pod: PodInfo, node: str) -> BindStatus:
        """What became of the advice; UNSCHEDULABLE = the pod is not bound there, and the nomination is no more."""
        answer = await self._session.request("GET", pod_path(pod), None, seconds=self._seconds)
        request = BindingRequest(pod.namespace, pod.name, pod.uid, node)
        seen = what_is_seen(request, answer, trouble="it was looked at after its advice")
        if isinstance(seen, BindingResult):
            return bind_status(self.name, seen)
        if seen is SeenPod.NOTHING:
            return self._status(BindingVerdict.UNKNOWN, answer.text)
        try:
            now = pending_pod(answer.body)
        except msgspec.DecodeError as error:
            return self._status(BindingVerdict.UNKNOWN, f"the pod cannot be read: {error}")
        if now.is_gated:
            self._gated.lost(pod.uid)
            return self._status(BindingVerdict.REFUSED, "our gate is still there")
        if not now.is_tried:
            return self._status(BindingVerdict.UNKNOWN, "kube-scheduler has not tried the pod yet")
        if now.nominated == self._canaries.get(pod.uid, node):
            if await asyncio.to_thread(self._makes_room, pod, now.nominated):
                return self._status(BindingVerdict.UNKNOWN, "room may be being made for the pod")
            withdrawn = await withdraw(self._session, pod, now)
            if not withdrawn.is_success and not is_gone(withdrawn):
                return self._status(BindingVerdict.UNKNOWN, f"the nomination was not withdrawn: {withdrawn.text}")
            self.figures.count_withdrawn()
        return self._status(BindingVerdict.REFUSED, "kube-scheduler found no place for the pod")

    async def _patch(self, path: str, body: bytes, content_type: str) -> ApiAnswer:
        def is_worth_it(answer: ApiAnswer) -> bool:
            if answer.status == _THROTTLED:
                self._limit.was_throttled()
            return is_passing_or_conflict(answer)

        return await request_with_retries(
            self._session,
            "PATCH",
            path,
            body,
            content_type=content_type,
            seconds=self._seconds,
            tries=_TRIES,
            worth_it=is_worth_it,
        )

    def _status(self, verdict: BindingVerdict, reason: str = "") -> BindStatus:
        return bind_status(self.name, BindingResult(verdict, reason))


def _is_stored(answer: ApiAnswer, node: str) -> bool:
    """Return whether a nomination was taken: a policy of the API server may drop the field and say 200."""
    if not answer.is_success:
        return False
    try:
        return pending_pod(answer.body).nominated == node
    except msgspec.DecodeError:
        return False


class ShadowBinder:
    """Implements Bind: leaves the pod to kube-scheduler."""

    name = "ShadowAdvice"

    async def bind(self, pod: PodInfo, node: str) -> Status:
        return SUCCESS


def asks_for_advice(
    labels_of: Callable[[str], Mapping[str, str] | None],
    scheduler_names: Collection[str],
    excluded: ExcludedOptions,
    by_policy: Callable[[PodInfo], AdviceMode | None] = lambda pod: None,
) -> Callable[[PodInfo], bool]:
    """Return whether the webhook would do anything with a pod.

    labels_of : of a namespace, None = not known
    by_policy : what the policy of a pod says of advice; None = nothing
    """

    def asks(pod: PodInfo) -> bool:
        mode = labelled_mode(pod.labels, labels_of(pod.namespace) or {}, by_policy(pod) or AdviceMode.OFF)
        return mode is not AdviceMode.OFF and not why_not_held(
            pod.namespace,
            scheduler_name=pod.scheduler_name,
            scheduler_names=scheduler_names,
            service=service_of_pod(pod.namespace, pod.name, pod.owner, pod_labels=pod.labels),
            excluded=excluded,
            owner_kind=pod.owner.kind,
            node_name=pod.node,
        )

    return asks
