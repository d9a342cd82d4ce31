"""Templates and bindings at one moment, compiled: each binding's terms are rendered once, not once per pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from admission.templates.affinity import MOST_AFFINITY_BYTES
from admission.templates.matching import BindingIndex, MatchedPod
from admission.templates.parameters import value_problem
from admission.templates.rendering import Rendered, rendered
from admission.templates.template_objects import (
    NodeSchedulerConfig,
    Parameter,
    PodSchedulerConfig,
    SchedulerConfigBinding,
    Template,
    TemplateKind,
    Value,
)
from base.errors import InputError


def values_of(parameters: Sequence[Parameter], arguments: Mapping[str, Value]) -> dict[str, Value]:
    """By name of the parameter. Raises InputError for arguments that are unknown, missing, or not what is allowed."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in arguments:
        if name not in known:
            raise InputError(
                f"argument {name}: the template has no such parameter; it has {', '.join(sorted(known)) or 'none'}"
            )
    values: dict[str, Value] = {}
    for name, parameter in known.items():
        value = arguments.get(name, parameter.default)
        if value is None:
            raise InputError(
                f"argument {name}: is missing: the parameter has no default; "
                "give it here or in an annotation of the pod"
            )
        if problem := value_problem(parameter, value):
            raise InputError(f"argument {name}: {problem}")
        values[name] = value
    return values


@dataclass(frozen=True, slots=True)
class BindingProblem:
    """Why a binding applies to no pod.

    reason : InvalidBinding, TemplateNotFound, InvalidTemplate, InvalidArguments or TooLarge: the reason of its Ready
             condition
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A binding with its template, and what came of both: one of rendered and problem is set.

    given : arguments of a pod among those of the binding
    """

    binding: SchedulerConfigBinding
    template: Template | None
    rendered: Rendered | None
    problem: BindingProblem | None = None
    given: Mapping[str, Value] = field(default_factory=dict)

    def with_arguments(self, given: Mapping[str, Value]) -> Compiled:
        """The same with further arguments, for one pod."""
        if self.template is None or self.template.problem or self.binding.problem:
            return self
        return replace(_compiled(self.binding, self.template, given), given=given)


class TemplateSet:
    """Immutable.

    bindings     : by name
    problems     : by binding name; such bindings apply to no pod
    node_configs : by name; pod_configs alike
    """

    __slots__ = ("_compiled", "_index", "bindings", "node_configs", "pod_configs", "problems")

    bindings: Mapping[str, SchedulerConfigBinding]
    problems: Mapping[str, BindingProblem]
    node_configs: Mapping[str, NodeSchedulerConfig]
    pod_configs: Mapping[str, PodSchedulerConfig]

    @classmethod
    def of(
        cls,
        node_configs: Iterable[NodeSchedulerConfig],
        pod_configs: Iterable[PodSchedulerConfig],
        bindings: Iterable[SchedulerConfigBinding],
        *,
        before: TemplateSet | None = None,
    ) -> TemplateSet:
        """Compile. before: the set up to now; what has not changed since is taken from it."""
        made = cls.__new__(cls)
        made.node_configs = {one.name: one for one in node_configs}
        made.pod_configs = {one.name: one for one in pod_configs}
        made.bindings = {one.name: one for one in bindings}
        known = before._compiled if before is not None else {}
        made._compiled = {name: made._compile(binding, known.get(name)) for name, binding in made.bindings.items()}
        made.problems = {name: one.problem for name, one in made._compiled.items() if one.problem is not None}
        # One that says nothing about pods, since its spec cannot be read, means none of them.
        findable = (one for one in made._compiled.values() if not one.binding.problem)
        ordered = sorted(findable, key=lambda one: (-one.binding.priority, one.binding.name))
        made._index = BindingIndex((one.binding.pods, one) for one in ordered)
        return made

    _compiled: Mapping[str, Compiled]
    _index: BindingIndex[Compiled]

    def meaning(self, pod: MatchedPod) -> list[Compiled]:
        """Bindings that mean a pod, suspended and broken ones, too: highest priority first, then by name."""
        return self._index.meaning(pod)

    def template_of(self, binding: SchedulerConfigBinding) -> Template | None:
        """The template that a binding names; None = there is none of that name."""
        if binding.template is None:
            return None
        named: Mapping[str, Template]
        named = self.node_configs if binding.template.kind is TemplateKind.NODE else self.pod_configs
        return named.get(binding.template.name)

    def _compile(self, binding: SchedulerConfigBinding, before: Compiled | None) -> Compiled:
        template = self.template_of(binding)
        # Objects that did not change are the same objects; the comparison finds those that were read anew.
        if before is not None and _same(before.binding, binding) and _same(before.template, template):
            return before
        if binding.problem:
            return Compiled(binding, template, None, BindingProblem("InvalidBinding", binding.problem))
        if template is None:
            return Compiled(binding, None, None, BindingProblem("TemplateNotFound", f"there is no {binding.template}"))
        if template.problem:
            problem = BindingProblem("InvalidTemplate", f"{binding.template}: {template.problem}")
            return Compiled(binding, template, None, problem)
        return _compiled(binding, template, {})


def _compiled(binding: SchedulerConfigBinding, template: Template, given: Mapping[str, Value]) -> Compiled:
    """given: arguments of a pod."""
    try:
        terms = rendered(template, values_of(template.parameters, {**binding.arguments, **given}))
    except InputError as error:
        return Compiled(binding, template, None, BindingProblem("InvalidArguments", str(error)))
    if terms.json_bytes > MOST_AFFINITY_BYTES:
        message = f"its terms have {terms.json_bytes} bytes: an affinity may have {MOST_AFFINITY_BYTES}"
        return Compiled(binding, template, None, BindingProblem("TooLarge", message))
    return Compiled(binding, template, terms)


def _same(one: object, other: object) -> bool:
    return one is other or one == other
