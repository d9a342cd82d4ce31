"""Nodes that a new pod prefers by the forecast: what the webhook and the advisor say to each other about it, and the
preferred node affinity that comes of it.

    webhook --PreferencesRequest: the pod, before it is created--> advisor
            <--PreferencesBody: nodes with weights, the text of an annotation--
    webhook --> terms of preferred node affinity, written to the pod
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from msgspec import Meta, Raw, Struct

from kube.objects.constraints import NodeSelectorTerm, Operator, PreferredNodeTerm, Requirement
from kube.objects.objects import PodInfo
from placement.filters.node_affinity import NAME_FIELD

PREFERENCES: Final = "/v1/preferences"
"""Route of the advisor."""

PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class PreferencesRequest(Struct):
    """Body of POST /v1/preferences."""

    pod: Annotated[
        Raw,
        Meta(
            description="Pod object before its creation. Its uid is that of the question, which its annotation names."
        ),
    ]
    seconds: Annotated[float, Meta(gt=0, description="How long the answer is waited for; a later one charges nothing.")]
    dry_run: Annotated[bool, Meta(description="The pod is not created: charge nothing.")] = False


class PreferredNode(Struct):
    """A node, and the weight of its term: 1 to 100."""

    node: str
    weight: Annotated[int, Meta(ge=1, le=100)]


class PreferencesBody(Struct):
    """What the pod prefers, the best node first; no node = nothing is to be written, and why."""

    nodes: list[PreferredNode]
    note: Annotated[str, Meta(description="Value of the annotation forecast-scheduler.io/advice.")] = ""
    because: str = ""


def preferred_terms(nodes: Sequence[PreferredNode]) -> list[dict[str, Any]]:
    """Return terms of preferred node affinity, as JSON.

    A term names one node: the API server takes no more in matchFields (ValidateNodeFieldSelectorRequirement).
    """
    return [
        {
            "weight": one.weight,
            "preference": {"matchFields": [{"key": NAME_FIELD, "operator": "In", "values": [one.node]}]},
        }
        for one in nodes
    ]


def preferring(pod: PodInfo, nodes: Sequence[PreferredNode]) -> PodInfo:
    """Return the pod with these terms behind its own."""
    terms = tuple(
        PreferredNodeTerm(one.weight, NodeSelectorTerm(fields=(Requirement(NAME_FIELD, Operator.IN, (one.node,)),)))
        for one in nodes
    )
    constraints = replace(pod.constraints, preferred_node_terms=(*pod.constraints.preferred_node_terms, *terms))
    return replace(pod, constraints=constraints)
