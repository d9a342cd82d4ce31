"""The state of each part, from its Deployment, its Lease, its pods and what it says of itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from forecast_scheduler.commands.status.facts import PARTS, PREFIX, Facts, LeaseFacts, Workload
from forecast_scheduler.reports.table_format import age

COMMANDS: Final = {
    "scorer": "scorer",
    "advisor": "advise",
    "webhook": "webhook",
    "extender": "extender",
    "schedule": "schedule",
    "rebalancer": "rebalance",
    "autoscaler": "autoscale",
}
"""By part, the command that runs it."""

_SKEW_SECONDS: Final = 10.0
"""That the clock of a holder and ours may differ by; the shortest Lease takes 4 s."""

_FORGOTTEN_SECONDS: Final = 86_400.0
"""A Lease that has not been renewed for a day is of a part that was taken out."""


class PartState(StrEnum):
    """NO_LEADER: replicas run, and none holds the Lease. OFF: scaled to 0. STOPPED: it gave its Lease back."""

    RUNS = "runs"
    PARTLY = "partly ready"
    DOWN = "down"
    NO_LEADER = "no leader"
    OFF = "scaled to 0"
    STOPPED = "stopped"
    ABSENT = "not installed"
    UNKNOWN = "not known"

    @property
    def is_broken(self) -> bool:
        """Return whether a person has to do something."""
        return self in (PartState.PARTLY, PartState.DOWN, PartState.NO_LEADER)


@dataclass(frozen=True, slots=True)
class JudgedPart:
    """why: it is in this state, '' = nothing to add. ready: such as 2/2, '' = it is no Deployment. leader: who holds
    the Lease, with its age, '' = no replica, or the part has none."""

    name: str
    state: PartState
    why: str = ""
    ready: str = ""
    image: str = ""
    leader: str = ""


def judged_parts(facts: Facts) -> list[JudgedPart]:
    """Return all parts, also those that are not installed."""
    return [_judged(part, facts) for part in PARTS]


def is_alive(lease: LeaseFacts, now: float) -> bool:
    """Return whether its holder renews it."""
    return bool(lease.holder) and now - lease.renewed <= lease.lasts + _SKEW_SECONDS


def _judged(part: str, facts: Facts) -> JudgedPart:
    lease, workload = facts.leases.get(part), (facts.workloads or {}).get(part)
    leader = ""
    if lease is not None and is_alive(lease, facts.now):
        leader = f"{lease.holder.partition('_')[0]}, for {age(max(facts.now - lease.acquired, 0))}"
    if workload is None:
        state, why = _of_process(part, lease, facts)
        return JudgedPart(part, state, why, leader=leader)
    state, why = _of_deployment(workload, lease, facts)
    ready = f"{workload.ready}/{workload.wanted}"
    return JudgedPart(part, state, why or workload.stuck, ready, image_tag(workload.image), leader)


def _of_deployment(workload: Workload, lease: LeaseFacts | None, facts: Facts) -> tuple[PartState, str]:
    if not workload.wanted:
        return PartState.OFF, ""
    if workload.ready < workload.wanted:
        state = PartState.PARTLY if workload.ready else PartState.DOWN
        return state, _troubles(workload.name, facts)
    if lease is not None and not is_alive(lease, facts.now):
        return PartState.NO_LEADER, _why_not_alive(lease, facts.now)
    return PartState.RUNS, ""


def _of_process(part: str, lease: LeaseFacts | None, facts: Facts) -> tuple[PartState, str]:
    """Of a part without a Deployment: a process of this machine, or one of which only the Lease is known."""
    answer = facts.answers.get(part)
    if answer is not None and not answer.ready:
        return PartState.DOWN, answer.not_ready_because
    if lease is not None and lease.holder and facts.now - lease.renewed < _FORGOTTEN_SECONDS:
        if not is_alive(lease, facts.now):
            return PartState.DOWN, _why_not_alive(lease, facts.now)
        return PartState.RUNS, "a process, no Deployment"
    if part in facts.local:
        return PartState.RUNS, "a process, no Deployment"
    if lease is not None and facts.now - lease.renewed < _FORGOTTEN_SECONDS:
        return PartState.STOPPED, f"it gave its Lease back {age(facts.now - lease.renewed)} ago"
    return (PartState.UNKNOWN if facts.workloads is None else PartState.ABSENT), ""


def _why_not_alive(lease: LeaseFacts, now: float) -> str:
    if not lease.holder:
        return "no replica holds its Lease"
    return f"{lease.holder.partition('_')[0]} has not renewed its Lease for {age(now - lease.renewed)}"


def _troubles(part: str, facts: Facts) -> str:
    """Return why pods of a part are not ready, each reason once."""
    pods = [pod for pod in facts.pods if pod.part == part]
    found = dict.fromkeys(pod.trouble for pod in pods if pod.trouble)
    return "; ".join(found) or ("" if pods else "it has no pods")


def image_tag(image: str) -> str:
    """Return the tag or digest of an image; the whole where it has none."""
    name, at, digest = image.partition("@")
    if at:
        return digest[:19]
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return tag if colon else image


def selector(part: str) -> str:
    """Return what selects the pods of a part."""
    return f"app.kubernetes.io/name={PREFIX}{part}"
