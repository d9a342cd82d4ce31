"""Which state a pod is in, why, and what a person may do about it. Pure: facts in, words out.

    gates ------> held for advice | queued by quota | held by others
    no gate ----> reserved | advised | nominated | waiting for its gang | queued by quota | paused | unschedulable
                  | queued
    a node -----> placed | finished;  deleted -> terminating

read_pod_facts.py reads the facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

from advisor.advice_settings import GATE_SECONDS
from forecast_scheduler.reports.table_format import printable, short_duration
from kube.leader_election.record import LeaseRecord
from kube.objects.objects import PodInfo, PodPhase
from placement.gate_exemptions import ADVICE, AdviceMode
from placement.pod_groups.group_of_pod import group_of
from scheduler.scheduling_answers import QueuedPod
from tenants.elastic_quota import ElasticQuota
from tenants.elastic_quota_plugin import NAME as QUOTA_FILTER

_LONGEST_HOLD: Final = GATE_SECONDS + 5.0
"""Seconds: no pod is held for longer, whatever dies (docs/use/advisor.md), unless a quota keeps it."""

_QUOTA_AFTER: Final = 2.0
"""Seconds: an advisor that is alive answers sooner, unless the quota of the tenant does not admit the pod."""

_CONDITIONS_OF_OURS: Final = "WaitingFor"


class State(StrEnum):
    """Where a pod is on its way to a node."""

    HELD = "held for advice"
    QUOTA = "queued by quota"
    HELD_BY_OTHERS = "held by others"
    RESERVED = "reserved"
    ADVISED = "advised"
    NOMINATED = "nominated"
    GANG = "waiting for its gang"
    PAUSED = "paused"
    UNSCHEDULABLE = "unschedulable"
    QUEUED = "queued"
    PLACED = "placed"
    FINISHED = "finished"
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True)
class SeenLease:
    """A Lease at one moment. record: None = there is none; age: seconds since it was renewed, by its holder's clock;
    unread: why it could not be read, '' = it was."""

    name: str
    record: LeaseRecord | None = None
    age: float | None = None
    unread: str = ""

    @property
    def is_alive(self) -> bool:
        """Return whether it is held and was renewed in time."""
        record, age = self.record, self.age
        return record is not None and bool(record.holder) and age is not None and age <= record.seconds

    def words(self, who: str) -> str:
        """Return one sentence. who: holds it, such as `advisor`."""
        if self.unread:
            return f"not known whether a process of the {who} is alive: {self.unread}"
        if self.record is None:
            return f"no {who} runs here: there is no Lease {self.name}"
        if self.age is None or not self.record.holder:
            return f"no {who} is alive: no replica holds the Lease {self.name}"
        renewed = f"{self.record.holder} renewed its Lease {short_duration(self.age)} ago"
        return f"{who} is alive: {renewed}" if self.is_alive else f"no {who} is alive: {renewed}"


@dataclass(frozen=True, slots=True)
class WaitingClaim:
    """A claim of the pod that is not ready. kind: PersistentVolumeClaim or ResourceClaim; node: chosen for it, '' =
    none; is_reserved: its devices are reserved for this pod."""

    kind: str
    name: str
    node: str = ""
    is_reserved: bool = False


@dataclass(frozen=True, slots=True)
class WaitingFacts:
    """
    now              : unix seconds
    reason, message  : of the condition PodScheduled=False, '' = it has none
    gate_setters     : which client set a gate, by the gate's name, as managedFields say
    namespace_labels : None = they could not be read
    advisor, loops   : Leases of the advisor and of `schedule`
    quotas           : ElasticQuotas that count the pod's namespace
    queued           : what the queue of a running `schedule` says; None = it was not asked, or does not know the pod
    our_names        : schedulerNames of `schedule`
    """

    pod: PodInfo
    now: float
    advisor: SeenLease
    loops: SeenLease
    our_names: frozenset[str]
    reason: str = ""
    message: str = ""
    gate_setters: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] | None = None
    quotas: tuple[ElasticQuota, ...] = ()
    claims: tuple[WaitingClaim, ...] = ()
    queued: QueuedPod | None = None


@dataclass(frozen=True, slots=True)
class PodState:
    """since: unix seconds, None = not known; now: when this was so; because: sentences; commands: to type about it."""

    pod: PodInfo
    now: float
    state: State
    because: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    since: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as --json has it."""
        since = None if self.since is None else datetime.fromtimestamp(self.since, UTC).isoformat()
        said = {"because": list(self.because), "commands": list(self.commands)}
        return {"name": self.state.value, "since": since, **said}

    def lines(self) -> list[str]:
        """Return it for people, the state first."""
        age = "" if self.since is None else short_duration(max(0.0, self.now - self.since))
        is_past = self.state in (State.PLACED, State.FINISHED)
        when = age and (f" {age} ago" if is_past else f" for {age}")
        lines = [f"state of {self.pod.namespace}/{self.pod.name}: {self.state.value}{when}"]
        lines += [f"  {printable(sentence)}" for sentence in self.because]
        return lines + [f"  $ {command}" for command in self.commands]


def state_of_pod(facts: WaitingFacts) -> PodState:
    """Return the state of a pod, from what is known of it."""
    pod = facts.pod
    if pod.terminating:
        return _state(
            facts, State.TERMINATING, (f"it ends on {pod.node}" if pod.node else "it was deleted without a node",)
        )
    if pod.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED):
        why = f": {pod.status_reason}" if pod.status_reason else ""
        return _state(
            facts, State.FINISHED, (f"phase {pod.phase.value}{why}, on {pod.node or 'no node'}",), (), pod.finished
        )
    if pod.node:
        return _placed(facts)
    if pod.gates:
        return _gated(facts)
    return replace(_waiting(facts), since=pod.created)


def _state(
    facts: WaitingFacts,
    state: State,
    because: tuple[str, ...],
    commands: tuple[str, ...] = (),
    since: float | None = None,
) -> PodState:
    return PodState(facts.pod, facts.now, state, because, commands, since)


def _placed(facts: WaitingFacts) -> PodState:
    pod = facts.pod
    because = [f"on node {pod.node}, by {pod.scheduler_name}"]
    if pod.phase is PodPhase.PENDING:
        because.append("its kubelet has not started all of its containers yet")
    note = advice_of(pod)
    if note.get("node"):
        how = "followed" if note["node"] == pod.node else f"not followed: it named {note['node']}"
        because.append(f"our advice was {how}")
    elif "because" in note:
        because.append(f"without our advice: {note['because']}")
    return _state(facts, State.PLACED, tuple(because), (), pod.scheduled or pod.started)


def _gated(facts: WaitingFacts) -> PodState:
    pod = facts.pod
    others = [gate for gate in pod.gates if gate != ADVICE]
    if others:
        because = [_gate_words(gate, facts.gate_setters.get(gate, "")) for gate in others]
        if ADVICE in pod.gates:
            because.append(f"our gate {ADVICE} is there too: the advisor waits until the others are gone")
        show = f"kubectl -n {pod.namespace} get pod {pod.name} -o jsonpath='{{.spec.schedulingGates}}'"
        return _state(facts, State.HELD_BY_OTHERS, tuple(because), (show,), pod.created)
    held = facts.now - pod.created
    commands = _release_commands(pod)
    because = [_asked_by(facts), facts.advisor.words("advisor"), *_queue_words(facts)]
    if facts.quotas and facts.advisor.is_alive and held > _QUOTA_AFTER:
        names = ", ".join(one.key for one in facts.quotas)
        because.append(
            f"the advisor keeps it until ElasticQuota {names} admits it; if the quota has room, the advisor cannot "
            "remove the gate: its log says why"
        )
        show = f"forecast-scheduler tenants --server URL_OF_THE_ADVISOR --namespace {pod.namespace}"
        return _state(facts, State.QUOTA, tuple(because), (show, *commands), pod.created)
    if held > _LONGEST_HOLD:
        because.append(f"no pod may be held for {_LONGEST_HOLD:.0f} s: neither advisor nor webhook removes the gate")
        commands = ("kubectl -n forecast-scheduler get pods", *commands)
    return _state(facts, State.HELD, tuple(because), commands, pod.created)


def _gate_words(gate: str, setter: str) -> str:
    return f"scheduling gate {gate}{f', set by {setter}' if setter else ''}: its controller removes it"


def _asked_by(facts: WaitingFacts) -> str:
    """Who asks for our gate, by what is there now."""
    pod, gate = facts.pod, f"our scheduling gate {ADVICE}"
    if ADVICE in pod.labels:
        return f"{gate}: label {ADVICE}={pod.labels[ADVICE]} of the pod"
    if facts.namespace_labels is None:
        return f"{gate}: labels of namespace {pod.namespace} could not be read"
    if (said := facts.namespace_labels.get(ADVICE)) == AdviceMode.ADVISE:
        return f"{gate}: label {ADVICE}={said} of namespace {pod.namespace}"
    if said is not None:
        return f"{gate}: namespace {pod.namespace} says {said} by now, pods that came before stay held"
    return f"{gate}: no label asks for it, so its policy, webhook.advice.unlabelled or its own manifest does"


def _release_commands(pod: PodInfo) -> tuple[str, ...]:
    patch = msgspec.json.encode({"spec": {"schedulingGates": [{"$patch": "delete", "name": ADVICE}]}}).decode()
    return (
        f"kubectl -n {pod.namespace} patch pod {pod.name} --type strategic -p '{patch}'   # release this pod",
        "forecast-scheduler advise --release   # release all pods",
        f"kubectl label --overwrite namespace {pod.namespace} {ADVICE}={AdviceMode.OFF.value}   # hold no new pods",
    )


def _waiting(facts: WaitingFacts) -> PodState:
    """Of a pod without gate and node."""
    pod, is_ours = facts.pod, facts.pod.scheduler_name in facts.our_names
    who = f"schedulerName {pod.scheduler_name}" + (": our own loops" if is_ours else "")
    because = [facts.message] if facts.message else []
    if is_ours and not facts.loops.is_alive:
        because.append(facts.loops.words("`schedule`"))
    if any(claim.node or claim.is_reserved for claim in facts.claims):
        return _state(facts, State.RESERVED, (*(_claim_words(one) for one in facts.claims), who, *because))
    note = advice_of(pod)
    if pod.nominated_node:
        return _nominated(facts, note, because)
    if note.get("node"):
        return _state(
            facts,
            State.ADVISED,
            (f"it prefers {note['node']} ({note.get('mode', 'prefer')}): not bound yet", who, *because),
        )
    if note.get("because"):
        because.insert(0, f"released without advice: {note['because']}")
    state = _queue_state(facts)
    because += _queue_words(facts)
    if not facts.message and facts.queued is None:
        because.append("no scheduler has said anything of it yet")
    events = f"kubectl -n {pod.namespace} events --for pod/{pod.name}"
    return _state(facts, state, (who, *because), (events,))


def _queue_words(facts: WaitingFacts) -> list[str]:
    """What the queue of a running process says that the pod itself does not."""
    if (queued := facts.queued) is None:
        return []
    owner = f", queue {queued.queue}" if queued.queue else ""
    words = [f"in part {queued.part} of the queue{owner}, after {queued.attempts} attempts"]
    return words + ([queued.message] if queued.message not in ("", facts.message) else [])


def _nominated(facts: WaitingFacts, note: Mapping[str, Any], because: list[str]) -> PodState:
    pod = facts.pod
    if note.get("node") == pod.nominated_node:
        mode = f" ({note['mode']})" if "mode" in note else ""
        says = f"our advisor named {pod.nominated_node}{mode}: {pod.scheduler_name} has not bound it yet"
        return _state(facts, State.ADVISED, (says, *because))
    advised = f"; our advice was {note['node']}" if note.get("node") else ""
    says = f"{pod.scheduler_name} makes room for it on {pod.nominated_node}{advised}"
    return _state(facts, State.NOMINATED, (says, *because))


def _claim_words(claim: WaitingClaim) -> str:
    where = f" on {claim.node}" if claim.node else ""
    if claim.is_reserved:
        return f"{claim.kind} {claim.name}: its devices{where} are reserved for this pod"
    return f"{claim.kind} {claim.name} is not bound: it waits for its volume{where}"


def _queue_state(facts: WaitingFacts) -> State:
    """By the queue's word where it is known, else by the condition of the pod."""
    rejected_by = frozenset() if facts.queued is None else frozenset(facts.queued.rejected_by)
    if QUOTA_FILTER in rejected_by or (facts.quotas and facts.message.startswith("tenant ")):
        return State.QUOTA
    if facts.reason.startswith(_CONDITIONS_OF_OURS):
        return State.PAUSED
    if group_of(facts.pod) is not None and "PodGroup" in facts.message:
        return State.GANG
    return State.UNSCHEDULABLE if facts.message else State.QUEUED


def advice_of(pod: PodInfo) -> Mapping[str, Any]:
    """Return our note on the pod; empty = there is none, or it cannot be read."""
    try:
        note = msgspec.json.decode(pod.annotations.get(ADVICE, "{}"))
    except msgspec.DecodeError:
        return {}
    return note if isinstance(note, dict) else {}
