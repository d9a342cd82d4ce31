"""What is written on a pod about the templates that shaped it: two annotations, read again by reports and metrics.

forecast-scheduler.io/templates       JSON: [{"binding": "evening", "generation": 3,
                                              "template": "NodeSchedulerConfig/pool", "version": 2, "canary": true}]
forecast-scheduler.io/canary-control  evening,other    bindings under trial that this pod was not chosen for
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from admission.templates.template_objects import Value
from kube.objects.objects import ANNOTATION_PREFIX

TEMPLATES_ANNOTATION: Final = ANNOTATION_PREFIX + "templates"
CONTROL_ANNOTATION: Final = ANNOTATION_PREFIX + "canary-control"

MOST_OF_POD: Final = 64
"""Bindings that are read of one pod, in either annotation: twice as many as one of ours has."""

_LONGEST_RECORD: Final = 64 * 1024
_LONGEST_NAME: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Applied:
    """A binding that shaped a pod.

    binding, generation : of the SchedulerConfigBinding
    template, version   : "NodeSchedulerConfig/pool" and its metadata.generation
    canary              : the binding was on trial, and this pod was chosen
    arguments           : that the pod itself gave, by name of the parameter
    """

    binding: str
    generation: int
    template: str
    version: int
    canary: bool = False
    arguments: Mapping[str, Value] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class PodRecord:
    """applied: the bindings that shaped a pod, each once; control: those on trial without it."""

    applied: tuple[Applied, ...] = ()
    control: tuple[str, ...] = ()


_NOTHING: Final = PodRecord()

_DECODER: Final = msgspec.json.Decoder(list[Applied])


def record_text(applied: Iterable[Applied]) -> str:
    """Value of TEMPLATES_ANNOTATION; `canary` only where it is true, `arguments` only where there are any."""
    listed = []
    for one in applied:
        entry: dict[str, object] = {
            "binding": one.binding,
            "generation": one.generation,
            "template": one.template,
            "version": one.version,
        }
        entry |= {"canary": True} if one.canary else {}
        listed.append(entry | ({"arguments": dict(one.arguments)} if one.arguments else {}))
    return msgspec.json.encode(listed).decode()


def applied_to(annotations: Mapping[str, str]) -> tuple[Applied, ...]:
    """Return what a pod's annotations record; () if they record nothing, or text that this webhook did not write."""
    text = annotations.get(TEMPLATES_ANNOTATION, "")
    if not text:
        return ()
    try:
        return tuple(_DECODER.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return ()


def control_text(bindings: Iterable[str]) -> str:
    """Value of CONTROL_ANNOTATION."""
    return ",".join(sorted(bindings))


def control_of(annotations: Mapping[str, str]) -> frozenset[str]:
    """Bindings under trial that the pod was not chosen for."""
    return frozenset(name for name in annotations.get(CONTROL_ANNOTATION, "").split(",") if name)


def pod_record(annotations: Mapping[str, str]) -> PodRecord:
    """Both annotations of a pod, bounded: any client can write them, and names end up in metrics and on terminals.

    What no object can be called is none of ours; of longer lists the first are read, of controls by name.
    """
    texts = [annotations.get(name, "") for name in (TEMPLATES_ANNOTATION, CONTROL_ANNOTATION)]
    if not any(texts):
        return _NOTHING  # most pods
    kept = {
        name: text
        for name, text in zip((TEMPLATES_ANNOTATION, CONTROL_ANNOTATION), texts, strict=True)
        if len(text) <= _LONGEST_RECORD
    }
    applied = {one.binding: one for one in applied_to(kept) if _is_name(one.binding)}
    control = sorted(filter(_is_name, control_of(kept)))
    return PodRecord(tuple(applied.values())[:MOST_OF_POD], tuple(control[:MOST_OF_POD]))


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None
