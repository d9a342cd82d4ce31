"""What is written on a pod about the templates that shaped it: one annotation, read again by reports and metrics.

forecast-scheduler.io/templates       JSON: [{"binding": "evening", "generation": 3,
                                              "template": "NodeSchedulerConfig/pool", "version": 2}]
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

MOST_OF_POD: Final = 64
"""Bindings that are read of one pod: twice as many as one of ours has."""

_LONGEST_RECORD: Final = 64 * 1024
_LONGEST_NAME: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Applied:
    """A binding that shaped a pod.

    binding, generation : of the SchedulerConfigBinding
    template, version   : "NodeSchedulerConfig/pool" and its metadata.generation
    arguments           : that the pod itself gave, by name of the parameter
    """

    binding: str
    generation: int
    template: str
    version: int
    arguments: Mapping[str, Value] = field(default_factory=dict, hash=False)


_DECODER: Final = msgspec.json.Decoder(list[Applied])


def record_text(applied: Iterable[Applied]) -> str:
    """Value of TEMPLATES_ANNOTATION; `arguments` only where there are any."""
    listed = []
    for one in applied:
        entry: dict[str, object] = {
            "binding": one.binding,
            "generation": one.generation,
            "template": one.template,
            "version": one.version,
        }
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


def pod_record(annotations: Mapping[str, str]) -> tuple[Applied, ...]:
    """Return the bindings that shaped a pod, each once; bounded, since any client can write the annotation, and names
    end up in metrics and on terminals.

    What no object can be called is none of ours; of a longer list the first are read.
    """
    text = annotations.get(TEMPLATES_ANNOTATION, "")
    if not text or len(text) > _LONGEST_RECORD:  # most pods have none
        return ()
    applied = {one.binding: one for one in applied_to(annotations) if _is_name(one.binding)}
    return tuple(applied.values())[:MOST_OF_POD]


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None
