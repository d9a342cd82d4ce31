"""From settings to the options of the scorer, the extender, the scheduling loops, their filters and their HTTP
services.
"""

from __future__ import annotations

from base.errors import InputError
from base.local_hours import ChangeWindows
from extender.extender_options import ExtenderOptions
from extender.score_sources import RemoteScorer
from forecast.calendar import Calendar
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.sections import ExtenderSettings
from placement.node_rule_settings import NodeRuleOptions, TopologyOptions
from placement.plugin_loading import used_plugins
from placement.plugin_options import EXTENDER
from placement.policies.compiling import PolicyDefaults, settings_policy
from placement.policies.filter_choice import (
    FilterOptions,
    card_rule,
    chosen_filters,
)
from placement.policies.policy import Policy
from profiles.gpu.idle_cpu.offline_pods import offline_pods
from profiles.schedule_settings import ScheduleSettings
from scheduler.overcommit.repair_loop import RepairLoopOptions
from scorer.options import ScorerOptions, ScoringOptions
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.server_settings import ServingOptions


def scorer_options(settings: Settings) -> ScorerOptions:
    """What the scorer of each command does. Raises InputError where scores are misnamed."""
    prometheus = settings.prometheus
    capacities = {
        "disk": prometheus.disk_capacity,
        "network": prometheus.network_capacity,
        "log": prometheus.log_capacity,
    }
    return ScorerOptions(
        **{name: getattr(settings.scorer, name) for name in ScoringOptions.model_fields},
        usage_window=prometheus.step,
        capacities={name: value for name, value in capacities.items() if value is not None},
        job_schedulers=(settings.schedule.job.scheduler_name,),
    )


def change_windows(settings: Settings) -> ChangeWindows:
    """When running pods may be changed. Raises InputError where the time zone is none."""
    zone = None if settings.time_zone is None else Calendar(settings.time_zone).zone
    return ChangeWindows.of(settings.change_windows, zone)


def profile_names(text: str) -> list[str]:
    """Of "online,gpu". Raises InputError where there is none."""
    from profiles.registry import PROFILES  # the scorer reads these options, too, and loads no profile

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"--profile {text!r} names no profile: there is {', '.join(PROFILES)}")
    return names


def check_profiles(settings: ScheduleSettings) -> None:
    """Raises InputError for a profile that does not exist."""
    from profiles.registry import builder

    for name in settings.profiles:
        builder(name)


def schedule_policy_defaults(settings: Settings) -> PolicyDefaults:
    """What policies leave out, they have from here."""
    scorer, ours = scorer_options(settings), settings.schedule
    rules, plugins = settings.node_rules, used_plugins(settings.plugins)
    options = FilterOptions(
        domain=ours.domain,
        shared=tuple(ours.share_nodes),
        rules=rules,
        is_offline=offline_pods(ours.gpu, ours.colocation, rules.devices).is_offline,
        plugins=plugins.filters(),  # those that are on for a profile are in its list
    )
    names = tuple(one.name for one, _ in plugins.scores(""))
    return PolicyDefaults(scorer.scores.weights, scorer.scores, options, score_plugins=names)


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


def service_options(settings: Settings, serving: ServingOptions) -> ScorerServiceOptions:
    """Return the options of a service that has a scorer inside; which series it exports is the scorer's setting.

    serving : of its command
    """
    scorer = settings.scorer
    return ScorerServiceOptions(
        serving=serving,
        node_metrics=scorer.node_metrics,
        service_metrics=scorer.service_metrics,
    )


def extender_options(whole: Settings) -> ExtenderOptions:
    """What the extender does. Raises InputError where filters or resources are misnamed."""
    settings, options = whole.extender, filter_options(whole)
    return ExtenderOptions(
        filters=chosen_filters(options),
        cards=card_rule(options),
        rules=extender_rules(whole),
        answers=settings,
        scores=used_plugins(whole.plugins).scores(EXTENDER),
    )


def extender_rules(whole: Settings) -> NodeRuleOptions:
    """The rules about nodes, but for topology: gangs and zones are not the extender's."""
    without = TopologyOptions(gangs=False, node_topologies=False)
    return whole.node_rules.replace(topology=without)


def filter_options(whole: Settings) -> FilterOptions:
    """What the filters go by; policies may say otherwise."""
    settings, rules, plugins = whole.extender, whole.node_rules, used_plugins(whole.plugins)
    return FilterOptions(
        domain=settings.domain,
        daemons=tuple(settings.daemon_schedulers),
        rules=rules,
        standard=tuple(settings.standard_filters),
        predicts=settings.scorer.url is None,
        plugins=plugins.filters(),
        plugins_on=plugins.filters(EXTENDER),
    )


def policy_defaults(settings: Settings) -> PolicyDefaults:
    """What policies leave out, they have from here."""
    scorer, extender = scorer_options(settings), settings.extender
    longest = None if extender.scorer.url is None else extender.deadline
    names = tuple(one.name for one, _ in used_plugins(settings.plugins).scores(EXTENDER))
    return PolicyDefaults(scorer.scores.weights, scorer.scores, filter_options(settings), longest, names)


def remote_scorer(settings: ExtenderSettings) -> RemoteScorer | None:
    """The scorer elsewhere; None = the one inside is asked."""
    return settings.scorer.address(settings.deadline)
