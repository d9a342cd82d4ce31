"""Arguments in an annotation of a pod: what they fill in, what is refused, and what is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from admission.templates.applied_bindings import SkipReason
from admission.templates.pod_arguments import ARGUMENTS_ANNOTATION
from admission.templates.pod_shaping import Shaped
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION
from admission.templates.template_set import TemplateSet
from tests.admission.templates.manifests import Manifest, binding, node_config, template_set
from tests.admission.templates.shaping_pods import PREFERRED, demanded, on, pod, shaped, term

PARAMETERS: list[dict[str, Any]] = [
    {"name": "Pool", "string": {"default": "general", "pattern": "[a-z]+"}},
    {"name": "Threads", "integer": {"default": 2, "minimum": 1, "maximum": 64}},
    {"name": "strict", "boolean": {"default": True}},
    {"name": "zones", "strings": {"default": [], "maxItems": 2}},
]
TEMPLATE = node_config(
    "pool",
    parameters=PARAMETERS,
    required=[
        {
            "when": "strict",
            "matchExpressions": [
                {"key": "pool", "operator": "In", "valuesFrom": ["Pool"]},
                {"key": "threads", "operator": "In", "valuesFrom": ["Threads"]},
                {"key": "zone", "operator": "NotIn", "valuesFrom": ["zones"]},
            ],
        }
    ],
)


def bound(*bindings: Manifest) -> TemplateSet:
    return template_set(TEMPLATE, *(bindings or (binding(),)))


def saying(arguments: object) -> Manifest:
    made = pod()
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    made["metadata"]["annotations"] = {ARGUMENTS_ANNOTATION: text}
    return made


def recorded(result: Shaped) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(result.annotations[TEMPLATES_ANNOTATION] or "[]")
    return listed


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"Threads": "4"}, [term(on("pool", "general"), on("threads", "4"))]),
        ({"strict": "false"}, None),
        ({"strict": False}, None),
    ],
)
def test_texts_stand_for_numbers_and_truth_values(arguments: object, expected: object) -> None:
    result = shaped(saying(arguments), bound())
    assert not result.skipped or result.skipped[0].reason is SkipReason.UNCHANGED
    assert (None if result.affinity is None else demanded(result)) == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"Threads": 65}, "argument Threads: 65 is above maximum 64"),
        ({"zones": ["not a label"]}, "value 'not a label' for zone: must be the value of a label"),
        ({"Pool": "fast", "strict": 3}, "argument strict: must be given as boolean"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_the_binding_takes_none(arguments: object, says: str) -> None:
    result = shaped(saying(arguments), bound())
    (skipped,) = result.skipped
    assert skipped.reason is SkipReason.ARGUMENTS
    assert skipped.message == f"{ARGUMENTS_ANNOTATION}: {says}; the binding takes no argument of the pod"
    assert result.affinity == shaped(pod(), bound()).affinity
    assert "arguments" not in recorded(result)[0]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"Pool": null}', '{"Pool": 1.5}', '{"Pool": {"a": 1}}', '{"a": 3e9}'])
def test_an_annotation_that_is_no_object_of_values_is_refused_as_a_whole(text: str) -> None:
    result = shaped(saying(text), bound())
    assert result.remarks[0].startswith(f"{ARGUMENTS_ANNOTATION}: must be a JSON object such as")
    assert result.affinity == shaped(pod(), bound()).affinity


def test_one_of_several_bindings_can_be_named() -> None:
    other = node_config(
        "soft",
        parameters=PARAMETERS[:1],
        preferred=[{"weight": 9, "matchExpressions": [{"key": "pool", "operator": "In", "valuesFrom": ["Pool"]}]}],
    )
    both = template_set(TEMPLATE, other, binding("hard"), binding("soft", "NodeSchedulerConfig/soft"))
    result = shaped(saying({"Pool": "fast", "soft/Pool": "near"}), both)
    assert demanded(result)[0]["matchExpressions"][0]["values"] == ["fast"]
    assert result.affinity is not None
    assert result.affinity["nodeAffinity"][PREFERRED][0]["preference"]["matchExpressions"][0]["values"] == ["near"]
    assert {one.binding: dict(one.arguments) for one in result.applied} == {
        "hard": {"Pool": "fast"},
        "soft": {"Pool": "near"},
    }


def test_a_parameter_without_a_default_can_be_left_to_pods() -> None:
    open_one = node_config(
        "pool",
        parameters=[{"name": "Pool", "string": {}}],
        required=[term({"key": "pool", "operator": "In", "valuesFrom": ["Pool"]})],
    )
    templates = template_set(open_one, binding("cart"))
    without = shaped(pod(), templates)
    assert without.skipped[0].reason is SkipReason.BROKEN
    assert "give it here or in an annotation of the pod" in without.skipped[0].message
    assert demanded(shaped(saying({"Pool": "fast"}), templates)) == [term(on("pool", "fast"))]


def test_a_pod_fills_in_what_its_binding_leaves_open_and_nothing_else() -> None:
    result = shaped(saying({"Pool": "fast", "Threads": 8, "zones": ["c", "d"]}), bound())
    assert demanded(result) == [term(on("pool", "fast"), on("threads", "8"), on("zone", "c", "d", operator="NotIn"))]
    (record,) = recorded(result)
    assert record["arguments"] == {"Pool": "fast", "Threads": 8, "zones": ["c", "d"]}
    assert (result.skipped, result.remarks) == ((), ())
    assert "arguments" not in recorded(shaped(pod(), bound()))[0]
    sets = bound(binding(arguments=[{"name": "Pool", "string": "slow"}]))
    result = shaped(saying({"Pool": "fast"}), sets)
    assert demanded(result) == [term(on("pool", "slow"), on("threads", "2"))]
    assert "argument Pool: the binding sets it" in result.skipped[0].message
    assert shaped(saying({"Pool": "slow"}), sets).skipped == ()
    result = shaped(saying({"threads": 4, "Pool": "fast"}), bound())
    (remark,) = result.remarks
    assert "no template of the pod has a parameter 'threads'; there are Pool, Threads, strict, zones" in remark
    assert result.applied[0].arguments == {"Pool": "fast"}
    assert "characters: 1024 are allowed" in shaped(saying({"Pool": "a" * 1100}), bound()).remarks[0]
