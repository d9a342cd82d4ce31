"""What becomes of the decisions of a loop: our own loops carry them out, the advisor only advises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from forecast_scheduler.settings.feature_options import sharing_options
from kube.events.event_recorder import api_server_post
from placement.decisions.recorder import DecisionRecorder
from placement.policies.provider import PolicyProvider
from placement.reservations.reservations import Reservations
from profiles.schedule_settings import ScheduleSettings
from scheduler.assembly import own_role
from scheduler.loop_role import LoopRole
from scheduler.overcommit.repair_loop import CONTROLLER, RepairLoop
from scheduler.pod_reports import LoggedReports, Reports
from scheduler.process import Process
from scheduler.scheduling_metrics import ReportFigures
from scheduler.scheduling_tables import ScheduleTables
from scorer.background import CapacityEvents
from scorer.judgement import Judge
from scorer.scorer import Scorer
from serving.threads import Upkeep


@dataclass(frozen=True, slots=True)
class Driven:
    """
    upkeep    : makes what goes on beside the loop, by the judge of the loop
    is_known  : whether an event of a pod says nothing new, by its line of the watch
    abilities : what /readyz says in addition
    """

    role: LoopRole
    upkeep: Callable[[Judge], Upkeep]
    is_known: Callable[[bytes], bool] = lambda line: False
    abilities: Callable[[], Mapping[str, Any]] = dict


class Driver(Protocol):
    """Which loops run: our own, or those of the advisor.

    controller : who decides, as events name it
    records    : decisions are recorded
    is_shadow  : and only compared
    places_reservations : Reservations get their nodes here
    may_share   : replicas may place at once, each on its shards, if the settings say so
    binds       : pods are bound here
    """

    controller: str
    records: bool
    is_shadow: bool
    places_reservations: bool
    may_share: bool
    binds: bool

    def drive(
        self,
        process: Process,
        scorer: Scorer,
        tables: ScheduleTables,
        recorder: DecisionRecorder | None,
        policies: PolicyProvider | None,
        reservations: Reservations | None,
    ) -> Driven:
        """Return what becomes of decisions; called before the cluster is read.

        recorder     : None = decisions are not recorded
        policies     : None = the settings name none
        reservations : that get their nodes here; None = none do
        """

    def may_lead(self) -> bool:
        """Return whether this replica can do what a leader has to. For any thread, after `drive`."""


class OwnLoops:
    """Implements Driver: pods are bound, or in a dry run only reported."""

    controller = CONTROLLER
    is_shadow = False

    def __init__(self, settings: ScheduleSettings) -> None:
        self._settings = settings
        self.records = not settings.dry_run  # the pods of a dry run are never bound
        self.places_reservations = self.may_share = self.binds = not settings.dry_run
        self._owns_nodes: Callable[[], bool] = lambda: True

    def drive(
        self,
        process: Process,
        scorer: Scorer,
        tables: ScheduleTables,
        recorder: DecisionRecorder | None,
        policies: PolicyProvider | None,
        reservations: Reservations | None,
    ) -> Driven:
        settings, shards = self._settings, tables.shards
        if shards is not None:
            self._owns_nodes = shards.ownership.owns_any
        reports: Reports | LoggedReports = LoggedReports()
        if not settings.dry_run:
            reports = Reports(process.session, instance=process.instance, decisions=recorder)
        return Driven(
            own_role(settings, tables, process.session, reports, decisions=recorder, reservations=reservations),
            lambda judge: self._upkeep(process, scorer, tables, reports),
            is_known=(lambda line: False) if shards is None else shards.foreign.is_foreign,
        )

    def may_lead(self) -> bool:
        """A replica that owns no node could place none of the pods that only the leader decides about."""
        return self._owns_nodes()

    def _upkeep(
        self, process: Process, scorer: Scorer, tables: ScheduleTables, reports: Reports | LoggedReports
    ) -> Upkeep:
        """Repair nodes that promise more than they have, and say which capacities are assumed."""
        post = None if process.is_dry_run else api_server_post(process.api)
        repair = RepairLoop(
            scorer.tables,
            tables.view.index.labels,
            sharing_options(self._settings, process.instance),
            evict=process.evict,
            post=post,
            fit=tables.fit,
            may_write=process.leads,
            after=lambda: scorer.tables.synced,
        )
        if post is None or isinstance(reports, LoggedReports):
            return Upkeep((repair,), (repair.collector,))
        events = CapacityEvents(
            scorer, post, controller=self.controller, instance=process.instance, may_write=process.leads
        )
        of_reports = ReportFigures(lambda: reports.conditions.figures, lambda: reports.events.figures)
        return Upkeep((repair, events), (repair.collector, of_reports))
