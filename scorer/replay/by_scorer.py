"""The rule `configured`: each pod goes where the scorer, set up as the user has it, ranks the node first.

The rule feeds a `scorer.scorer.Scorer` as an API server and a Prometheus would: nodes, pods that wait, pods that run,
pods that are gone, and the usage of the half hour before. Weights, parameters, capacities and policies are the user's.
What a history does not hold stays unknown: labels, annotations, taints.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from base.arrays import Bools, Floats, Ints
from cluster.live.usage import NodeUsage
from cluster.model_watch import LoadedModel
from cluster.options import Ladder
from cluster.state_source import StateSource
from forecast.calendar import SLOT_MINUTES
from forecast.history import History
from forecast.model import PeakModel
from forecast.resources import CPU, MEMORY, RESOURCES
from forecast.service_key import NO_OWNER, Owner, ServiceKey
from kube.decoding.decoding import Kind
from kube.objects.objects import NodeInfo, PodInfo, PodPhase, QosClass
from scorer.options import ScorerOptions
from scorer.replay.recording import Recording
from scorer.replay.replay_rules import ReplayedPod, ReplayState
from scorer.replay.window import ReplayWindow
from scorer.scorer import Scorer
from scorer.scores.least_allocated import nonzero_requests
from scorer.scoring_policy import ScoringPolicies

_FOR_EVER = 1e12
"""Seconds: no input of a replay is too old."""

_SLOT_SECONDS = 60 * SLOT_MINUTES
_PODS_PER_NODE = 110.0

_SHARE_OUT_EVERY = 50
"""Pods placed after which room for replicas still to come is distributed anew, as the scorer does every few minutes."""

_HASH = "7c9d6f8b5"


@dataclass(frozen=True, slots=True)
class ScorerSetup:
    """What the user has configured.

    options  : weights, parameters and capacities of the scorer
    policies : which pod is scored how; None = all as the options say
    """

    options: ScorerOptions
    policies: ScoringPolicies | None = None


class _LastSlot:
    """Implements cluster.live.usage.UsageSource: the half hour before, as the replay measured it."""

    now = NodeUsage((), np.empty((0, len(RESOURCES))), np.empty(0))

    def read(self) -> NodeUsage:
        return self.now

    def node_history(self, names: Sequence[str], since: datetime, until: datetime) -> Floats:
        """No half hour is known: no score reads them."""
        return np.full((len(RESOURCES), round((until - since).total_seconds() / _SLOT_SECONDS)), np.nan)

    def service_history(self, service: ServiceKey, pods: Sequence[str], since: datetime, until: datetime) -> Floats:
        return self.node_history((), since, until)

    def pods(self, resource: str, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
        return {}


class _PlayedOptions(ScorerOptions):
    """Nothing is too old: the replay has one model for all days, where a cluster gets a new one every night."""

    ladder: ClassVar[Ladder] = Ladder(fresh_model=_FOR_EVER, oldest_model=_FOR_EVER, oldest_state=_FOR_EVER)


class ByScorer:
    """Implements scorer.replay.replay_rules.ReplayRule with a scorer of its own, whose clock is that of the replay."""

    def __init__(
        self, setup: ScorerSetup, model: PeakModel, history: History, window: ReplayWindow, recording: Recording
    ) -> None:
        self._recording = recording
        self._begin = history.calendar.midnight(window.days[0]) + timedelta(seconds=window.first_slot * _SLOT_SECONDS)
        self._now = self._begin.timestamp()
        self._usage = _LastSlot()
        self._names = [history.nodes[node] for node in recording.nodes.tolist()]
        self._services = history.services
        self._running: dict[int, PodInfo] = {}
        self._gone: list[int] = []
        self._placed = 0
        options = _PlayedOptions(**dict(setup.options))
        source = StateSource(lambda: (True, self._now, {}))
        self._scorer = Scorer(
            options, usage=self._usage, policies=setup.policies, clock=lambda: self._now, source=source
        )
        self._scorer.tables.replace(Kind.NODES, [self._node(row) for row in range(recording.n_nodes)])
        self._scorer.tables.install(LoadedModel("replay", model, {}))

    def observe(self, slot: int, state: ReplayState) -> None:
        """Measure the slot before with the pods that were there, then let the pods of this one come and go."""
        at = self._begin.timestamp() + slot * _SLOT_SECONDS
        self._delete([pod for pod in self._gone if self._recording.death[pod] < slot])
        if slot > 0:
            self._let_pass(at - 1.0)
            self._usage.now = NodeUsage(
                tuple(self._names), state.live_usage.copy(), np.full(len(self._names), at - 1.0)
            )
            self._scorer.tables.measure()
        self._delete(self._gone)
        self._let_pass(at)
        for pod in np.flatnonzero(self._recording.birth == slot).tolist():
            self._scorer.tables.put(Kind.PODS, self._pod(pod))
        self._scorer.tables.share_out_scale_out()

    def choose(self, pod: ReplayedPod, feasible: Bools, state: ReplayState) -> int:
        """The feasible node of the highest ranking, which is what the extender's points come from."""
        rows: Ints = np.flatnonzero(feasible)
        ranking = self._scorer.score(self._pod(pod.index), [self._names[row] for row in rows.tolist()]).ranking
        return int(rows[ranking.argmax()])

    def added(self, pod: ReplayedPod, node: int) -> None:
        bound = self._running[pod.index] = self._pod(pod.index, self._names[node])
        self._scorer.tables.put(Kind.PODS, bound)
        self._placed += 1
        if self._placed % _SHARE_OUT_EVERY == 0:
            self._scorer.tables.share_out_scale_out()

    def removed(self, pod: ReplayedPod, node: int) -> None:
        """Note that the pod is gone: it is deleted once the slot in which it ran has been measured."""
        self._gone.append(pod.index)

    def _delete(self, pods: list[int]) -> None:
        for pod in pods:
            self._scorer.tables.delete(Kind.PODS, self._running.pop(pod))
        self._gone = [pod for pod in self._gone if pod in self._running]

    def _let_pass(self, now: float) -> None:
        self._now = now
        self._scorer.tables.tick()
        self._scorer.tables.rebuild_if_needed()

    def _node(self, row: int) -> NodeInfo:
        capacity, allocatable = self._recording.capacity[row], self._recording.allocatable[row]
        physical = {"cpu": capacity[CPU], "memory": capacity[MEMORY]}
        known = {
            name: float(amount if np.isfinite(amount) else physical[name])
            for name, amount in zip(("cpu", "memory"), allocatable, strict=True)
        }
        return NodeInfo(
            name=self._names[row],
            labels={},
            annotations={},
            taints=(),
            unschedulable=False,
            ready=True,
            capacity=_finite(physical) | {"pods": _PODS_PER_NODE},
            allocatable=_finite(known) | {"pods": _PODS_PER_NODE},
        )

    def _pod(self, index: int, node: str = "") -> PodInfo:
        """A pod of the recording, that waits or runs on a node."""
        key = self._services[int(self._recording.service[index])]
        cores, memory = self._recording.requests[index].tolist()
        started = self._begin.timestamp() + int(self._recording.started[index]) * _SLOT_SECONDS
        owner, labels = _controller(key)
        return PodInfo(
            uid=f"pod-{index}",
            namespace=key.namespace,
            name=key.name if key.kind == "Pod" else f"{key.name}-{index}",
            node=node,
            labels=labels,
            annotations={},
            owner=owner,
            owner_uid="" if owner == NO_OWNER else hashlib.sha256(f"{key}".encode()).hexdigest()[:16],
            requests={name: amount for name, amount in (("cpu", cores), ("memory", memory)) if amount > 0},
            nonzero_requests=tuple(nonzero_requests(self._recording.requests[index]).tolist()),
            limits={},
            qos=QosClass.BURSTABLE if cores > 0 or memory > 0 else QosClass.BEST_EFFORT,
            phase=PodPhase.RUNNING if node else PodPhase.PENDING,
            terminating=False,
            started=started if node or started < self._now else None,
            created=self._now,
        )


def _controller(key: ServiceKey) -> tuple[Owner, MappingProxyType[str, str]]:
    """A controller from which `service_of_pod` finds the service, and the labels that this takes."""
    if key.kind == "Pod":
        return NO_OWNER, MappingProxyType({})
    if key.kind == "Deployment":
        return Owner("ReplicaSet", f"{key.name}-{_HASH}"), MappingProxyType({"pod-template-hash": _HASH})
    if key.kind == "Rollout":
        return Owner("ReplicaSet", f"{key.name}-{_HASH}"), MappingProxyType({"rollouts-pod-template-hash": _HASH})
    if key.kind == "CronJob":
        return Owner("Job", f"{key.name}-29000000"), MappingProxyType({})
    return Owner(key.kind, key.name), MappingProxyType({})


def _finite(amounts: dict[str, float]) -> dict[str, float]:
    return {name: float(amount) for name, amount in amounts.items() if np.isfinite(amount)}
