"""What the extender answers: values that the HTTP service translates into kube-scheduler's protocol.

`ExtenderApi` is the facade that gives them; `extender.extender.Extender` implements it. Any thread may call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kube.objects.objects import PodInfo
from scorer.answers import ScorerStatus


@dataclass(frozen=True, slots=True)
class Filtered:
    """Which of the nodes asked for a pod may go to.

    nodes        : those that passed, in the order asked; unknown nodes pass, kube-scheduler may know better
    failed       : node -> why not; evicting pods may help
    unresolvable : node -> why not; evicting pods cannot help
    """

    nodes: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VictimsByUid:
    """Pods that kube-scheduler would evict from a node, by UID, and how many disruption budgets that violates."""

    pods: tuple[str, ...]
    pdb_violations: int = 0


class ExtenderApi(Protocol):
    """The extender, as the HTTP service sees it."""

    def filter(self, pod: PodInfo, nodes: Sequence[str]) -> Filtered:
        """Which nodes pass our filters."""

    def prioritize(self, pod: PodInfo, nodes: Sequence[str], *, due: float = math.inf) -> Mapping[str, int]:
        """Points by node; those that are missing have 0, which is neutral. Better nodes are positive, worse negative.

        due : time.perf_counter() by which the reply is heard

        The node that kube-scheduler will probably take is charged for the pod until its binding is seen: by `settle`,
        or at the latest before the next pod is judged.
        """

    def prepare(self, pod: PodInfo, nodes: Sequence[str]) -> None:
        """Called once the reply to /filter is out, with the nodes that passed: /prioritize usually follows."""

    def settle(self) -> None:
        """Do what was put off until the reply to /prioritize is out. Harmless where nothing was."""

    def preempt(self, pod: PodInfo, victims: Mapping[str, VictimsByUid]) -> Mapping[str, VictimsByUid]:
        """The nodes among those with victims where the pod could go by our filters once the victims are gone."""

    def deadline_seconds(self, pod: PodInfo) -> float | None:
        """By when, after its coming, a question about the pod must be answered; None = as about any other."""

    def status(self) -> ScorerStatus:
        """The state of the scorer inside: ready, level, ages."""
