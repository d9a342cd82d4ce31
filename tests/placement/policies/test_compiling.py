"""From a document to policies: what is left out is the settings', what means nothing is refused with its place."""

from __future__ import annotations

import pytest

from base.errors import InputError
from placement.card_types.listed_cards import ListedCards
from placement.filters.catalogue import STANDARD_FILTERS
from placement.filters.domain import Domain
from placement.filters.predicted_peak import PredictedPeak
from placement.node_rule_settings import CardOptions, DeviceOptions, NodeRuleOptions, Protection
from placement.policies.compiling import PolicyDefaults, compile_document, settings_policy
from placement.policies.document import read_document
from placement.policies.filter_choice import FILTER_NAMES, FilterOptions
from placement.policies.mistakes import DocumentMistake
from placement.policies.policy import Policy
from placement.policies.policy_set import PolicySet
from placement.scores.plugin_weights import PLUGIN_WEIGHTS
from scorer.scores.score_settings import ScoreParameters
from tests.placement.policies.made_up import DOCUMENT

DEFAULTS = PolicyDefaults(
    weights={"predicted_peak": 2.0, "balance": 1.0},
    parameters=ScoreParameters(usage_weights={"cpu": 3.0}),
    filters=FilterOptions(
        domain="blue",
        rules=NodeRuleOptions(
            cards=CardOptions(rare_types=("H100",)),
            devices=DeviceOptions(resources=("amd.com/gpu",), model_labels=("card",)),
            highest_peaks={"memory": 0.7},
        ),
        standard=("TaintToleration", "NodeName"),
    ),
)


def compiled(text: str, defaults: PolicyDefaults = DEFAULTS) -> PolicySet:
    return compile_document(read_document(text), defaults)


def one(inner: str, defaults: PolicyDefaults = DEFAULTS) -> Policy:
    return compiled(f"policies: {{a: {{{inner}}}}}", defaults).policies["a"]


def names(policy: Policy) -> list[str]:
    return [filter.name for filter in policy.filters]


def test_a_policy_that_says_nothing_is_the_settings_by_another_name() -> None:
    settings, policy = settings_policy(DEFAULTS), one("")
    assert settings.name == "settings" and policy.name == "a"
    assert names(settings) == ["Domain", "MachineGroup", "CardTypes", "PredictedPeak", "NodeName", "TaintToleration"]
    assert names(policy) == names(settings)
    assert policy.scoring.weights == settings.scoring.weights == DEFAULTS.weights
    assert policy.scoring.resource_weights is None and policy.deadline_seconds is None
    rules = DEFAULTS.filters.rules
    assert (policy.cards.options, policy.cards.devices) == (rules.cards, rules.devices)


def test_the_domain_is_first_in_every_policy_and_that_of_the_settings() -> None:
    policies = compiled(DOCUMENT).policies
    for policy in (*policies.values(), one("filters: []"), one("filters: [MachineGroup, Domain]")):
        first, *others = policy.filters
        assert isinstance(first, Domain) and first.domain == "blue"
        assert not any(isinstance(other, Domain) for other in others)


def test_named_filters_run_in_our_order_and_no_other_does() -> None:
    assert names(one("filters: []")) == ["Domain"]
    backwards = ", ".join(reversed(FILTER_NAMES))
    assert names(one(f"filters: [{backwards}]")) == list(FILTER_NAMES)
    assert names(one("filters: [NodeResourcesFit, NodeName, MachineGroup]")) == [
        "Domain",
        "MachineGroup",
        "NodeName",
        "NodeResourcesFit",
    ]
    assert set(STANDARD_FILTERS) < set(FILTER_NAMES)


def test_a_parameter_of_a_filter_takes_the_place_of_that_of_the_settings() -> None:
    (peak,) = (f for f in one("highest_peaks: {cpu: 0.8}").filters if isinstance(f, PredictedPeak))
    assert peak.thresholds == {"cpu": 0.8}
    assert "PredictedPeak" not in names(one("highest_peaks: {}"))
    hard = one("cards: {protection: hard}")
    (cards,) = (f for f in hard.filters if isinstance(f, ListedCards))
    assert cards.options == hard.cards.options == CardOptions(protection=Protection.HARD, rare_types=("H100",))
    assert cards.devices == DEFAULTS.filters.rules.devices
    off = one("cards: {protection: off, without_cards: off}").cards.options
    assert (off.protection, off.without_cards) == (Protection.OFF, Protection.OFF)


def test_scores_have_the_policys_weights_and_parameters() -> None:
    policy = one("scores: {weights: {most_allocated: 2}, request_weights: {cpu: 2}, shape: {100: 0, 0: 10}}")
    assert policy.scoring.weights == {"most_allocated": 2.0}
    settings = settings_policy(DEFAULTS)
    assert set(policy.scoring.scores) == set(settings.scoring.scores)
    assert policy.scoring.scores["most_allocated"].compute is not settings.scoring.scores["most_allocated"].compute


def test_plugins_that_are_not_named_keep_their_weights() -> None:
    assert one("").plugin_weights == PLUGIN_WEIGHTS
    given = one("scores: {plugin_weights: {ImageLocality: 0, DynamicResources: 4, ForecastScheduler: 0.5}}")
    changed = {"ImageLocality": 0, "DynamicResources": 4, "ForecastScheduler": 0.5}
    assert given.plugin_weights == {**PLUGIN_WEIGHTS, **changed}
    assert given.scoring.weights == DEFAULTS.weights


def test_pools_are_selectors_in_the_order_given() -> None:
    assert one("").pools is None
    pools = one("pools: [{matchLabels: {pool: a}}, {matchExpressions: [{key: spot, operator: Exists}]}]").pools
    assert pools is not None
    assert [[one.key for one in pool.requirements] for pool in pools.pools] == [["pool"], ["spot"]]


def test_resources_that_are_not_named_count_nothing() -> None:
    assert one("resources: {memory: 0.25, cpu: 1}").scoring.resource_weights == (1.0, 0.25, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("policies: {settings: {}}", "policies.settings", "choose another"),
        ("default: batsh\npolicies: {batch: {}}", "default", "there is no policy 'batsh': did you mean batch?"),
        (
            "policies: {a: {filters: [NodeName, NodeResourceFit]}}",
            "policies.a.filters.2",
            "did you mean NodeResourcesFit?",
        ),
        ("policies: {a: {highest_peaks: {cpus: 0.8}}}", "policies.a.highest_peaks.cpus", "did you mean cpu?"),
        (
            "policies: {a: {filters: [NodeName], highest_peaks: {cpu: 1}}}",
            "policies.a.highest_peaks",
            "filters leave PredictedPeak out",
        ),
        (
            "policies: {a: {filters: [NodeName], cards: {protection: hard}}}",
            "policies.a.cards",
            "filters leave CardTypes out",
        ),
        (
            "policies: {a: {filters: [PredictedPeak], highest_peaks: {}}}",
            "policies.a.filters",
            "PredictedPeak is named without highest_peaks",
        ),
        (
            "policies: {a: {filters: [RareDevices]}}",
            "policies.a.filters.1",
            "filter RareDevices is CardTypes now: name that",
        ),
        (
            "policies: {batch: {scores: {weights: {predicted_peek: 1}}}}",
            "policies.batch.scores.weights.predicted_peek",
            "there is no score 'predicted_peek': did you mean predicted_peak?",
        ),
        ("policies: {a: {scores: {weights: {balance: 0}}}}", "policies.a.scores.weights", "weight above 0"),
        ("policies: {a: {scores: {shape: {0: 11}}}}", "policies.a.scores.shape", "scores within 0..10"),
        (
            "policies: {a: {scores: {plugin_weights: {NodeResourceFit: 0}}}}",
            "policies.a.scores.plugin_weights.NodeResourceFit",
            "there is no score plugin 'NodeResourceFit': did you mean NodeResourcesFit?",
        ),
        (
            "policies: {a: {scores: {plugin_weights: {NodeAffinity: 0.5}}}}",
            "policies.a.scores.plugin_weights.NodeAffinity",
            "whole numbers, found 0.5",
        ),
        (
            "policies: {a: {scores: {plugin_weights: {predicted_peak: 1}}}}",
            "policies.a.scores.plugin_weights.predicted_peak",
            "write its weight into scores.weights",
        ),
        (
            "policies: {a: {scores: {weights: {NodeAffinity: 1}}}}",
            "policies.a.scores.weights.NodeAffinity",
            "write its weight into scores.plugin_weights",
        ),
        ("policies: {a: {resources: {gpu: 1}}}", "policies.a.resources.gpu", "'gpu' is not predicted"),
    ],
)
def test_names_that_mean_nothing_are_refused_with_their_place(text: str, place: str, says: str) -> None:
    with pytest.raises(DocumentMistake) as caught:
        compiled(text)
    assert caught.value.place == place
    assert says in caught.value.what


def test_a_predicted_peak_needs_the_forecast_in_this_process() -> None:
    elsewhere = PolicyDefaults(filters=FilterOptions(predicts=False))
    assert compiled("policies: {a: {}}", elsewhere).policies["a"].filters
    with pytest.raises(DocumentMistake, match=r"policies\.a\.highest_peaks: .*leave one of them out"):
        compiled("policies: {a: {highest_peaks: {cpu: 0.8}}}", elsewhere)


def test_a_deadline_is_none_beyond_which_a_scorer_elsewhere_is_not_waited_for() -> None:
    elsewhere = PolicyDefaults(longest_deadline_seconds=0.2)
    assert one("deadline: 200ms", elsewhere).deadline_seconds == 0.2
    assert one("deadline: 201ms").deadline_seconds == pytest.approx(0.201)
    with pytest.raises(DocumentMistake, match=r"policies\.a\.deadline: .*extender\.deadline, 0\.2 s: found 0\.201 s"):
        one("deadline: 201ms", elsewhere)


@pytest.mark.parametrize(
    "defaults",
    [
        PolicyDefaults(weights={"nothing": 1.0}),
        PolicyDefaults(filters=FilterOptions(standard=("Nothing",))),
        PolicyDefaults(filters=FilterOptions(rules=NodeRuleOptions(highest_peaks={"gpu": 1.0}))),
    ],
)
def test_settings_that_are_wrong_are_refused_before_any_document(defaults: PolicyDefaults) -> None:
    with pytest.raises(InputError):
        settings_policy(defaults)
