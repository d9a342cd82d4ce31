"""PriorityClasses: the priority of pods that only name their class, as manifests do that no API server has admitted.

https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
from msgspec import Raw

from kube.decoding import wire
from kube.decoding.watched_kinds import REFUSED, UndecodableObject
from kube.decoding.wire_base import Int32, Text, Wire
from kube.objects.objects import PodInfo

PRIORITY_CLASS: Final = ("scheduling.k8s.io", "PriorityClass")
"""API group and kind."""

_BUILT_IN: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class _ClassJson(Wire):
    metadata: wire.Metadata
    value: Int32 = 0
    global_default: bool | None = None


class _PodSpecJson(Wire):
    priority: Int32 | None = None
    priority_class_name: Text | None = None


class _PodJson(Wire):
    spec: _PodSpecJson | None = None


_CLASS: Final = msgspec.json.Decoder(_ClassJson)
_POD: Final = msgspec.json.Decoder(_PodJson)


@dataclass(frozen=True, slots=True)
class PriorityClasses:
    """values: priority by name of the class; default: of pods that name no class."""

    values: Mapping[str, int] = field(default_factory=dict)
    default: int = 0

    def applied(self, pod: PodInfo, item: bytes | Raw) -> PodInfo:
        """The pod with the priority that admission gives it; `item`: its JSON. A priority in the JSON stays."""
        spec = _POD.decode(item).spec or _PodSpecJson()
        if spec.priority is not None:
            return pod
        priority = self.default
        if spec.priority_class_name:
            priority = self.values.get(spec.priority_class_name, _BUILT_IN.get(spec.priority_class_name, self.default))
        return pod if priority == pod.priority else replace(pod, priority=priority)

    def unknown(self, pods: Iterable[bytes | Raw]) -> tuple[str, ...]:
        """Return the classes that pods name, by their JSON, where neither these nor the pods say their priority."""
        specs = (_POD.decode(item).spec or _PodSpecJson() for item in pods)
        wanted = {spec.priority_class_name or "" for spec in specs if spec.priority is None}
        return tuple(sorted(wanted - {"", *self.values, *_BUILT_IN}))


def priority_classes(items: Iterable[bytes | Raw]) -> PriorityClasses:
    """PriorityClasses decoded from their JSON. Raises UndecodableObject."""
    values: dict[str, int] = {}
    default = 0
    for item in items:
        try:
            found = _CLASS.decode(item)
        except REFUSED as error:
            raise UndecodableObject("PriorityClass", str(error)) from error
        values[found.metadata.name] = found.value
        if found.global_default:
            default = found.value
    return PriorityClasses(values, default)
