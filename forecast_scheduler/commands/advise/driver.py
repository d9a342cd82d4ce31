"""The advisor put together: the loop of `schedule`, whose decisions become nominations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from advisor.advice_binder import AdviceBinder, AdviceFigures, AdviceNotes, ShadowBinder, asks_for_advice
from advisor.advice_metrics import AdviceCollector, FollowingCollector, PreferenceCollector
from advisor.advice_settings import AdvisedLoop, AdviseOptions
from advisor.exchanged_nodes import FEWEST, TOGETHER, PlacedTogether
from advisor.followed_advice import BoundPods, Following
from advisor.held_pod_events import EVENTS_A_SECOND, EVENTS_AT_ONCE, HeldPodEvents
from advisor.held_pod_events import LOOK_SECONDS as LOOK_AT_HELD_SECONDS
from advisor.pods_waiting_for_advice import GatedPods
from advisor.preference_route import preferences_router
from advisor.preferred_pods import PreferredPods
from advisor.quota_gate import QuotaGate, is_released
from advisor.releases_without_advice import AdviceReports, ForecastUse, Releases
from advisor.stale_nominations import StaleNominations, ending_pods, makes_room
from base.excluded import ExcludedOptions
from base.periodic_task import PeriodicTask
from cluster.degradation import Level
from forecast_scheduler.commands.schedule.drivers import Driven
from kube.client.right_to_patch_pods import LOOK_SECONDS, RightToPatchPods
from kube.events.event_recorder import EventRecorder, session_post
from kube.leader_election.lease import Lease
from kube.objects.objects import PodInfo
from kube.session.api_session import ApiSession
from placement.decisions.recorder import DecisionRecorder
from placement.gate_exemptions import ADVICE
from placement.plugins import Bind
from placement.policies.provider import PolicyProvider
from placement.preferred_nodes import PreferencesBody, PreferencesRequest, PreferredNode
from placement.reservations.reservations import Reservations
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.loop_role import LoopRole
from scheduler.pod_reports import LoggedReports
from scheduler.process import Process
from scheduler.profile import PodsToPlace
from scheduler.scheduling_tables import ScheduleTables
from scorer.judgement import Judge
from scorer.scorer import Scorer
from serving.threads import BackgroundThread, Upkeep

CONTROLLER: Final = "forecast-scheduler.io/advisor"

_RELEASE_SECONDS: Final = 0.1
_STALE_SECONDS: Final = 1.0
_LEVEL_SECONDS: Final = 0.2
_RELEASE_CONNECTIONS: Final = 64
_REQUEST_SECONDS: Final = 5.0

_PREFERRED_NODES: Final = 16
"""Most nodes that a pod prefers: each costs it a term of preferred node affinity. kube-scheduler looks at a part of a
large cluster only, and some of them should be in it."""

_CHARGE_SECONDS: Final = 5.0
"""A pod that was asked about, and never comes because it was refused after all, counts for this time."""


class Advising:
    """Implements Driver: kube-scheduler is advised, or in shadow mode only compared with."""

    controller = CONTROLLER
    places_reservations = False  # it writes nominations, which a Reservation has none of
    may_share = binds = False
    records = True

    def __init__(self, options: AdviseOptions, excluded: ExcludedOptions) -> None:
        self._options, self._excluded = options, excluded
        self.is_shadow = options.shadow
        self._right: RightToPatchPods | None = None

    def may_lead(self) -> bool:
        return self._right is not None and self._right.is_granted()

    def drive(
        self,
        process: Process,
        scorer: Scorer,
        tables: ScheduleTables,
        recorder: DecisionRecorder | None,
        policies: PolicyProvider | None,
        reservations: Reservations | None,
    ) -> Driven:
        names = frozenset({self._options.scheduler_name})
        assert recorder is not None  # `records`
        notes, forecast = AdviceNotes(recorder), _LevelSeen(scorer)

        def has_forecast() -> bool:
            return forecast() is ForecastUse.USABLE

        with scorer.tables.reading() as cluster:
            gated, state = GatedPods(cluster), cluster.state
            following = Following(lambda: state.version)
            filters = tables.rules.profile_filters
            bound = BoundPods(
                cluster,
                tables.view,
                recorder,
                lambda pod: filters.by_scheduler_name[pod.scheduler_name](pod),
                following,
            )
            tenants = tables.tenants
            if tenants is not None:
                tenants.quotas.ledger.count_released(lambda pod: pod.scheduler_name in names and is_released(pod))
        scorer.tables.attach((), bound)
        if self.is_shadow:
            labels_of = tables.view.index.namespaces.labels_of
            by_policy = (lambda pod: None) if policies is None else policies.advice
            pods = PodsToPlace(names, wanted=asks_for_advice(labels_of, names, self._excluded, by_policy))
            role = LoopRole(
                pods=pods,
                bind=lambda limit, judge: ShadowBinder(),
                reports=LoggedReports(),
                decisions=recorder,
                writes_volumes=False,
                looks=False,
                may_decide=has_forecast,
                is_shadow=True,
                looks_together=partial(PlacedTogether, fewest=FEWEST),
                together=TOGETHER,
            )
            return Driven(role, lambda judge: Upkeep())
        scorer.tables.attach((), gated)
        # Replicas that do not lead release what is overdue, too.
        session = ApiSession(process.api, connections=_RELEASE_CONNECTIONS)
        quota_gate = None
        if tenants is not None:
            quota_gate = QuotaGate(
                tenants.quotas,
                reading=scorer.tables.reading,
                leads=process.leads,
                is_read=lambda: tenants.sink.is_read,
            )
        figures = AdviceFigures()
        releases = Releases(
            session,
            gated,
            seconds=self._options.gate_timeout,
            forecast=forecast,
            leads=process.leads,
            n_advised=lambda: figures.advised + figures.preferred,
            n_decided=lambda: notes.n_advised,
            quotas=quota_gate,
        )

        def may_be_made(pod: PodInfo, node: str) -> bool:
            with scorer.tables.reading() as cluster:
                return makes_room(ending_pods(cluster), pod, node)

        with scorer.tables.reading() as cluster:
            stale = StaleNominations(
                cluster,
                session,
                reading=scorer.tables.reading,
                leads=process.leads,
                seconds=self._options.follow_timeout,
                withdrawn=figures.count_withdrawn,
            )
        scorer.tables.attach((), stale)

        def bind(limit: InFlightLimit, judge: Judge) -> Bind:
            def ranking_of(pod: PodInfo) -> Sequence[str]:
                with scorer.tables.reading():
                    judged = judge(pod)
                return () if judged is None else judged.ranking

            return AdviceBinder(
                process.session,
                limit,
                notes=notes,
                gated=gated,
                seconds=_REQUEST_SECONDS,
                figures=figures,
                following=following,
                ranking_of=ranking_of,
                peak_of=scorer.expected_peak,
                makes_room=may_be_made,
                n_nodes=_PREFERRED_NODES,
                released=quota_gate.released if quota_gate is not None else None,
            )

        role = LoopRole(
            pods=PodsToPlace(names, gate=ADVICE),
            bind=bind,
            reports=AdviceReports(releases),
            decisions=notes,
            writes_volumes=False,
            may_decide=has_forecast,
            looks_together=partial(PlacedTogether, fewest=FEWEST),
            together=TOGETHER,
            most_unfinished=AdvisedLoop.bindings_in_flight,
        )
        releasing = PeriodicTask(
            "release-gates", _RELEASE_SECONDS, releases.keep_up, after=lambda: scorer.tables.synced
        )
        right = self._right = RightToPatchPods(process.api, "this replica does not lead, and no new pod is held")
        events = EventRecorder(
            session_post(process.session),
            what="held-pods",
            instance=process.instance,
            controller=CONTROLLER,
            action="Holding",
            rate=EVENTS_A_SECOND,
            burst=EVENTS_AT_ONCE,
        )
        quota_why = quota_gate.why if quota_gate is not None else lambda pod: ""
        held = HeldPodEvents(gated, events, leads=process.leads, quota_why=quota_why)
        holds = PeriodicTask("held-pods", LOOK_AT_HELD_SECONDS, held.look, after=lambda: scorer.tables.synced)
        looks = PeriodicTask("right-to-release", LOOK_SECONDS, right.look)
        stales = PeriodicTask("stale-nominations", _STALE_SECONDS, stale.keep_up, after=lambda: scorer.tables.synced)
        threads: list[BackgroundThread] = [session, releasing, looks, stales, events, holds]
        if process.lease is not None:
            threads.append(_Farewell(process.lease, process.leads, releases))

        def upkeep(judge: Judge) -> Upkeep:
            preferred = PreferredPods(
                scorer,
                tables.view,
                recorder,
                n_nodes=_PREFERRED_NODES,
                charge_seconds=_CHARGE_SECONDS,
                bound_seconds=self._options.follow_timeout,
                has_forecast=has_forecast,
                judge=judge,
            )
            return Upkeep(
                threads,
                (
                    AdviceCollector(gated, releases, figures, quota_gate),
                    PreferenceCollector(preferred.figures),
                    FollowingCollector(following),
                ),
                (preferences_router(preferred),),
                (PreferencesRequest, PreferencesBody, PreferredNode),
            )

        def abilities() -> Mapping[str, Any]:
            return {"leads": process.leads(), "may_release": self.may_lead(), "forecast": forecast.seen.value}

        return Driven(role, upkeep, gated.is_echo, abilities)


class _Farewell:
    """Implements Background. At the end a leader gives its Lease back, and releases what the webhook still holds."""

    def __init__(self, lease: Lease, leads: Callable[[], bool], releases: Releases) -> None:
        self._lease, self._leads, self._releases = lease, leads, releases

    def start(self) -> None:
        """Nothing has to begin."""

    def stop(self) -> None:
        """Returns once another replica leads, or the webhook holds no new pods any more."""
        led = self._leads()
        self._lease.stop()
        if led:
            self._releases.end(self._lease.is_taken)


class _LevelSeen:
    """Whether a model says where load will be: below that, advice would be no better than kube-scheduler's.

    seen : at the last call, for those who must not wait for the lock of the tables
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer, self._looked_at = scorer, float("-inf")
        self.seen = ForecastUse.AWAITED

    def __call__(self) -> ForecastUse:
        if (now := time.monotonic()) - self._looked_at > _LEVEL_SECONDS:
            tables = self._scorer.tables
            with tables.reading():  # while the first list comes in, columns grow one after the other
                self._looked_at, is_usable = now, tables.level()[0] < Level.REQUESTS
                missing = ForecastUse.AWAITED if tables.awaits_model() else ForecastUse.MISSING
                self.seen = ForecastUse.USABLE if is_usable else missing
        return self.seen
