"""The profiles of a scheduling process, by scheduler name: what they share, and what each has of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from extender.filters.filter import Filter
from extender.filters.node_resources_fit import NodeResourcesFit
from extender.framework.binding.binding_plugins import BindingPlugins
from extender.framework.binding.default_binder import DefaultBinder
from extender.framework.binding.in_flight_limit import InFlightLimit
from extender.framework.dry_run import DryRun
from extender.framework.gangs.plugin import Gang
from extender.framework.node_guard import NodeGuard
from extender.framework.plugins import Bind, PostFilter, PreEnqueue
from extender.framework.preemption.default_preemption import DefaultPreemption
from extender.framework.profile import SchedulingProfile
from extender.framework.volumes.volume_binding import VolumeBinding
from extender.job.profile import JOB, job_profile
from extender.online.profile import ONLINE, online_profile
from extender.policies.policy import Policies
from forecast_scheduler.job_tables import JobTables
from forecast_scheduler.schedule_options import preemption_options
from forecast_scheduler.schedule_settings import ScheduleSettings

if TYPE_CHECKING:
    from forecast_scheduler.live_schedule import LoopParts

__all__ = ["live_profiles", "profiles_of"]


def profiles_of(
    settings: ScheduleSettings,
    policies: Policies,
    binding: BindingPlugins,
    jobs: JobTables | None,
    *,
    fit: NodeResourcesFit,
    further_filters: Sequence[Filter] = (),
    pre_enqueue: Sequence[PreEnqueue] = (),
    post_filters: Sequence[PostFilter] = (),
) -> Mapping[str, SchedulingProfile]:
    """jobs: where the job profile runs; fit, further_filters: see online_filters."""
    profiles = []
    if ONLINE in settings.profiles:
        profiles.append(
            online_profile(
                settings.scheduler_names[ONLINE],
                policies,
                binding,
                fit=fit,
                further_filters=further_filters,
                pre_enqueue=pre_enqueue,
                post_filters=post_filters,
                score_per_point=settings.score_per_point,
            )
        )
    if jobs is not None:
        profiles.append(
            job_profile(
                settings.scheduler_names[JOB],
                policies,
                binding,
                fit=fit,
                instead=jobs.instead,
                further_filters=(*further_filters, *jobs.filters),
                preferences=jobs.preferences,
                pre_enqueue=(*pre_enqueue, *jobs.gates),
                post_filters=post_filters,
                score_per_point=settings.score_per_point,
            )
        )
    return {profile.scheduler_name: profile for profile in profiles}


def live_profiles(
    parts: LoopParts, limit: InFlightLimit, volumes: VolumeBinding | None
) -> Mapping[str, SchedulingProfile]:
    """Of a process that follows its cluster. limit: of all bindings under way; volumes: None = they are not bound."""
    settings, tables = parts.settings, parts.tables
    bind: Bind = DryRun()
    if not settings.dry_run:
        bind = DefaultBinder(parts.session, limit, seconds=settings.binding_timeout)
    of_volumes = () if volumes is None else (volumes,)
    return profiles_of(
        settings,
        parts.policies,
        BindingPlugins(bind=(NodeGuard(tables.view.state), bind), reserve=of_volumes, awaited=of_volumes),
        tables.jobs,
        fit=tables.fit,
        further_filters=(tables.nominated, tables.colocation.filter),
        pre_enqueue=() if tables.gangs is None else (Gang(tables.gangs),),
        post_filters=_post_filters(parts),
    )


def _post_filters(parts: LoopParts) -> Sequence[PostFilter]:
    tables = parts.tables
    if not parts.settings.preemption.enabled:
        return ()
    preemption = DefaultPreemption(
        tables.sitting,
        tables.budgets,
        tables.nominated,
        clock=time.time,
        gangs=tables.gangs,
        assumed=tables.assumed,
        options=preemption_options(parts.settings),
    )
    return (preemption,)
