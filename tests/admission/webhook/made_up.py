"""Templates and bindings as the API server sends them, put into a store without one."""

from __future__ import annotations

import json
from typing import Any

from admission.templates.decoding import BINDINGS, NODE_CONFIGS
from admission.templates.objects import NodeSchedulerConfig, SchedulerConfigBinding
from kube.decoding.stored_templates import Stored, stored

_TEMPLATES, _BINDINGS = stored(NODE_CONFIGS), stored(BINDINGS)


def a_template(
    name: str = "pool", *, value: str = "fast", required: bool = False, generation: int = 1, status: Any = None
) -> Stored[NodeSchedulerConfig]:
    """Prefers, or requires, nodes with the label pool=VALUE."""
    expression = {"key": "pool", "operator": "In", "values": [value]}
    term = {"matchExpressions": [expression]}
    spec = {"required": [term]} if required else {"preferred": [term | {"weight": 50}]}
    return _TEMPLATES.decoded(_body("NodeSchedulerConfig", name, generation, spec, status))[0]


def a_binding(
    name: str = "cart", *, template: str = "pool", generation: int = 1, status: Any = None, **spec: Any
) -> Stored[SchedulerConfigBinding]:
    """Of pods with the label app=NAME."""
    usual = {
        "template": {"kind": "NodeSchedulerConfig", "name": template},
        "pods": {"selector": {"matchLabels": {"app": name}}},
    }
    return _BINDINGS.decoded(_body("SchedulerConfigBinding", name, generation, usual | spec, status))[0]


def _body(kind: str, name: str, generation: int, spec: Any, status: Any) -> bytes:
    metadata = {"name": name, "uid": f"uid-{name}", "generation": generation, "resourceVersion": "1"}
    manifest = {"apiVersion": "forecast-scheduler.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    return json.dumps(manifest | ({} if status is None else {"status": status})).encode()
