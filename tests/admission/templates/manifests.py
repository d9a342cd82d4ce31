"""Custom resources as manifests: short to write, and wrong in every way that must be refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from admission.templates.template_decoding import object_from_manifest
from admission.templates.template_objects import NodeSchedulerConfig, PodSchedulerConfig, SchedulerConfigBinding
from admission.templates.template_set import TemplateSet

Manifest = dict[str, Any]

CRDS: Final = Path(__file__).parents[3] / "deploy" / "crds"
EXAMPLES: Final = CRDS / "examples"
DEFINITIONS: Final = tuple(sorted(CRDS.glob("*schedulerconfig*.yaml")))
"""Files of one CustomResourceDefinition each."""

API_VERSION: Final = "forecast-scheduler.io/v1alpha1"


def example_manifests() -> list[Manifest]:
    """All objects in deploy/crds/examples."""
    return [document for path in sorted(EXAMPLES.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())]


def manifest(kind: str, name: str, spec: Mapping[str, Any]) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": dict(spec)}


def node_config(name: str = "pool", **spec: Any) -> Manifest:
    return manifest("NodeSchedulerConfig", name, spec)


def pod_config(name: str = "apart", **spec: Any) -> Manifest:
    return manifest("PodSchedulerConfig", name, spec)


def binding(name: str = "cart", template: str = "NodeSchedulerConfig/pool", **spec: Any) -> Manifest:
    """For all pods, if the spec does not say for which."""
    kind, _, of = template.partition("/")
    return manifest(
        "SchedulerConfigBinding", name, {"template": {"kind": kind, "name": of}, "pods": {"selector": {}}} | spec
    )


def template_set(*manifests: Manifest, before: TemplateSet | None = None) -> TemplateSet:
    """Of manifests that are right."""
    read = [object_from_manifest(one) for one in manifests]
    return TemplateSet.of(
        [one for one in read if isinstance(one, NodeSchedulerConfig)],
        [one for one in read if isinstance(one, PodSchedulerConfig)],
        [one for one in read if isinstance(one, SchedulerConfigBinding)],
        before=before,
    )


_NODE: Final = node_config(
    "valid",
    parameters=[
        {"name": "pools", "strings": {"default": ["general"]}},
        {"name": "first", "string": {"default": "general", "pattern": "[a-z]+"}},
        {"name": "weight", "integer": {"default": 50, "minimum": 1, "maximum": 100}},
        {"name": "number", "integer": {}},
        {"name": "strict", "boolean": {"default": True}},
        {"name": "Zones", "strings": {"default": ["a"]}},
    ],
    required=[{"when": "strict", "matchExpressions": [{"key": "pool", "operator": "In", "valuesFrom": ["pools"]}]}],
    preferred=[
        {"weightFrom": "weight", "matchExpressions": [{"key": "pool", "operator": "In", "valuesFrom": ["first"]}]},
        {"weight": 1, "matchExpressions": [{"key": "zone", "operator": "In", "valuesFrom": ["Zones"]}]},
    ],
)
_POD: Final = pod_config(
    "valid",
    parameters=[{"name": "topology", "string": {"default": "zone"}}, {"name": "strict", "boolean": {}}],
    podAntiAffinity={
        "required": [{"topologyKeyFrom": "topology", "matchLabelKeys": ["app"], "when": "strict"}],
        "preferred": [
            {
                "weight": 10,
                "topologyKey": "zone",
                "namespaceSelector": {"matchLabels": {"team": "shop"}},
                "matchExpressions": [{"key": "app", "operator": "In", "values": ["cart"]}],
            }
        ],
    },
)
_BINDING: Final = binding(
    "valid",
    arguments=[{"name": "first", "string": "fast"}, {"name": "Zones", "strings": ["b"]}],
    pods={"selector": {"matchLabels": {"app": "cart"}}, "owner": {"kind": "Deployment", "name": "cart"}},
)

VALID: Final = (_NODE, _POD, _BINDING)


def _with(base: Manifest, path: str, value: Any) -> Manifest:
    """A copy with another value at spec.a.0.b; None takes it away."""
    changed = copy.deepcopy(base)
    *way, last = path.split(".")
    at: Any = changed
    for step in way:
        at = at[int(step)] if step.isdigit() else at.setdefault(step, {})
    if value is None:
        del at[int(last) if last.isdigit() else last]
    else:
        at[int(last) if last.isdigit() else last] = value
    return changed


def _wrong(base: Manifest, path: str, value: Any, field: str = "") -> tuple[Manifest, str]:
    """field: that the message must name; with a dot or bracket in front, below the one at the path."""
    at = re.sub(r"\.(\d+)", r"[\1]", path)
    return _with(base, path, value), at + field if field[:1] in ("", ".", "[") else field


_EXPRESSION: Final = "spec.required.0.matchExpressions.0"
_TERM: Final = "spec.podAntiAffinity.preferred.0"

# What is wrong -> (object, what the message must name).
INVALID: Final[Mapping[str, tuple[Manifest, str]]] = {
    "no spec": _wrong(_NODE, "spec", None),
    "a long name": _wrong(_NODE, "metadata.name", "n" * 64),
    "no type": _wrong(_NODE, "spec.parameters.0", {"name": "pools"}),
    "two types": _wrong(_NODE, "spec.parameters.0.string", {}, "spec.parameters[0]"),
    "a name twice": _wrong(_NODE, "spec.parameters.1.name", "pools", "spec.parameters[1]"),
    "a bad name": _wrong(_NODE, "spec.parameters.0.name", "Pools!"),
    "default not in enum": _wrong(_NODE, "spec.parameters.1.string", {"default": "c", "enum": ["a", "b"]}, ".default"),
    "defaults not in enum": _wrong(
        _NODE, "spec.parameters.0.strings", {"default": ["a", "c"], "enum": ["a", "b"]}, ".default"
    ),
    "default does not match": _wrong(_NODE, "spec.parameters.1.string.default", "General1"),
    "default matches in part": _wrong(
        _NODE, "spec.parameters.1.string", {"default": "abc", "pattern": "a|bc"}, ".default"
    ),
    "default below minimum": _wrong(_NODE, "spec.parameters.2.integer.default", 0),
    "default above maximum": _wrong(_NODE, "spec.parameters.2.integer.default", 101),
    "minimum above maximum": _wrong(_NODE, "spec.parameters.3.integer", {"minimum": 3, "maximum": 2}, ".minimum"),
    "too few defaults": _wrong(_NODE, "spec.parameters.0.strings", {"default": ["a"], "minItems": 2}, ".default"),
    "minItems above maxItems": _wrong(_NODE, "spec.parameters.0.strings", {"minItems": 3, "maxItems": 2}, ".minItems"),
    "default of another type": _wrong(_NODE, "spec.parameters.3.integer.default", "three"),
    "a pattern that repeats a group": _wrong(_NODE, "spec.parameters.1.string", {"pattern": "(a*)*b"}, ".pattern"),
    "a pattern that repeats thrice": _wrong(_NODE, "spec.parameters.1.string", {"pattern": "a*a*a*b"}, ".pattern"),
    "a pattern of Python alone": _wrong(_NODE, "spec.parameters.1.string", {"pattern": "(?=a)b"}, ".pattern"),
    "nothing rendered": _wrong(_with(_NODE, "spec.required", []), "spec.preferred", None, "required or preferred"),
    "no expressions": _wrong(_NODE, "spec.required.0.matchExpressions", []),
    "key and keyFrom": _wrong(_NODE, f"{_EXPRESSION}.keyFrom", "first", "spec.required[0].matchExpressions[0].key"),
    "neither key nor keyFrom": _wrong(_NODE, f"{_EXPRESSION}.key", None),
    "a key that is none": _wrong(_NODE, f"{_EXPRESSION}.key", "a b"),
    "a key with too long a prefix": _wrong(_NODE, f"{_EXPRESSION}.key", ".".join(["p" * 63] * 4) + "/k"),
    "a topology with too long a prefix": _wrong(_POD, f"{_TERM}.topologyKey", "p" * 254 + "/k"),
    "a label with too long a prefix": _wrong(
        _BINDING, "spec.pods.selector.matchExpressions", [{"key": "p" * 254 + "/k", "operator": "Exists"}], "[0].key"
    ),
    "a value that is none": _wrong(_NODE, f"{_EXPRESSION}.values", ["-a"], "[0]"),
    "an operator that is none": _wrong(_NODE, f"{_EXPRESSION}.operator", "Like"),
    "In without values": _wrong(_NODE, f"{_EXPRESSION}.valuesFrom", [], "spec.required[0].matchExpressions[0].values"),
    "Exists with values": _wrong(
        _NODE, f"{_EXPRESSION}.operator", "Exists", "spec.required[0].matchExpressions[0].values"
    ),
    "Gt with two values": _wrong(
        _NODE, _EXPRESSION, {"key": "cores", "operator": "Gt", "values": ["1", "2"]}, ".values"
    ),
    "Gt with a word": _wrong(
        _NODE, _EXPRESSION, {"key": "cores", "operator": "Gt", "values": ["many"]}, "matchExpressions[0].values"
    ),
    "Gt with a text": _wrong(
        _NODE, _EXPRESSION, {"key": "cores", "operator": "Gt", "valuesFrom": ["first"]}, "valuesFrom"
    ),
    "when names nothing": _wrong(_NODE, "spec.required.0.when", "lax", "when"),
    "when is no boolean": _wrong(_NODE, "spec.required.0.when", "first", "when"),
    "valuesFrom names nothing": _wrong(_NODE, f"{_EXPRESSION}.valuesFrom", ["pool"], "valuesFrom"),
    "valuesFrom is a boolean": _wrong(_NODE, f"{_EXPRESSION}.valuesFrom", ["strict"], "valuesFrom"),
    "keyFrom is a list": _wrong(_NODE, _EXPRESSION, {"keyFrom": "pools", "operator": "Exists"}, "keyFrom"),
    "weightFrom without limits": _wrong(_NODE, "spec.preferred.0.weightFrom", "number", "weightFrom"),
    "no weight": _wrong(_NODE, "spec.preferred.0.weightFrom", None, "weight"),
    "weight and weightFrom": _wrong(_NODE, "spec.preferred.0.weight", 5, "weight"),
    "weight of 101": _wrong(
        _with(_NODE, "spec.preferred.0.weightFrom", None), "spec.preferred.0.weight", 101, "weight"
    ),
    "weight of a required term": _wrong(_NODE, "spec.required.0.weight", 5, "weight"),
    "a field that is not known": _wrong(_NODE, "spec.require", [], "require"),
    "nothing about pods": _wrong(_with(_POD, "spec.podAntiAffinity", None), "spec.podAffinity", {}, "podAffinity"),
    "no topology": _wrong(_POD, f"{_TERM}.topologyKey", None),
    "two topologies": _wrong(
        _POD, f"{_TERM}.topologyKeyFrom", "topology", "spec.podAntiAffinity.preferred[0].topologyKey"
    ),
    "topologyKeyFrom is a boolean": _wrong(
        _POD, "spec.podAntiAffinity.required.0.topologyKeyFrom", "strict", "topologyKeyFrom"
    ),
    "every pod meant": _wrong(_POD, f"{_TERM}.matchExpressions", []),
    "a label both ways": _wrong(_POD, f"{_TERM}.matchLabelKeys", ["app"], "matchLabelKeys"),
    "Gt about pods": _wrong(_POD, f"{_TERM}.matchExpressions.0.operator", "Gt", "matchExpressions[0].operator"),
    "a namespace that is none": _wrong(_POD, f"{_TERM}.namespaces", ["Shop"], "[0]"),
    "namespacesFrom names nothing": _wrong(_POD, f"{_TERM}.namespacesFrom", ["teams"], "namespacesFrom"),
    "a namespace label that is none": _wrong(
        _POD, f"{_TERM}.namespaceSelector.matchLabels", {"a b": "c"}, "namespaceSelector.matchLabels"
    ),
    "no template": _wrong(_BINDING, "spec.template", None, "template"),
    "a template of another kind": _wrong(_BINDING, "spec.template.kind", "Deployment"),
    "no pods": _wrong(_BINDING, "spec.pods", None, "pods"),
    "pods without a condition": _wrong(_BINDING, "spec.pods", {}),
    "an argument without a value": _wrong(_BINDING, "spec.arguments.0", {"name": "first"}),
    "an argument with two values": _wrong(_BINDING, "spec.arguments.0.integer", 3, "spec.arguments[0]"),
    "an argument twice": _wrong(
        _BINDING, "spec.arguments", [{"name": "a", "integer": 1}, {"name": "a", "integer": 2}], "[1]"
    ),
    "an owner of another kind": _wrong(_BINDING, "spec.pods.owner.kind", "Node"),
    "an owner whose pods have their nodes": _wrong(_BINDING, "spec.pods.owner.kind", "DaemonSet"),
    "a label that is none": _wrong(_BINDING, "spec.pods.selector.matchLabels", {"app!": "cart"}),
    "a label value that is none": _wrong(_BINDING, "spec.pods.selector.matchLabels", {"app": "cart cart"}),
    "a selector without values": _wrong(
        _BINDING, "spec.pods.selector.matchExpressions", [{"key": "app", "operator": "In"}], "[0].values"
    ),
    "annotations that say nothing": _wrong(_BINDING, "spec.pods.annotations", {}),
    "another rule for conflicts": _wrong(_BINDING, "spec.onConflict", "Replace"),
    "a priority of a billion": _wrong(_BINDING, "spec.priority", 1_000_000_000),
}
