"""From settings to the options of the scheduling loops, their filters and their HTTP service."""

from __future__ import annotations

from base.errors import InputError
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.scorer_options import scorer_options
from placement.policies.compiling import PolicyDefaults, settings_policy
from placement.policies.filter_choice import FilterOptions
from placement.policies.policy import Policy
from scheduler.overcommit.repair_loop import RepairLoopOptions
from scheduler.profiles.gpu.idle_cpu.offline_pods import offline_pods
from scheduler.schedule_settings import ScheduleSettings
from scorer.service.options import ServiceOptions
from serving.options import ServingOptions


def profile_names(text: str) -> list[str]:
    """Of "online,gpu". Raises InputError where there is none."""
    from scheduler.profiles.registry import PROFILES  # the scorer reads these options, too, and loads no profile

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"--profile {text!r} names no profile: there is {', '.join(PROFILES)}")
    return names


def check_profiles(settings: ScheduleSettings) -> None:
    """Raises InputError for a profile that does not exist."""
    from scheduler.profiles.registry import builder

    for name in settings.profiles:
        builder(name)


def schedule_policy_defaults(settings: Settings) -> PolicyDefaults:
    """What policies leave out, they have from here."""
    scorer, ours = scorer_options(settings), settings.schedule
    rules = settings.node_rules
    options = FilterOptions(
        domain=ours.domain,
        shared=tuple(ours.share_nodes),
        highest_peaks=ours.highest_peaks,
        groups=rules.machine_groups,
        cards=rules.cards,
        devices=rules.devices,
        is_offline=offline_pods(ours.gpu, rules.devices).is_offline,
    )
    return PolicyDefaults(scorer.scores.weights, scorer.scores, options)


def schedule_policy(settings: Settings) -> Policy:
    """That of pods for which no policy is chosen. Raises InputError where scores, filters or resources are misnamed."""
    return settings_policy(schedule_policy_defaults(settings))


def sharing_options(settings: ScheduleSettings, instance: str) -> RepairLoopOptions:
    """Whose nodes are looked at for overcommits. instance: of this replica, as events show it."""
    return RepairLoopOptions(
        scheduler_names=tuple(settings.scheduler_names.values()),
        domain=settings.domain,
        shared=tuple(settings.share_nodes),
        repair=settings.repair.enabled and not settings.dry_run,
        instance=instance,
    )


def schedule_service_options(settings: Settings, serving: ServingOptions | None = None) -> ServiceOptions:
    """Who may ask, and how much; which series are exported is the scorer's setting.

    serving : None = settings.schedule
    """
    scorer = settings.scorer
    return ServiceOptions(
        **{name: getattr(serving or settings.schedule, name) for name in ServingOptions.model_fields},
        deadline=scorer.deadline,
        node_metrics=scorer.node_metrics,
        service_metrics=scorer.service_metrics,
    )
