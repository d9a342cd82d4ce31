"""Nominations of ours that nobody looks after, such as those of an advisor that was killed. Follows the tables.

A nomination holds room against pods of the same or a lower priority, and Karpenter and Cluster Autoscaler add no node
for a pod that has one. The process that wrote it looks at the pod in time (advice_binder.py); this finds the others:

    without a gate : the annotation says that we nominated this node, and kube-scheduler has tried the pod in vain
    our gate holds : nobody but us nominates such a pod, and no gate is to stay for so long

Users may write the annotation of their own pods. A false one ends at most a nomination of that very pod, which
kube-scheduler wrote when it made room, and only once no victim is left there that is still ending.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final

import msgspec

from advisor.advice_requests import PodLook, pending_pod, withdraw_body
from cluster.assuming_cluster import AssumingCluster
from cluster.follower import NodesAndPodsOnly
from cluster.tables.changes import Change, PodChange, one_by_one
from kube.client.api_answer import ApiAnswer
from kube.client.pod_writes import MERGE, pod_path
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from kube.session.session_calls import Requests, Session, begin
from placement.gate_exemptions import ADVICE

_MOST_AT_ONCE: Final = 32
_REQUEST_SECONDS: Final = 5.0


class StaleNominations(NodesAndPodsOnly):
    """Implements Follower. `keep_up` is to be called every second or so by one thread.

    reading   : takes the lock of the tables
    leads     : one replica looks
    seconds   : for which a pod is seen so before it is looked at, and again after that
    withdrawn : called after each withdrawal
    clock     : seconds, monotonic
    """

    def __init__(
        self,
        cluster: AssumingCluster,
        session: Session,
        *,
        reading: Callable[[], AbstractContextManager[object]],
        leads: Callable[[], bool],
        seconds: float,
        withdrawn: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._session, self._reading, self._leads = cluster, session, reading, leads
        self._seconds, self._withdrawn, self._clock = seconds, withdrawn, clock
        self._since: dict[str, float] = {}  # by UID, when it was first seen so, or last looked at

    def keep_up(self) -> None:
        """Look at pods whose time has come, some at once."""
        if not self._leads():
            return
        with self._reading():
            now = self._clock()
            due = islice((uid for uid, since in self._since.items() if now - since >= self._seconds), _MOST_AT_ONCE)
            pods = [self._cluster.state.pods[uid] for uid in due]
            for pod in pods:
                self._since[pod.uid] = now
            ending = ending_pods(self._cluster) if pods else []
            pods = [pod for pod in pods if not makes_room(ending, pod, pod.nominated_node)]
        for pod in pods:
            begin(self._session, self._look(pod))

    async def _look(self, pod: PodInfo) -> None:
        answer = await self._session.request("GET", pod_path(pod), None, seconds=_REQUEST_SECONDS)
        if not answer.is_success:
            return  # it is looked at again
        try:
            now = pending_pod(answer.body)
        except msgspec.DecodeError:
            return
        if now.node or now.nominated != pod.nominated_node or not (now.is_tried or now.is_gated):
            return
        if (await withdraw(self._session, pod, now)).is_success:
            self._withdrawn()

    # Implements Follower

    def apply(self, changes: Sequence[Change]) -> None:
        for change in one_by_one(changes):
            if isinstance(change, PodChange):
                self._see(change.pod.uid)

    def rebuild(self) -> None:
        """The tables could not follow: look at all pods."""
        for uid in {*self._since, *self._cluster.state.pods}:
            self._see(uid)

    def _see(self, uid: str) -> None:
        pod = self._cluster.state.pods.get(uid)
        # One that is assumed has a node in the tables, and is looked at by the loop.
        if pod is not None and pod.nominated_node and waits(pod) and not pod.terminating and _is_ours(pod):
            self._since.setdefault(uid, self._clock())
        else:
            self._since.pop(uid, None)


def ending_pods(cluster: AssumingCluster) -> list[PodInfo]:
    """Return the pods that are being deleted on their nodes. Looks at all pods, under the lock."""
    return [pod for pod in cluster.state.pods.values() if pod.terminating and pod.node]


def makes_room(ending: Iterable[PodInfo], pod: PodInfo, node: str) -> bool:
    """Return whether a pod of lower priority is ending on the node: kube-scheduler may have evicted it for this one.

    Its own rule (PodEligibleToPreemptOthers of plugins/defaultpreemption).
    """
    return any(other.node == node and other.priority < pod.priority for other in ending)


async def withdraw(session: Requests, pod: PodInfo, read: PodLook) -> ApiAnswer:
    """Take the nomination back, if the pod is as it was read."""
    return await session.request(
        "PATCH",
        f"{pod_path(pod)}/status",
        withdraw_body(pod, read.version),
        content_type=MERGE,
        seconds=_REQUEST_SECONDS,
    )


class _Note(msgspec.Struct):
    node: str | None = None
    mode: str = ""


def _is_ours(pod: PodInfo) -> bool:
    """Return whether the nomination of a pod is of an advisor."""
    if pod.gates:
        return pod.gates == (ADVICE,)
    try:
        note = msgspec.json.decode(pod.annotations.get(ADVICE, ""), type=_Note)
    except (msgspec.DecodeError, RecursionError):
        return False
    return note.node == pod.nominated_node and note.mode != "prefer"
