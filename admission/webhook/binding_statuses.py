"""What the status of a template or binding should say, with the latest error of each binding that this process has
seen, and what to change so that it does. No I/O.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from admission.templates.template_objects import (
    NodeSchedulerConfig,
    PodSchedulerConfig,
    SchedulerConfigBinding,
    TemplateReference,
)
from admission.templates.template_set import TemplateSet
from kube.decoding.stored_templates import LastError, ObjectStatus, Stored, StoredCondition

_READY: Final = "Ready"
_LONGEST_MESSAGE: Final = 1024

_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class WantedStatus:
    """What a status should say.

    generation : of the object that this was found out about
    template   : uid and generation of the template that a binding was put together with; None = there is none
    counts     : fields of the status that are numbers
    error      : the latest that this replica has seen; None = none that is not written yet
    """

    ready: bool
    reason: str
    message: str
    generation: int
    counts: Mapping[str, int] = field(default_factory=dict)
    error: LastError | None = None
    template: tuple[str, int] | None = None


def uses(templates: TemplateSet) -> Mapping[TemplateReference, int]:
    """How many bindings name each template."""
    return Counter(one.template for one in templates.bindings.values() if one.template is not None)


def wanted_of_template(
    one: Stored[NodeSchedulerConfig] | Stored[PodSchedulerConfig], users: Mapping[TemplateReference, int]
) -> WantedStatus:
    """Whether it can be used, and how many bindings name it."""
    if one.object is None:
        return WantedStatus(False, "Invalid", one.problem[:_LONGEST_MESSAGE], one.generation)
    counts = {"bindings": users.get(TemplateReference(one.object.kind, one.name), 0)}
    if one.object.problem:
        return WantedStatus(False, "Invalid", one.object.problem[:_LONGEST_MESSAGE], one.generation, counts)
    return WantedStatus(True, "Valid", "bindings can apply it", one.generation, counts)


def wanted_of_binding(
    one: Stored[SchedulerConfigBinding],
    templates: TemplateSet,
    counts: Mapping[str, int],
    error: LastError | None,
) -> WantedStatus | None:
    """Whether it applies, to how many pods it was applied, and what went wrong last. None: not in effect yet."""
    if one.object is None:
        return WantedStatus(False, "Invalid", one.problem[:_LONGEST_MESSAGE], one.generation, counts, error)
    in_effect = templates.bindings.get(one.name)
    if in_effect is None or (in_effect.uid, in_effect.generation) != (one.object.uid, one.object.generation):
        return None
    template = templates.template_of(in_effect)
    made_with = None if template is None else (template.uid, template.generation)

    def wanted(ready: bool, reason: str, message: str) -> WantedStatus:
        return WantedStatus(ready, reason, message[:_LONGEST_MESSAGE], one.generation, counts, error, made_with)

    problem = templates.problems.get(one.name)
    if problem is not None:
        return wanted(False, problem.reason, problem.message)
    if one.object.suspended:
        return wanted(True, "Suspended", "no new pod is shaped while it is suspended")
    return wanted(True, "Applies", f"new pods are shaped by {one.object.template}")


def change_of(wanted: WantedStatus, current: ObjectStatus, moment: str) -> dict[str, Any] | None:
    """What to merge into the status (RFC 7396); None = nothing. moment: now, RFC 3339 in UTC."""
    change: dict[str, Any] = {}
    before = next((one for one in current.conditions if one.type == _READY), None)
    if before is not None and (before.observed_generation or 0) > wanted.generation:
        return None
    if wanted.template is not None and _is_behind(wanted.template, current):
        return None
    condition = _condition(wanted, before, moment)
    if condition != before:
        others = [one for one in current.conditions if one.type != _READY]
        change["conditions"] = msgspec.to_builtins([*others, condition])
    change |= {name: count for name, count in wanted.counts.items() if getattr(current, _FIELDS[name]) != count}
    uid, version = wanted.template or (None, None)
    if (current.template_uid, current.template_version) != (uid, version):
        change |= {"templateUid": uid, "templateVersion": version}  # null takes a field away
    if wanted.error is not None and is_newer(wanted.error, current.last_error):
        change["lastError"] = msgspec.to_builtins(wanted.error)
    return change or None


def is_newer(error: LastError, than: LastError | None) -> bool:
    """Whether it came later."""
    return than is None or error.time > than.time


def _is_behind(template: tuple[str, int], current: ObjectStatus) -> bool:
    """Whether another replica knows a later version of the same template. One that was made anew counts from 1."""
    uid, version = template
    return current.template_uid == uid and (current.template_version or 0) > version


_FIELDS: Final = {"bindings": "bindings", "boundPods": "bound_pods"}


def _condition(wanted: WantedStatus, before: StoredCondition | None, moment: str) -> StoredCondition:
    status = "True" if wanted.ready else "False"
    since = before.last_transition_time if before is not None and before.status == status else moment
    return StoredCondition(_READY, status, wanted.reason, wanted.message, since or moment, wanted.generation)


class LastErrors:
    """For any thread. Names come from bindings that exist, and are bounded all the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: dict[str, LastError] = {}

    def put(self, binding: str, error: LastError) -> None:
        with self._lock:
            if binding in self._errors or len(self._errors) < _MOST:
                self._errors[binding] = error

    def pending(self) -> Mapping[str, LastError]:
        """Return what is not written yet, by binding."""
        with self._lock:
            return dict(self._errors)

    def told(self, binding: str, error: LastError) -> None:
        """This one is in the status, or something newer: forget it, unless another has come meanwhile."""
        with self._lock:
            if self._errors.get(binding) == error:
                del self._errors[binding]
