"""From settings to the options of the extender, its filters and its HTTP service."""

from __future__ import annotations

from extender.extender_options import ExtenderOptions
from extender.remote_scores import RemoteScorer
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.extender_settings import ExtenderSettings
from forecast_scheduler.settings.scorer_options import scorer_options
from placement.node_rule_options import NodeRuleOptions
from placement.policies.compiling import PolicyDefaults
from placement.policies.filter_choice import (
    FilterOptions,
    card_rule,
    chosen_filters,
)
from placement.topology.options import TopologyOptions


def extender_options(whole: Settings) -> ExtenderOptions:
    """What the extender does. Raises InputError where filters or resources are misnamed."""
    settings, options = whole.extender, filter_options(whole)
    return ExtenderOptions(
        filters=chosen_filters(options),
        cards=card_rule(options),
        rules=extender_rules(whole),
        answers=settings,
    )


def extender_rules(whole: Settings) -> NodeRuleOptions:
    """The rules about nodes, but for topology: gangs and zones are not the extender's."""
    without = TopologyOptions(gangs=False, node_topologies=False)
    return whole.node_rules.replace(topology=without)


def filter_options(whole: Settings) -> FilterOptions:
    """What the filters go by; policies may say otherwise."""
    settings, rules = whole.extender, whole.node_rules
    return FilterOptions(
        domain=settings.domain,
        daemons=tuple(settings.daemon_schedulers),
        highest_peaks=settings.highest_peaks,
        standard=tuple(settings.standard_filters),
        predicts=settings.scorer.url is None,
        groups=rules.machine_groups,
        cards=rules.cards,
        devices=rules.devices,
    )


def policy_defaults(settings: Settings) -> PolicyDefaults:
    """What policies leave out, they have from here."""
    scorer, extender = scorer_options(settings), settings.extender
    longest = None if extender.scorer.url is None else extender.deadline
    return PolicyDefaults(scorer.scores.weights, scorer.scores, filter_options(settings), longest)


def remote_scorer(settings: ExtenderSettings) -> RemoteScorer | None:
    """The scorer elsewhere; None = the one inside is asked."""
    return settings.scorer.address(settings.deadline)
