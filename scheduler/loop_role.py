"""What the loop of the scheduling profiles does with a decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from cluster.assuming_cluster import AssumingCluster
from placement.decisions.decision import Advice
from placement.filters.filter import ClusterView
from placement.plugins import Bind
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.pod_reports import LoopReports
from scheduler.profile import PodsToPlace, SchedulingProfile
from scheduler.scheduler import Together
from scorer.judgement import Judge


class Advised(Protocol):
    """placement.decisions.recorder.DecisionRecorder."""

    def advised(self, advice: Advice) -> object:
        """Keep what was decided about a pod."""


LooksTogether = Callable[[ClusterView, AssumingCluster, Mapping[str, SchedulingProfile]], Together]
"""(what filters see, the tables, profiles by scheduler name)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRole:
    """What becomes of a decision: the pod is bound, its node is advised to kube-scheduler, or it is only reported.

    pods           : which pods are decided about
    bind           : makes the plugin that carries decisions out; the limit is of its requests, the judge of the loop
    reports        : to users
    decisions      : records why each pod got its node; None = not recorded
    writes_volumes : claims get the node of their pod before that
    looks          : pods of which nothing is seen for long are looked at
    may_decide     : quick; asked before every unit, in addition to the Lease
    is_shadow      : nothing is done with the decision but to compare it
    looks_together : makes what looks at the pods of several cycles once more; None = nothing does
    most_unfinished, together : see LoopOptions
    """

    pods: PodsToPlace
    bind: Callable[[InFlightLimit, Judge], Bind]
    reports: LoopReports
    decisions: Advised | None = None
    writes_volumes: bool = True
    looks: bool = True
    may_decide: Callable[[], bool] = lambda: True
    is_shadow: bool = False
    looks_together: LooksTogether | None = None
    most_unfinished: int = 4096
    together: int = 1
