"""What a policy document may say (docs/use/policies.md): its form, not yet what its names mean (compiling.py).

Whatever is left out, or null, is as in the settings.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from base.setting_group import Off, duration_seconds
from kube.objects.labels import is_label_value, is_qualified_name
from placement.policies.document_reading import read_yaml
from placement.policies.mistakes import DocumentMistake, first_mistake

MAX_POLICIES: Final = 200
MAX_RULES: Final = 1000

_LONGEST_DEADLINE: Final = 10.0
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

T = TypeVar("T")


def _name(text: str) -> str:
    if not text or not is_label_value(text):
        raise ValueError(
            "this is no name: use 1 to 63 letters, digits, '-', '_' and '.', the first and last a letter or digit"
        )
    return text


def _label_key(text: str) -> str:
    if not is_qualified_name(text):
        raise ValueError("this is no label key")
    return text


def _label_value(text: str) -> str:
    if not is_label_value(text):
        raise ValueError("this is no label value")
    return text


def _namespace(text: str) -> str:
    if not _NAMESPACE.fullmatch(text):
        raise ValueError("this is no name of a namespace; namespace_selector chooses by labels")
    return text


def _seconds(value: Any) -> Any:
    has_unit = isinstance(value, str) and not value[-1:].isdigit()
    seconds = duration_seconds(value) if has_unit else None
    if seconds is None:
        raise ValueError("write a duration with its unit, such as 100ms, 0.5s or 0.1m")
    return seconds


def _or_empty(value: Any) -> Any:
    """`batch:` with nothing behind it is null to YAML."""
    return {} if value is None else value


Name = Annotated[str, AfterValidator(_name)]
Description = Annotated[str, Field(max_length=500)]
LabelKey = Annotated[str, AfterValidator(_label_key)]
LabelValue = Annotated[str, AfterValidator(_label_value)]
Namespace = Annotated[str, AfterValidator(_namespace)]
Weight = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
PluginWeight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Weights = Annotated[dict[str, Weight], Field(min_length=1, max_length=100)]
Share = Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)]
Few = Annotated[list[T], Field(max_length=100)]


class _Part(BaseModel):
    """Frozen; unknown keys are refused, and numbers in quotes: they are mistakes more often than not."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_by_alias=True)


class ExpressionSpec(_Part):
    """An entry of matchExpressions."""

    key: LabelKey
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[LabelValue] | None = None

    @model_validator(mode="after")
    def _values_where_they_belong(self) -> ExpressionSpec:
        if self.operator in ("In", "NotIn") and not self.values:
            raise ValueError(f"operator {self.operator} needs values")
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            raise ValueError(f"operator {self.operator} has no values")
        return self


class SelectorSpec(_Part):
    """A label selector as Kubernetes has it; an empty one matches everything."""

    match_labels: dict[LabelKey, LabelValue] | None = Field(None, alias="matchLabels")
    match_expressions: Few[ExpressionSpec] | None = Field(None, alias="matchExpressions")


class CardsSpec(_Part):
    """As node_rules.cards of the settings; which types are rare is a matter of the cluster."""

    protection: Annotated[Literal["off", "soft", "hard"], Off] | None = None
    without_cards: Annotated[Literal["off", "soft", "hard"], Off] | None = None


class ScoresSpec(_Part):
    """As scorer.scores of the settings, each replaced as a whole. water_levels are missing: they are the cluster's.

    plugin_weights : by which our own loops add scores up, each on its own
    """

    weights: Weights | None = None
    request_weights: Weights | None = None
    balance_weights: Weights | None = None
    usage_weights: Weights | None = None
    shape: Annotated[dict[int, int], Field(min_length=1, max_length=101)] | None = None
    plugin_weights: Annotated[dict[str, PluginWeight], Field(min_length=1, max_length=100)] | None = None


class PolicySpec(_Part):
    """One policy."""

    description: Description | None = None
    filters: Few[str] | None = None
    highest_peaks: dict[str, Share] | None = None
    cards: CardsSpec | None = None
    pools: Annotated[list[SelectorSpec], Field(min_length=1, max_length=20)] | None = None
    advice: Annotated[Literal["advise", "prefer", "off"], Off] | None = None
    scores: ScoresSpec | None = None
    resources: Weights | None = None
    deadline: (
        Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=_LONGEST_DEADLINE, allow_inf_nan=False)] | None
    ) = None


class RuleSpec(_Part):
    """Which policy pods get for which all that is given holds."""

    policy: Name
    description: Description | None = None
    namespaces: Annotated[list[Namespace], Field(min_length=1)] | None = None
    namespace_selector: SelectorSpec | None = None
    selector: SelectorSpec | None = None

    @model_validator(mode="after")
    def _has_a_condition(self) -> RuleSpec:
        if self.namespaces is None and self.namespace_selector is None and self.selector is None:
            raise ValueError(
                "without namespaces, namespace_selector or selector it would choose for every pod: "
                "give it one, or write `default` at the top"
            )
        return self


class PolicyDocument(_Part):
    """All policies, and who gets which."""

    default: Name | None = None
    policies: Annotated[
        dict[Name, Annotated[PolicySpec, BeforeValidator(_or_empty)]],
        BeforeValidator(_or_empty),
        Field(max_length=MAX_POLICIES),
    ] = Field(default_factory=dict)
    rules: Annotated[list[RuleSpec], Field(max_length=MAX_RULES)] | None = None


def read_document(text: str) -> PolicyDocument:
    """A document of known form. Raises DocumentMistake, an InputError, for the first mistake in it."""
    values = read_yaml(text)
    if values is None:  # a file that is just being written looks like this
        raise DocumentMistake("", "the document is empty: write `policies: {}` to have none")
    if not isinstance(values, dict):
        raise DocumentMistake("", f"the document is a {type(values).__name__}: write `policies:` and `rules:`")
    try:
        return PolicyDocument.model_validate(values)
    except ValidationError as error:
        raise first_mistake(error, values, PolicyDocument) from error
