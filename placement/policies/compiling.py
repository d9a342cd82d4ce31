"""A document of known form -> policies that can be used: every name in it means something, every value is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from forecast.resources import RESOURCES
from kube.decoding.constraint_decoding import label_selector
from kube.decoding.wire_scheduling import LabelSelectorJson, RequirementJson
from kube.objects.constraints import LabelSelector
from placement.card_types.listed_cards import ListedCards
from placement.filters.filter import Filter
from placement.filters.predicted_peak import PredictedPeak
from placement.gate_exemptions import AdviceMode
from placement.node_rule_settings import Protection
from placement.policies.document import PolicyDocument, PolicySpec, RuleSpec, ScoresSpec, SelectorSpec
from placement.policies.filter_choice import (
    FilterOptions,
    card_rule,
    check_filter,
    chosen_filters,
)
from placement.policies.mistakes import DocumentMistake, blamed_on, way_out
from placement.policies.policy import Policy
from placement.policies.policy_set import PolicySet
from placement.policies.pool_order import PoolOrder
from placement.policies.rules import PolicyRule
from placement.scores.plugin_weights import FURTHER_PLUGINS, OURS, PLUGIN_WEIGHTS, PluginWeights
from scorer.scores.score_catalogue import SCORES, RegisteredScore, check_weights, scores
from scorer.scores.score_settings import DEFAULT_WEIGHTS, ScoreParameters
from scorer.scoring_policy import SETTINGS_POLICY, ScoringPolicy

_RESOURCES: Final = tuple(resource.name for resource in RESOURCES)
_PLUGINS: Final = (*PLUGIN_WEIGHTS, *FURTHER_PLUGINS)


@dataclass(frozen=True, slots=True)
class PolicyDefaults:
    """What the settings say, which counts wherever a policy says nothing.

    weights, parameters      : of the scores
    longest_deadline_seconds : beyond which a scorer elsewhere is not waited for; None = there is none elsewhere
    score_plugins            : names of scores of other packages
    """

    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    parameters: ScoreParameters = field(default_factory=ScoreParameters)
    filters: FilterOptions = field(default_factory=FilterOptions)
    longest_deadline_seconds: float | None = None
    score_plugins: tuple[str, ...] = ()


def settings_policy(defaults: PolicyDefaults) -> Policy:
    """The policy that the settings describe. Raises InputError where they name what there is not."""
    registered = scores(defaults.parameters)
    check_weights(defaults.weights, registered)
    options = defaults.filters
    return Policy(
        ScoringPolicy(SETTINGS_POLICY, dict(defaults.weights), registered),
        chosen_filters(options),
        card_rule(options),
    )


def compile_document(document: PolicyDocument, defaults: PolicyDefaults) -> PolicySet:
    """Raises DocumentMistake, an InputError, for the first mistake."""
    settings = settings_policy(defaults)
    if SETTINGS_POLICY in document.policies:
        raise DocumentMistake(
            f"policies.{SETTINGS_POLICY}",
            "this is the name of what the settings describe: choose another, and write `default` to use it everywhere",
        )
    policies = [_policy(name, spec, settings, defaults) for name, spec in document.policies.items()]
    names = [SETTINGS_POLICY, *document.policies]
    rules = []
    for number, spec in enumerate(document.rules or (), start=1):
        _check_named(spec.policy, names, f"rules.{number}.policy")
        rules.append(_rule(number, spec))
    if document.default is not None:
        _check_named(document.default, names, "default")
    return PolicySet(settings, policies, rules, document.default)


def _check_named(name: str, names: Sequence[str], place: str) -> None:
    if name not in names:
        raise DocumentMistake(place, f"there is no policy {name!r}: {way_out(name, names)}")


def _rule(number: int, spec: RuleSpec) -> PolicyRule:
    return PolicyRule(
        number,
        spec.policy,
        None if spec.namespaces is None else frozenset(spec.namespaces),
        _selector(spec.namespace_selector),
        _selector(spec.selector),
        spec.description or "",
    )


def _selector(spec: SelectorSpec | None) -> LabelSelector | None:
    if spec is None:
        return None
    expressions = [RequirementJson(one.key, one.operator, one.values) for one in spec.match_expressions or ()]
    return label_selector(LabelSelectorJson({**(spec.match_labels or {})}, expressions))


def _policy(name: str, spec: PolicySpec, settings: Policy, defaults: PolicyDefaults) -> Policy:
    place = f"policies.{name}"
    options = _filter_options(spec, defaults.filters, place)
    return Policy(
        _scoring(name, spec, settings, defaults, place),
        settings.filters if _says_nothing_of_filters(spec) else _filters(spec, options, place),
        card_rule(options),
        _deadline(spec.deadline, defaults.longest_deadline_seconds, f"{place}.deadline"),
        _plugin_weights(spec.scores, f"{place}.scores", (*_PLUGINS, *defaults.score_plugins)),
        _pool_order(spec.pools),
        None if spec.advice is None else AdviceMode(spec.advice),
    )


def _pool_order(pools: Sequence[SelectorSpec] | None) -> PoolOrder | None:
    selectors = [_selector(pool) for pool in pools or ()]
    return PoolOrder([selector for selector in selectors if selector is not None]) if selectors else None


def _deadline(seconds: float | None, longest: float | None, place: str) -> float | None:
    if seconds is not None and longest is not None and seconds > longest:
        raise DocumentMistake(
            place,
            f"the scorer of extender.scorer.url is not waited for beyond extender.deadline, {longest:g} s: "
            f"found {seconds:g} s, shorten it, or raise extender.deadline",
        )
    return seconds


def _says_nothing_of_filters(spec: PolicySpec) -> bool:
    return spec.filters is None and spec.highest_peaks is None and spec.cards is None


def _filter_options(spec: PolicySpec, options: FilterOptions, place: str) -> FilterOptions:
    peaks = options.rules.highest_peaks
    if spec.highest_peaks is not None:
        peaks = spec.highest_peaks
        for resource in peaks:
            _check_resource(resource, f"{place}.highest_peaks.{resource}")
    cards = options.rules.cards
    if spec.cards is not None:
        cards = cards.replace(**spec.cards.model_dump(exclude_none=True))
    return replace(options, rules=options.rules.replace(highest_peaks=dict(peaks), cards=cards))


def _filters(spec: PolicySpec, options: FilterOptions, place: str) -> tuple[Filter, ...]:
    for number, name in enumerate(spec.filters or (), start=1):
        with blamed_on(f"{place}.filters.{number}"):
            check_filter(name, options)
    if spec.filters is not None:
        # What a policy sets for a filter that it does not run is a slip, and would go unnoticed.
        cards = options.rules.cards
        hard = spec.cards is not None and Protection.HARD in (cards.protection, cards.without_cards)
        for name, is_set, key in (
            (PredictedPeak.name, bool(spec.highest_peaks), "highest_peaks"),
            (ListedCards.name, hard, "cards"),
        ):
            if is_set and name not in spec.filters:
                raise DocumentMistake(f"{place}.{key}", f"filters leave {name} out: add it there, or leave this out")
    with blamed_on(f"{place}.highest_peaks" if spec.filters is None else f"{place}.filters"):
        return chosen_filters(options, spec.filters)


def _scoring(name: str, spec: PolicySpec, settings: Policy, defaults: PolicyDefaults, place: str) -> ScoringPolicy:
    weights, registered = settings.scoring.weights, settings.scoring.scores
    if spec.scores is not None:
        if spec.scores.weights is not None:
            weights = _checked_weights(spec.scores.weights, f"{place}.scores.weights")
        registered = _scores(spec.scores, defaults.parameters, registered, f"{place}.scores")
    resources = None if spec.resources is None else _resource_weights(spec.resources, f"{place}.resources")
    return ScoringPolicy(name, weights, registered, resources)


def _checked_weights(weights: Mapping[str, float], place: str) -> Mapping[str, float]:
    for name in weights:
        if name in _PLUGINS:
            raise DocumentMistake(f"{place}.{name}", "this is a plugin: write its weight into scores.plugin_weights")
        with blamed_on(f"{place}.{name}"):
            check_weights({name: 1.0}, SCORES)
    if not any(weights.values()):
        raise DocumentMistake(
            place, f"no score has a weight above 0: give at least one, or drop all with plugin_weights: {{{OURS}: 0}}"
        )
    return dict(weights)


def _plugin_weights(spec: ScoresSpec | None, place: str, known: Sequence[str]) -> PluginWeights:
    given = {} if spec is None or spec.plugin_weights is None else spec.plugin_weights
    for name, weight in given.items():
        where = f"{place}.plugin_weights.{name}"
        if name in SCORES:
            raise DocumentMistake(
                where,
                f"this is one of our own scores: write its weight into scores.weights; {OURS} is the sum of these",
            )
        if name not in known:
            raise DocumentMistake(where, f"there is no score plugin {name!r}: {way_out(name, known)}")
        if name != OURS and weight != int(weight):
            raise DocumentMistake(where, f"weights of plugins but {OURS} are whole numbers, found {weight:g}")
    return {**PLUGIN_WEIGHTS, **given}


def _scores(
    spec: ScoresSpec, parameters: ScoreParameters, registered: Mapping[str, RegisteredScore], place: str
) -> Mapping[str, RegisteredScore]:
    given: dict[str, object] = {
        name: value
        for name in ("request_weights", "balance_weights", "usage_weights")
        if (value := getattr(spec, name)) is not None
    }
    for resource in spec.usage_weights or ():
        _check_resource(resource, f"{place}.usage_weights.{resource}")
    if spec.shape is not None:
        given["shape"] = tuple(sorted(spec.shape.items()))
    for name, value in given.items():
        with blamed_on(f"{place}.{name}"):
            parameters = parameters.replace(**{name: value})
    return scores(parameters) if given else registered


def _resource_weights(weights: Mapping[str, float], place: str) -> tuple[float, ...]:
    for resource in weights:
        _check_resource(resource, f"{place}.{resource}")
    if not any(weights.values()):
        raise DocumentMistake(place, "no resource has a weight above 0: give at least one, such as cpu: 1")
    return tuple(weights.get(resource, 0.0) for resource in _RESOURCES)


def _check_resource(resource: str, place: str) -> None:
    if resource not in _RESOURCES:
        raise DocumentMistake(place, f"resource {resource!r} is not predicted: {way_out(resource, _RESOURCES)}")
