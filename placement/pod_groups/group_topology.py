"""Annotations of a PodGroup that say how close together its members are to be: which label keys of nodes, how firmly.

A domain is the nodes that have the same value of a label: a node by kubernetes.io/hostname, a rack, a zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from base.errors import InputError
from kube.objects.objects import ANNOTATION_PREFIX
from kube.objects.qualified_names import is_qualified_name

TOPOLOGY_PREFERRED: Final = f"{ANNOTATION_PREFIX}topology-preferred"
TOPOLOGY_REQUIRED: Final = f"{ANNOTATION_PREFIX}topology-required"

MOST_LEVELS: Final = 8


@dataclass(frozen=True, slots=True)
class GroupTopology:
    """Label keys of nodes.

    preferred : levels, from the tightest to the loosest; none = it does not matter
    required  : all members are to be in one domain of it; '' = they need not
    """

    preferred: tuple[str, ...] = ()
    required: str = ""


ANYWHERE: Final = GroupTopology()


def group_topology(annotations: Mapping[str, str]) -> GroupTopology:
    """What a PodGroup's annotations say. Raises InputError that begins with the annotation's key."""
    preferred = _keys(annotations, TOPOLOGY_PREFERRED)
    required = _keys(annotations, TOPOLOGY_REQUIRED)
    if len(preferred) > MOST_LEVELS:
        raise InputError(f"{TOPOLOGY_PREFERRED}: names {len(preferred)} levels, at most {MOST_LEVELS} are allowed")
    if len(required) > 1:
        raise InputError(
            f"{TOPOLOGY_REQUIRED}: must be one label key of nodes, found {len(required)}: name the tightest only"
        )
    return GroupTopology(preferred, required[0] if required else "") if preferred or required else ANYWHERE


def _keys(annotations: Mapping[str, str], annotation: str) -> tuple[str, ...]:
    text = annotations.get(annotation, "")
    keys = tuple(key for key in map(str.strip, text.split(",")) if key)
    for at, key in enumerate(keys):
        if not is_qualified_name(key):
            raise InputError(
                f"{annotation}: must list label keys of nodes such as topology.kubernetes.io/zone, found {key[:60]!r}"
            )
        if key in keys[:at]:
            raise InputError(f"{annotation}: {key} is there twice")
    return keys
