"""What the status of a template or binding should say, and what to change so that it does. No I/O.

Several replicas write the same statuses. They agree on what they see, and where one is behind the other it leaves alone
what is newer: a generation it has not seen yet, of the object or of its template, an error later than its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from admission.templates.objects import (
    NodeSchedulerConfig,
    PodSchedulerConfig,
    SchedulerConfigBinding,
    TemplateReference,
)
from admission.templates.template_set import TemplateSet
from kube.decoding.stored_templates import Condition, LastError, ObjectStatus, Stored

_READY: Final = "Ready"
_LONGEST_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True)
class Wanted:
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
) -> Wanted:
    """Whether it can be used, and how many bindings name it."""
    if one.object is None:
        return Wanted(False, "Invalid", one.problem[:_LONGEST_MESSAGE], one.generation)
    counts = {"bindings": users.get(TemplateReference(one.object.kind, one.name), 0)}
    if one.object.problem:
        return Wanted(False, "Invalid", one.object.problem[:_LONGEST_MESSAGE], one.generation, counts)
    return Wanted(True, "Valid", "bindings can apply it", one.generation, counts)


def wanted_of_binding(
    one: Stored[SchedulerConfigBinding],
    templates: TemplateSet,
    counts: Mapping[str, int],
    error: LastError | None,
) -> Wanted | None:
    """Whether it applies, to how many pods it was applied, and what went wrong last. None: not in effect yet."""
    if one.object is None:
        return Wanted(False, "Invalid", one.problem[:_LONGEST_MESSAGE], one.generation, counts, error)
    in_effect = templates.bindings.get(one.name)
    if in_effect is None or (in_effect.uid, in_effect.generation) != (one.object.uid, one.object.generation):
        return None
    template = templates.template_of(in_effect)
    made_with = None if template is None else (template.uid, template.generation)

    def wanted(ready: bool, reason: str, message: str) -> Wanted:
        return Wanted(ready, reason, message[:_LONGEST_MESSAGE], one.generation, counts, error, made_with)

    problem = templates.problems.get(one.name)
    if problem is not None:
        return wanted(False, problem.reason, problem.message)
    if one.object.suspended:
        return wanted(True, "Suspended", "no new pod is shaped while it is suspended")
    return wanted(True, "Applies", f"new pods are shaped by {one.object.template}")


def change_of(wanted: Wanted, current: ObjectStatus, moment: str) -> dict[str, Any] | None:
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


_FIELDS: Final = {"bindings": "bindings", "boundPods": "bound_pods", "controlPods": "control_pods"}


def _condition(wanted: Wanted, before: Condition | None, moment: str) -> Condition:
    status = "True" if wanted.ready else "False"
    since = before.last_transition_time if before is not None and before.status == status else moment
    return Condition(_READY, status, wanted.reason, wanted.message, since or moment, wanted.generation)
