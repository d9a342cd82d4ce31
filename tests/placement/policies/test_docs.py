"""docs/use/policies.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placement.policies.compiling import PolicyDefaults, compile_document
from placement.policies.document import CardsSpec, PolicySpec, RuleSpec, ScoresSpec, read_document
from placement.policies.mistakes import DocumentMistake
from placement.policies.policy_reports import PolicyCollector
from placement.policies.policy_set import BY_ANNOTATION, BY_DEFAULT, BY_NOTHING
from placement.policies.provider import PolicyProvider

PAGE = (Path(__file__).parents[3] / "docs/use/policies.md").read_text()
EXAMPLE = PAGE.partition("```yaml\n")[2].partition("```")[0]
DEFAULTS = PolicyDefaults()


def test_the_example_takes_effect() -> None:
    policies = compile_document(read_document(EXAMPLE), DEFAULTS)
    assert list(policies.policies) == ["settings", "balanced", "latency-critical", "batch"]
    assert len(policies.rules) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("weights: {most_allocated: 1}", "weights: {predicted_peek: 1}"),
        ("namespace_selector: {matchLabels: {team: data}}", "selector: {matchLabels: {canary: yes}}"),
    ],
)
def test_its_mistakes_are_those_that_are_shown(before: str, after: str) -> None:
    assert before in EXAMPLE
    with pytest.raises(DocumentMistake) as caught:
        compile_document(read_document(EXAMPLE.replace(before, after)), DEFAULTS)
    assert f"\n{caught.value}\n" in PAGE


def test_every_key_and_every_series_is_explained() -> None:
    for spec in (PolicySpec, CardsSpec, ScoresSpec, RuleSpec):
        for key in spec.model_fields:
            assert f"`{key}`" in PAGE, key
    for because in (BY_ANNOTATION, BY_DEFAULT, BY_NOTHING):
        assert f"`{because}`" in PAGE
    provider = PolicyProvider(DEFAULTS)
    provider.offer(EXAMPLE)
    named = set(re.findall(r"^\| `(forecast_\w+?)(?:_total)?(?:\{\w+\})?` \|", PAGE, re.MULTILINE))
    exported = {metric.name for metric in PolicyCollector(provider, last_contact=lambda: 0.0).collect()}
    assert named == exported | {"forecast_policy_events"}
