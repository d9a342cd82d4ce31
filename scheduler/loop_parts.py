"""What the loop of the scheduling profiles is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kube.session.api_session import ApiSession
from placement.decisions.recorder import DecisionRecorder
from placement.policies.policy import Policies
from scheduler.metrics import SchedulingMetrics
from scheduler.reporting.logged_reports import LoggedReports
from scheduler.reporting.reports import Reports
from scheduler.settings import ScheduleSettings
from scheduler.tables import ScheduleTables
from scorer.scorer import Scorer


@dataclass(frozen=True, slots=True)
class LoopParts:
    """What a loop is made of.

    waits_for : what has to be read before the first pod is placed, "" = nothing any more
    may_write : whether this replica leads and is no dry run; the session asks it, too
    instance  : name of this replica, as events show it
    decisions : records why each pod got its node; None = not recorded
    """

    settings: ScheduleSettings
    scorer: Scorer
    tables: ScheduleTables
    policies: Policies
    session: ApiSession
    reports: Reports | LoggedReports
    metrics: SchedulingMetrics
    waits_for: Callable[[], str]
    may_write: Callable[[], bool]
    instance: str
    decisions: DecisionRecorder | None = None
