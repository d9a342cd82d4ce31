"""Templates and bindings as the API server sends them, put into a store without one."""

from __future__ import annotations

import json
from typing import Any

from admission.templates.template_decoding import BINDINGS, NODE_CONFIGS
from admission.templates.template_objects import NodeSchedulerConfig, SchedulerConfigBinding
from kube.decoding.stored_templates import Stored, stored
from tests.admission.templates.manifests import Manifest, binding, node_config
from tests.admission.templates.shaping_pods import on, term

_TEMPLATES, _BINDINGS = stored(NODE_CONFIGS), stored(BINDINGS)


def a_template(
    name: str = "pool", *, value: str = "fast", required: bool = False, generation: int = 1, status: Any = None
) -> Stored[NodeSchedulerConfig]:
    """Prefers, or requires, nodes with the label pool=VALUE."""
    one = term(on("pool", value))
    spec = {"required": [one]} if required else {"preferred": [one | {"weight": 50}]}
    return _TEMPLATES.decoded(_stored(node_config(name, **spec), generation, status))[0]


def a_binding(
    name: str = "cart", *, template: str = "pool", generation: int = 1, status: Any = None, **spec: Any
) -> Stored[SchedulerConfigBinding]:
    """Of pods with the label app=NAME."""
    usual = {"pods": {"selector": {"matchLabels": {"app": name}}}}
    made = binding(name, f"NodeSchedulerConfig/{template}", **(usual | spec))
    return _BINDINGS.decoded(_stored(made, generation, status))[0]


def _stored(made: Manifest, generation: int, status: Any) -> bytes:
    made["metadata"] |= {"uid": f"uid-{made['metadata']['name']}", "generation": generation, "resourceVersion": "1"}
    return json.dumps(made | ({} if status is None else {"status": status})).encode()
