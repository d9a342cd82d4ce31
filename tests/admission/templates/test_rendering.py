from __future__ import annotations

from typing import Any

import pytest

from admission.templates.rendering import Rendered, rendered
from admission.templates.template_decoding import object_from_manifest
from admission.templates.template_objects import NodeSchedulerConfig, PodSchedulerConfig, Value
from admission.templates.template_set import values_of
from base.errors import InputError
from tests.admission.templates.manifests import Manifest, node_config, pod_config

PARAMETERS = [
    {"name": "pools", "strings": {"default": ["general"], "minItems": 0, "maxItems": 3, "pattern": "[a-z]*"}},
    {"name": "first", "string": {"default": "fast", "enum": ["fast", "slow", "not a label"]}},
    {"name": "number", "integer": {"default": 4, "minimum": -1, "maximum": 9}},
    {"name": "weight", "integer": {"default": 50, "minimum": 1, "maximum": 100}},
    {"name": "strict", "boolean": {"default": True}},
    {"name": "key", "string": {"default": "pool"}},
]


def render(manifest: Manifest, **arguments: Value) -> Rendered:
    template = object_from_manifest(manifest)
    assert isinstance(template, NodeSchedulerConfig | PodSchedulerConfig)
    return rendered(template, values_of(template.parameters, arguments))


def required(*terms: dict[str, Any]) -> Manifest:
    return node_config(parameters=PARAMETERS, required=list(terms))


def expression(operator: str, **more: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "pool", "operator": operator} | more]}


@pytest.mark.parametrize(
    ("term", "arguments", "expected"),
    [
        (expression("In", valuesFrom=["first", "pools"]), {}, ["fast", "general"]),
        (expression("In", values=["b", "fast"], valuesFrom=["first"]), {}, ["b", "fast"]),
        (expression("In", valuesFrom=["pools"]), {"pools": ("a", "b", "a")}, ["a", "b"]),
        (expression("In", valuesFrom=["number"]), {"number": 7}, ["7"]),
        (expression("Gt", valuesFrom=["number"]), {}, ["4"]),
    ],
)
def test_values_are_those_given_and_those_of_parameters(
    term: dict[str, Any], arguments: dict[str, Value], expected: list[str]
) -> None:
    (made,) = render(required(term), **arguments).required
    assert made.json["matchExpressions"][0]["values"] == expected


def test_a_weight_and_a_key_can_be_parameters() -> None:
    template = node_config(
        parameters=PARAMETERS,
        preferred=[{"weightFrom": "weight", "matchExpressions": [{"keyFrom": "key", "operator": "Exists"}]}],
    )
    (made,) = render(template, weight=7, key="example.com/zone").preferred
    expected = {"matchExpressions": [{"key": "example.com/zone", "operator": "Exists"}]}
    assert made.json == {"weight": 7, "preference": expected}


def test_a_pod_term_is_written_as_the_api_server_stores_it() -> None:
    template = pod_config(
        parameters=[*PARAMETERS, {"name": "teams", "strings": {"default": ["shop"]}}],
        podAntiAffinity={
            "preferred": [
                {
                    "weight": 3,
                    "topologyKeyFrom": "key",
                    "matchExpressions": [{"key": "app", "operator": "In", "valuesFrom": ["first"]}],
                    "matchLabelKeys": ["version"],
                    "namespaces": ["search"],
                    "namespacesFrom": ["teams"],
                    "namespaceSelector": {"matchLabels": {"team": "shop"}},
                }
            ]
        },
    )
    ((made,),) = render(template).pod_terms.values()
    assert made.json == {
        "weight": 3,
        "podAffinityTerm": {
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["fast"]}]},
            "namespaces": ["search", "shop"],
            "topologyKey": "pool",
            "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["shop"]}]},
            "matchLabelKeys": ["version"],
        },
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fist": "fast"}, "argument fist: the template has no such parameter; it has first"),
        ({"first": "medium"}, "argument first: 'medium' is none of fast, slow"),
        ({"first": 3}, "argument first: must be given as string"),
        ({"first": ("fast",)}, "argument first: must be given as string"),
        ({"number": 10}, "argument number: 10 is above maximum 9"),
        ({"number": -2}, "argument number: -2 is below minimum -1"),
        ({"number": True}, "argument number: must be given as integer"),
        ({"strict": 1}, "argument strict: must be given as boolean"),
        ({"pools": ("a", "b", "c", "d")}, "argument pools: has 4 strings: 0 to 3"),
        ({"pools": ("a", "B")}, "argument pools: 'B' does not match"),
        ({"first": "not a label"}, "value 'not a label' for pool: must be the value of a label"),
        ({"number": -1}, "value '-1' for pool: must be the value of a label"),
        ({"pools": ()}, "key pool: In needs a value, pools has none"),
        ({"key": "a b"}, "key 'a b': must be the key of a label"),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments: dict[str, Value], message: str) -> None:
    template = required(
        expression("In", valuesFrom=["first"]),
        expression("In", valuesFrom=["number"]),
        expression("In", valuesFrom=["pools"]),
        {"matchExpressions": [{"keyFrom": "key", "operator": "Exists"}]},
    )
    with pytest.raises(InputError) as raised:
        render(template, **arguments)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("term", "arguments", "message"),
    [
        ({"topologyKeyFrom": "key", "matchLabelKeys": ["app"]}, {"key": ""}, "topologyKey"),
        ({"topologyKey": "zone", "matchLabelKeys": ["app"], "namespacesFrom": ["key"]}, {"key": "Shop"}, "namespaces"),
        ({"topologyKey": "zone", "matchLabelKeys": ["app"], "namespacesFrom": ["pools"]}, {"pools": ()}, "names none"),
        (
            {
                "topologyKey": "z",
                "matchLabelKeys": ["app"],
                "matchExpressions": [{"keyFrom": "key", "operator": "Exists"}],
            },
            {"key": "app"},
            "matchLabelKeys",
        ),
    ],
)
def test_pod_terms_refuse_what_the_api_server_would(
    term: dict[str, Any], arguments: dict[str, Value], message: str
) -> None:
    template = pod_config(parameters=PARAMETERS, podAffinity={"required": [term]})
    with pytest.raises(InputError, match=message):
        render(template, **arguments)


def test_terms_that_no_node_meets_or_that_ask_for_nothing_are_left_out() -> None:
    both = {"matchExpressions": [{"key": "pool", "operator": o, "values": ["a"]} for o in ("In", "NotIn")]}
    assert len(render(required(both, expression("Exists"))).required) == 1
    with pytest.raises(InputError, match="no node"):
        render(required(both))
    of_nothing = expression("NotIn", valuesFrom=["pools"])
    template = required(of_nothing)
    assert render(template).required and render(template, pools=()).required == ()
    soft = node_config(parameters=PARAMETERS, preferred=[of_nothing | {"weight": 1}])
    assert render(soft).preferred and render(soft, pools=()).preferred == ()
    about_pods = pod_config(parameters=PARAMETERS, podAffinity={"required": [of_nothing | {"topologyKey": "zone"}]})
    assert not any(render(about_pods, pools=()).pod_terms.values()), "it would mean every pod"
