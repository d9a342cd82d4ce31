"""The profiles of a scheduling process, by scheduler name: what they share, and what each has of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from placement.filters.filter import Filter
from placement.filters.node_resources_fit import NodeResourcesFit
from placement.node_rules import NodeRules
from placement.plugins import Bind, NodePreference, PostFilter, PreEnqueue, Score
from placement.policies.policy import Policies
from scheduler.binding.binding_plugins import BindingPlugins
from scheduler.binding.default_binder import DefaultBinder
from scheduler.binding.in_flight_limit import InFlightLimit
from scheduler.dry_run import DryRun
from scheduler.gangs.plugin import Gang
from scheduler.handle import LoopParts
from scheduler.node_guard import NodeGuard, change_of
from scheduler.preemption.default_preemption import DefaultPreemption
from scheduler.preemption.nominated_devices import NominatedDevices
from scheduler.profile import SchedulingProfile
from scheduler.profiles.gpu.dra.no_resource_claims import NoResourceClaims
from scheduler.profiles.gpu.profile import GPU
from scheduler.profiles.gpu.tables import GpuTables
from scheduler.profiles.job.profile import JOB
from scheduler.profiles.job.tables import JobTables
from scheduler.profiles.online.profile import ONLINE
from scheduler.settings import ScheduleSettings
from scheduler.standard_profile import standard_profile
from scheduler.tables import ScheduleTables
from scheduler.volumes.volume_binding import VolumeBinding


@dataclass(frozen=True, slots=True)
class _Own:
    """What a profile has that the others have not. See standard_profile and BindingPlugins for the words.

    first, last : preferences before and after those of the rules; the order of machine groups comes before all
    """

    instead: Sequence[Filter] = ()
    filters: Sequence[Filter] = ()
    first: Sequence[NodePreference] = ()
    last: Sequence[NodePreference] = ()
    gates: Sequence[PreEnqueue] = ()
    post_filters: Sequence[PostFilter] = ()
    scores: Sequence[tuple[Score, int]] = ()


def profiles_of(
    settings: ScheduleSettings,
    policies: Policies,
    binding_of: Callable[[str], BindingPlugins],
    rules: NodeRules,
    jobs: JobTables | None,
    gpus: GpuTables | None,
    *,
    fit: NodeResourcesFit,
    further_filters: Sequence[Filter] = (),
    pre_enqueue: Sequence[PreEnqueue] = (),
    post_filters: Sequence[PostFilter] = (),
) -> Mapping[str, SchedulingProfile]:
    """
    binding_of           : by the name of the profile
    rules                : of all profiles
    jobs, gpus           : where these profiles run
    fit, further_filters : see standard_profile; of all profiles, as are the gates and post filters that follow
    """
    profiles = {
        settings.scheduler_names[name]: standard_profile(
            name,
            settings.scheduler_names[name],
            policies,
            binding_of(name),
            fit=fit,
            instead=own.instead,
            further_filters=(*further_filters, *rules.filters, *own.filters),
            preferences=(*rules.first, *own.first, *rules.preferences, *own.last),
            pre_enqueue=(*pre_enqueue, *own.gates),
            post_filters=(*own.post_filters, *post_filters),
            scores=own.scores,
            score_per_point=settings.score_per_point,
        )
        for name, own in _own(settings, jobs, gpus)
    }
    rules.profile_filters.by_scheduler_name = {name: one.filters_of for name, one in profiles.items()}
    rules.choose_by(policies)
    return profiles


def _own(settings: ScheduleSettings, jobs: JobTables | None, gpus: GpuTables | None) -> Iterator[tuple[str, _Own]]:
    """The profiles that run, by name."""
    class_resources = {} if gpus is None else gpus.claims.table.class_resources
    if ONLINE in settings.profiles:
        yield ONLINE, _Own(filters=(NoResourceClaims(class_resources),))
    if jobs is not None:
        yield (
            JOB,
            _Own(
                instead=jobs.instead,
                filters=(*jobs.filters, NoResourceClaims(class_resources)),
                first=jobs.preferences,
                gates=jobs.gates,
            ),
        )
    if gpus is not None:
        yield (
            GPU,
            _Own(
                filters=gpus.filters,
                first=gpus.first,
                last=gpus.last,
                gates=gpus.gates,
                post_filters=gpus.post_filters,
                scores=gpus.scores,
            ),
        )


def assembled_profiles(
    settings: ScheduleSettings,
    policies: Policies,
    tables: ScheduleTables,
    bind: Bind,
    *,
    clock: Callable[[], float],
    volumes: VolumeBinding | None = None,
) -> Mapping[str, SchedulingProfile]:
    """Profiles by scheduler name over the tables of a process: of one that follows its cluster, of a dry run, and of an
    explanation alike.

    bind    : binds pods, or only says so
    clock   : unix seconds
    volumes : None = they are not bound
    """
    guard, gpus = NodeGuard(tables.view.state), tables.gpus
    of_volumes = () if volumes is None else (volumes,)
    of_devices = NominatedDevices(tables.rules.devices, tables.nominated)

    def binding_of(profile: str) -> BindingPlugins:
        binding = BindingPlugins(bind=(guard, bind), reserve=(guard, *of_volumes), awaited=of_volumes)
        if profile != GPU or gpus is None:
            return binding
        return replace(
            binding,
            reserve=(guard, *of_volumes, gpus.claims),
            awaited=(*of_volumes, *gpus.awaited),
            post_bind=(gpus.claims,),
        )

    return profiles_of(
        settings,
        policies,
        binding_of,
        tables.rules,
        tables.jobs,
        tables.gpus,
        fit=tables.fit,
        further_filters=(tables.nominated, of_devices, tables.colocation.filter),
        pre_enqueue=() if tables.gangs is None else (Gang(tables.gangs),),
        post_filters=_post_filters(settings, tables, clock),
    )


def live_profiles(
    parts: LoopParts, limit: InFlightLimit, volumes: VolumeBinding | None
) -> Mapping[str, SchedulingProfile]:
    """Profiles of a process that follows its cluster. limit: of all bindings under way; volumes: None = they are not
    bound."""
    settings, tables = parts.settings, parts.tables
    bind: Bind = DryRun()
    if not settings.dry_run:
        # Whatever profile places it: a pod says which cards it was given.
        bind = DefaultBinder(
            parts.session,
            limit,
            annotations_of=tables.rules.annotations_of,
            change_of=partial(change_of, tables.view.state),
            seconds=settings.binding_timeout,
        )
    return assembled_profiles(settings, parts.policies, tables, bind, clock=time.time, volumes=volumes)


def _post_filters(
    settings: ScheduleSettings, tables: ScheduleTables, clock: Callable[[], float]
) -> Sequence[PostFilter]:
    if not settings.preemption.enabled:
        return ()
    preemption = DefaultPreemption(
        tables.sitting,
        tables.budgets,
        tables.nominated,
        clock=clock,
        gangs=tables.gangs,
        assumed=tables.assumed,
        options=settings.preemption,
        may_preempt=(lambda pod: True) if tables.gpus is None else tables.gpus.offline.may_preempt,
    )
    return (preemption,)
