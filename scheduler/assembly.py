"""The profiles of a scheduling process, by scheduler name: what they share, and what each has of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kube.objects.objects import RESERVATION, PodInfo
from kube.session.api_session import ApiSession
from placement.card_types.listed_cards import ListedCards
from placement.filters.catalogue import standard_filters
from placement.filters.filter import Filter
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.filters.scheduling_gates import SchedulingGates
from placement.plugins import Bind, NodePreference, PostFilter, PreEnqueue
from placement.policies.policy import Policies
from placement.reservations.reservations import Reservations
from placement.scores.node_score import NodeScore
from scheduler.binding.bind_plugins import DefaultBinder, DryRun
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.binding.reservation_binder import ReservationBinder
from scheduler.binding.volume_binder import VolumeBinder
from scheduler.gangs.gang_plugin import Gang
from scheduler.handle import ProfileParts
from scheduler.loop_role import Advised, LoopRole
from scheduler.node_guard import NodeGuard, change_of
from scheduler.pod_reports import LoopReports
from scheduler.preemption.default_preemption import DefaultPreemption
from scheduler.preemption.nominated_devices import NominatedDevices
from scheduler.profile import PodsToPlace, SchedulingProfile
from scheduler.schedule_settings import LoopSettings
from scheduler.scheduling_tables import ScheduleTables
from scorer.judgement import Judge


def standard_profile(
    name: str,
    scheduler_name: str,
    policies: Policies,
    binding: BindingPlugins,
    *,
    fit: NodeResourcesFit,
    instead: Sequence[Filter] = (),
    further_filters: Sequence[Filter] = (),
    preferences: Sequence[NodePreference] = (),
    pre_enqueue: Sequence[PreEnqueue] = (),
    post_filters: Sequence[PostFilter] = (),
    scores: Sequence[tuple[NodeScore, int]] = (),
    score_per_point: float = 0.2,
) -> SchedulingProfile:
    """Return a profile with all of kube-scheduler's filters and scores, the predicted peak, and what it has of its own.

    fit             : NodeResourcesFit, the very one that preemption reckons with
    instead         : filters that take the place of standard ones of the same name
    further_filters : for every pod, whatever its policy says: NominatedPods, PredictedGap
    preferences     : in the order in which they narrow the nodes
    scores          : with their weights
    """
    replaced = {one.name: one for one in (fit, *instead)}
    standard = (replaced.get(one.name, one) for one in standard_filters())
    return SchedulingProfile(
        name=name,
        scheduler_name=scheduler_name,
        policies=policies,
        binding=binding,
        filters=(*standard, *further_filters),
        preferences=tuple(preferences),
        pre_enqueue=tuple(pre_enqueue),
        post_filters=tuple(post_filters),
        scores=tuple(scores),
        score_per_point=score_per_point,
    )


def assembled_profiles(
    settings: LoopSettings,
    policies: Policies,
    tables: ScheduleTables,
    bind: Bind,
    *,
    clock: Callable[[], float],
    volumes: VolumeBinder | None = None,
    open_gate: str = "",
) -> Mapping[str, SchedulingProfile]:
    """Return profiles by scheduler name over the tables of a process: of one that follows its cluster, of a dry run,
    and of an explanation alike.

    bind    : binds pods, or only says so
    clock   : unix seconds
    volumes : None = they are not bound
    open_gate : scheduling gate that keeps no pod from a node
    """

    def cards_of(pod: PodInfo) -> ListedCards:
        return policies.choose(pod).policy.cards

    guard, rules = NodeGuard(tables.view.state), tables.rules.under(cards_of)
    of_volumes = () if volumes is None else (volumes,)
    of_devices = NominatedDevices(rules.devices, tables.nominated)
    gates = (SchedulingGates(open_gate),) if open_gate else ()
    preemption = _preemption(settings, tables, clock)
    tenants = tables.tenants
    shards = tables.shards
    of_shards = () if shards is None else (shards.ownership,)
    alone = () if shards is None else (shards.alone,)

    def profile(name: str, own: ProfileParts) -> SchedulingProfile:
        return standard_profile(
            name,
            settings.scheduler_names[name],
            policies,
            BindingPlugins(
                bind=(guard, *of_shards, *alone, bind),
                reserve=(guard, *alone, *of_volumes, *own.reserve),
                pre_bind=(*of_volumes, *own.pre_bind),
                post_bind=tuple(own.post_bind),
            ),
            fit=tables.fit,
            instead=(*own.instead, *gates),
            further_filters=(
                *of_shards,
                tables.nominated,
                of_devices,
                *tables.common.filters,
                *(() if tenants is None else (tenants.filter,)),
                *rules.filters,
                *own.filters,
            ),
            preferences=(
                *(() if tenants is None else (tenants.limit,)),
                *rules.first,
                *own.first,
                *rules.preferences,
                *own.last,
            ),
            pre_enqueue=(*(() if tables.gangs is None else (Gang(tables.gangs),)), *own.gates),
            post_filters=(*own.post_filters, *preemption),
            scores=own.scores,
            score_per_point=settings.score_per_point,
        )

    profiles = {settings.scheduler_names[name]: profile(name, own) for name, own in tables.profiles.items()}
    rules.profile_filters.by_scheduler_name.update({name: one.filters_of for name, one in profiles.items()})
    return profiles


def own_role(
    settings: LoopSettings,
    tables: ScheduleTables,
    session: ApiSession,
    reports: LoopReports,
    *,
    decisions: Advised | None = None,
    reservations: Reservations | None = None,
) -> LoopRole:
    """Return the role of our own loops: they bind, or in a dry run say what they would.

    reservations : that this process places; None = it places none
    """
    names, shards = frozenset(settings.scheduler_names.values()), tables.shards
    pods = PodsToPlace(names) if shards is None else PodsToPlace(names, wanted=shards.responsibility.is_mine)
    if settings.dry_run:
        return LoopRole(
            pods=pods,
            bind=lambda limit, judge: DryRun(),
            reports=reports,
            decisions=decisions,
            writes_volumes=False,
            looks=False,
        )
    # Whatever profile places it: a pod says which cards it was given, and whose room it takes over.
    rules, rooms = tables.rules, tables.rooms

    def annotations_of(pod: PodInfo, node: str) -> Mapping[str, str]:
        room = rooms.taken_by(pod.uid)
        return {**rules.annotations_of(pod, node), **({} if room is None else {RESERVATION: room})}

    def change(node: str) -> Callable[[], str]:
        changed = change_of(tables.view.state, node)
        return changed if shards is None else lambda: shards.ownership.why_not(node) or changed()

    def bind(limit: InFlightLimit, judge: Judge) -> Bind:
        of_pods = DefaultBinder(
            session, limit, annotations_of=annotations_of, change_of=change, seconds=settings.binding_timeout
        )
        if reservations is None:
            return of_pods
        return ReservationBinder(session, reservations, of_pods, devices_of=rules.annotations_of)

    return LoopRole(pods=pods, bind=bind, reports=reports, decisions=decisions)


def _preemption(settings: LoopSettings, tables: ScheduleTables, clock: Callable[[], float]) -> Sequence[PostFilter]:
    """Return the last post filter of every profile, none if preemption is off."""
    if not settings.preemption.enabled:
        return ()
    rules = {
        settings.scheduler_names[name]: one.may_preempt
        for name, one in tables.profiles.items()
        if one.may_preempt is not None
    }
    preemption = DefaultPreemption(
        tables.sitting,
        tables.budgets,
        tables.nominated,
        clock=clock,
        gangs=tables.gangs,
        assumed=tables.assumed,
        options=settings.preemption,
        may_preempt=lambda pod: pod.scheduler_name not in rules or rules[pod.scheduler_name](pod),
        reclaim=None if tables.tenants is None else tables.tenants.reclaim,
    )
    return (preemption,)
