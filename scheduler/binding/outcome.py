"""What becomes of a pod that was given a node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kube.binding.binding_steps import BindingResult, BindingVerdict
from kube.objects.objects import PodInfo
from placement.status import Code, Status


@dataclass(frozen=True, slots=True)
class Reserved:
    """A pod and the node it was given: assumed there, and reserved by every Reserve plugin."""

    pod: PodInfo
    node: str


class Ending(Enum):
    """How a binding ends."""

    BOUND = "bound"
    FAILED = "failed"  # definitely not bound to that node; everything reserved was released
    UNKNOWN = "unknown"  # it may be bound: nothing was released, ask later


@dataclass(frozen=True, slots=True)
class BindingOutcome:
    """
    reason       : one sentence, '' = bound
    plugin       : which stopped it; '' = the API server
    is_gone      : the pod is gone, being deleted, or replaced by another of its name: nothing to schedule any more
    is_elsewhere : it was bound to another node, `node`
    """

    ending: Ending
    reason: str = ""
    plugin: str = ""
    is_gone: bool = False
    is_elsewhere: bool = False
    node: str = ""

    @property
    def is_bound(self) -> bool:
        """To the node that was asked for."""
        return self.ending is Ending.BOUND


@dataclass(frozen=True, slots=True)
class BindStatus(Status):
    """What a Bind plugin may say beyond a Status: the whole result."""

    result: BindingResult | None = None


def bind_status(plugin: str, result: BindingResult) -> BindStatus:
    """ERROR = it is not known whether it is bound."""
    code = {BindingVerdict.BOUND: Code.SUCCESS, BindingVerdict.UNKNOWN: Code.ERROR}.get(
        result.verdict, Code.UNSCHEDULABLE
    )
    return BindStatus(code, plugin, result.reason, result=result)


def outcome_of_binding(status: Status) -> BindingOutcome:
    """What a Bind plugin's status (not SKIP) means."""
    if status.is_success:
        return BindingOutcome(Ending.BOUND)
    result = status.result if isinstance(status, BindStatus) else None
    # Anything but a plain no leaves open whether a request is under way.
    ending = Ending.FAILED if status.code in (Code.UNSCHEDULABLE, Code.UNRESOLVABLE) else Ending.UNKNOWN
    verdict = None if result is None else result.verdict
    return BindingOutcome(
        ending,
        status.reason or "the plugin does not say why",
        status.plugin,
        is_gone=verdict is BindingVerdict.GONE,
        is_elsewhere=verdict is BindingVerdict.ELSEWHERE,
        node="" if result is None else result.node,
    )
