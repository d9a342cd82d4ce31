"""The tracked cluster with pods that are assumed to be bound: in all its tables, and taken back when they were not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scorer.assumed import AssumedPods
from scorer.cluster.changes import Change, PodChange
from scorer.cluster.decoding import Kind
from scorer.cluster.objects import PodInfo
from scorer.options import ScorerOptions
from scorer.tracking import TrackedCluster

__all__ = ["AssumingCluster"]


class AssumingCluster(TrackedCluster):
    """What the watch says of pods comes in here."""

    def __init__(self, options: ScorerOptions, *, now: float) -> None:
        super().__init__(options, now=now)
        self.assumed = AssumedPods()

    def tick(self, now: float) -> None:
        """Time has passed (or was set back)."""
        super().tick(now)
        for uid in self.assumed.over(now):
            self.forget(uid)

    def put_pod(self, pod: PodInfo) -> None:
        """The watch says that a pod is new or has changed."""
        seen, was_assumed = self.assumed.seen(pod)
        if was_assumed:
            self._end_wait(seen)
        elif seen is not pod:
            seen = self._without_new_kinds(seen)
        self.apply(self.state.put_pod(seen) or (self._confirmed(seen) if was_assumed else ()))

    def delete_pod(self, uid: str) -> None:
        """The watch says that a pod is gone."""
        self.assumed.gone(uid)
        self.apply(self.state.delete_pod(uid))

    def replace_pods(self, pods: Sequence[PodInfo]) -> None:
        """A complete list of pods."""
        confirmed: list[Change] = []
        as_assumed = []
        for pod in pods:
            now, was_assumed = self.assumed.seen(pod)
            if was_assumed:
                self._end_wait(now)
            elif now is not pod:
                now = self._without_new_kinds(now)
            as_assumed.append(now)
            if was_assumed and self.state.pods.get(pod.uid) == now:
                confirmed += self._confirmed(now)
        for uid in set(self.assumed.uids()).difference(pod.uid for pod in pods):
            self.assumed.gone(uid)
        self.apply([*self.state.replace(Kind.PODS, as_assumed), *confirmed])

    def assume(self, pod: PodInfo, node: str, until: float) -> None:
        """The pod will probably be bound to the node: reckon with it until the watch says so, or `until`."""
        namesake = self.state.find_pod(pod.namespace, pod.name)
        if namesake is not None and namesake.uid != pod.uid:
            return  # whoever asks must not drive out a pod that is there
        assumed = self.assumed.assume(pod, self.state.pods.get(pod.uid), node, until)
        if assumed is not None:
            self.apply(self.state.put_pod(self._without_new_kinds(assumed)))

    def forget(self, uid: str) -> None:
        """The pod was not bound after all, as far as is known; nothing if it was not assumed."""
        if uid in self.assumed:
            pod = self.assumed.forget(uid)
            self.apply(self.state.delete_pod(uid) if pod is None else self.state.put_pod(pod))

    # Inside

    def _end_wait(self, pod: PodInfo) -> None:
        """It is bound. Where that is elsewhere it never ran where it was assumed: leaving there must neither look like
        the departure of a running pod nor be told as anything but the end of an assumption."""
        known = self.state.pods[pod.uid]
        if known.node != pod.node:
            self.apply(self.state.put_pod(replace(known, node="")))
        self.assumed.gone(pod.uid)

    def _without_new_kinds(self, pod: PodInfo) -> PodInfo:
        """Anybody may ask about a pod with thousands of made-up resources: none of them gets a column for that."""
        kinds = self.state.kinds
        if all(kind in kinds for kind in pod.requests):
            return pod
        return replace(pod, requests={kind: amount for kind, amount in pod.requests.items() if kind in kinds})

    def _confirmed(self, pod: PodInfo) -> list[Change]:
        """What is to be told of a pod that turned out to be just where it was assumed: nothing else changes."""
        seat = self.state.seat_of.get(pod.uid)
        return [] if seat is None else [PodChange(pod, seat, seat)]
