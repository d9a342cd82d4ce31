"""Random templates, bindings and pods over few labels and values, so that they meet, agree and contradict."""

from __future__ import annotations

import json
import random
from typing import Any, Final

from admission.templates.pod_arguments import ARGUMENTS_ANNOTATION
from tests.admission.templates.manifests import Manifest, binding, node_config, pod_config

_KEYS: Final = ("pool", "zone", "cores", "example.com/gpu")
_VALUES: Final = ("a", "b", "c", "3", "7")
_APPS: Final = ("cart", "web")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

_PARAMETERS: Final = [
    {"name": "first", "string": {"default": "a"}},
    {"name": "pools", "strings": {"default": ["b", "c"]}},
    {"name": "weight", "integer": {"default": 5, "minimum": 1, "maximum": 100}},
    {"name": "number", "integer": {"default": 4}},
    {"name": "strict", "boolean": {"default": True}},
    {"name": "key", "string": {"default": "pool"}},
]


def random_manifests(rng: random.Random, *, n_templates: int = 4, n_bindings: int = 5) -> list[Manifest]:
    """Templates and bindings of them that the API server accepts; some arguments do not fit."""
    templates = [_template(rng, f"t{number}") for number in range(n_templates)]
    bound = [random_binding(rng, f"b{number}", rng.choice(templates)) for number in range(n_bindings)]
    return [*templates, *bound]


def random_binding(rng: random.Random, name: str, template: Manifest) -> Manifest:
    arguments: list[dict[str, Any]] = []
    for argument, field, values in (
        ("first", "string", ["a", "b", "c", "not a label", ""]),
        ("pools", "strings", [[], ["a"], ["a", "c"], ["b", "b"]]),
        ("weight", "integer", [1, 50, 100]),
        ("number", "integer", [0, 3, 9]),
        ("strict", "boolean", [True, False]),
        ("key", "string", ["zone", "cores", "app"]),
    ):
        if rng.random() < 0.3:
            # What does not fit is rare: most bindings must apply to something.
            choice = rng.choice(values if rng.random() < 0.2 else values[1:3])
            arguments.append({"name": argument, field: choice})
    spec: dict[str, Any] = {
        "arguments": arguments,
        "pods": _conditions(rng),
        "priority": rng.choice([0, 0, 1, 2]),
        "onConflict": rng.choice(["KeepPod", "Merge"]),
        "suspended": rng.random() < 0.05,
    }
    return binding(name, f"{template['kind']}/{template['metadata']['name']}", **spec)


def random_pod(rng: random.Random, name: str = "pod") -> Manifest:
    """A pod that the API server accepts, with much to say about where it goes, or nothing."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    labels = {key: rng.choice(values) for key, values in _POD_LABELS.items() if rng.random() < 0.6}
    if labels:
        metadata["labels"] = labels
    if rng.random() < 0.4:
        metadata["annotations"] = {"team": rng.choice(["shop", "search"])}
    if rng.random() < 0.3:
        given = {"first": rng.choice("abc?"), "weight": rng.choice(["7", 9, 101]), "b1/pools": ["a"], "key": "zone"}
        chosen = {name: value for name, value in given.items() if rng.random() < 0.4}
        metadata.setdefault("annotations", {})[ARGUMENTS_ANNOTATION] = json.dumps(chosen)
    if rng.random() < 0.5:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{rng.choice(_APPS)}-7d9f8b6c5d", "uid": "u"}
        metadata["ownerReferences"] = [owner | {"controller": True}]
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "registry.example/app:1"}]}
    if rng.random() < 0.3:
        spec["nodeSelector"] = {rng.choice(_KEYS): rng.choice(_VALUES)}
    affinity = _affinity(rng)
    if affinity or rng.random() < 0.1:
        spec["affinity"] = affinity
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


_POD_LABELS: Final = {"app": _APPS, "tier": ("front", "back"), "pod-template-hash": ("7d9f8b6c5d",)}


def _template(rng: random.Random, name: str) -> Manifest:
    if rng.random() < 0.6:
        spec = {"parameters": _PARAMETERS}
        lists = {
            "required": [_node_term(rng) for _ in range(rng.randrange(3))],
            "preferred": [_node_term(rng) | _weight(rng) for _ in range(rng.randrange(3))],
        }
        if not any(lists.values()):
            lists["required"] = [_node_term(rng)]
        return node_config(name, **spec, **lists)
    terms = {
        "required": [_pod_term(rng) for _ in range(rng.randrange(2))],
        "preferred": [_pod_term(rng) | _weight(rng) for _ in range(rng.randrange(1, 3))],
    }
    return pod_config(name, parameters=_PARAMETERS, **{rng.choice(["podAffinity", "podAntiAffinity"]): terms})


def _node_term(rng: random.Random) -> dict[str, Any]:
    term: dict[str, Any] = {
        "matchExpressions": [_expression(rng, of_template=True) for _ in range(rng.choice([1, 1, 2, 3]))]
    }
    return term | ({"when": "strict"} if rng.random() < 0.2 else {})


def _pod_term(rng: random.Random) -> dict[str, Any]:
    term: dict[str, Any] = rng.choice([{"topologyKey": "zone"}, {"topologyKeyFrom": "key"}]).copy()
    kinds = rng.choice(["expressions", "keys", "both"])
    if kinds != "keys":
        term["matchExpressions"] = [
            rng.choice(
                [
                    {"key": "tier", "operator": "In", "values": ["front"]},
                    {"key": "tier", "operator": "NotIn", "valuesFrom": ["pools"]},
                    {"keyFrom": "key", "operator": "Exists"},
                    {"key": "tier", "operator": "DoesNotExist"},
                ]
            )
        ]
    if kinds != "expressions":
        term["matchLabelKeys"] = rng.choice([["app"], ["app", "pod-template-hash"], ["absent"]])
    match rng.randrange(5):
        case 0:
            term["namespaces"] = ["shop"]
        case 1:
            term["namespaceSelector"] = rng.choice([{}, {"matchLabels": {"team": "shop"}}])
        case 2:
            term["namespacesFrom"] = ["first"]
    return term


def _weight(rng: random.Random) -> dict[str, Any]:
    return {"weight": rng.choice([1, 100])} if rng.random() < 0.5 else {"weightFrom": "weight"}


def _expression(rng: random.Random, *, of_template: bool) -> dict[str, Any]:
    """of_template: key and values may be those of parameters."""
    said: dict[str, Any] = {"keyFrom": "key"} if of_template and rng.random() < 0.2 else {"key": rng.choice(_KEYS)}
    said["operator"] = rng.choice(["In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    match said["operator"]:
        case "In" | "NotIn":
            values, parameters = {"values": rng.sample(_VALUES, rng.randint(1, 3))}, ["first", "pools"]
        case "Gt" | "Lt":
            values, parameters = {"values": [rng.choice(["2", "5", "6"])]}, ["number"]
        case _:
            return said
    return said | rng.choice([values, *({"valuesFrom": [one]} for one in parameters if of_template)])


def _conditions(rng: random.Random) -> dict[str, Any]:
    choices: list[dict[str, Any]] = [
        {"selector": {}},
        {"namespaces": ["default", "shop"]},
        {"namespaceSelector": {"matchLabels": {"team": "shop"}}},
        {"selector": {"matchLabels": {"app": rng.choice(_APPS)}}},
        {"selector": {"matchExpressions": [{"key": "tier", "operator": rng.choice(["Exists", "DoesNotExist"])}]}},
        {"selector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["cart"]}]}},
        {"selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "cart"]}]}},
        {"annotations": {"team": rng.choice(["shop", "search"])}},
        {"owner": {"kind": "Deployment"}},
        {"owner": {"kind": "Deployment", "name": rng.choice(_APPS)}},
        {"owner": {"kind": "ReplicaSet"}},
    ]
    chosen: dict[str, Any] = rng.choice(choices)
    return chosen | (rng.choice(choices) if rng.random() < 0.3 else {})


def _affinity(rng: random.Random) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    if rng.random() < 0.5:
        node: dict[str, Any] = {}
        if rng.random() < 0.8:
            terms = [_pod_node_term(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
            node[_REQUIRED] = {"nodeSelectorTerms": terms}
        if rng.random() < 0.4:
            node[_PREFERRED] = [{"weight": 5, "preference": _pod_node_term(rng)}]
        affinity["nodeAffinity"] = node
    for part in ("podAffinity", "podAntiAffinity"):
        if rng.random() < 0.2:
            term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cart"}}}
            affinity[part] = {_REQUIRED: [term], _PREFERRED: [{"weight": 7, "podAffinityTerm": term}]}
    return affinity


def _pod_node_term(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.1:
        return {}
    term: dict[str, Any] = {}
    if rng.random() < 0.15:
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
    expressions = [_expression(rng, of_template=False) for _ in range(rng.choice([1, 1, 2]))]
    return term | {"matchExpressions": expressions}
