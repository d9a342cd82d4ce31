"""The custom resources as they are once read: templates with their parameters, and the bindings that apply them.

An object that cannot be used keeps its place and says why (`problem`), so that a binding to it can report the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from kube.objects.constraints import LabelSelector, Operator

Value = str | int | bool | tuple[str, ...]
"""Of a parameter; which of these is said by its type."""


class TemplateKind(Enum):
    """What a binding can name."""

    NODE = "NodeSchedulerConfig"
    POD = "PodSchedulerConfig"


class ParameterType(Enum):
    """The name of the block that holds default and limits; of an argument, of the field that holds its value."""

    STRING = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    STRINGS = "strings"


class ConflictRule(Enum):
    """What becomes of a template's requirements on node labels that the pod, or a binding before, already constrains.

    KEEP_POD : they are left out
    MERGE    : both must hold; where nothing could, the binding is left out
    """

    KEEP_POD = "KeepPod"
    MERGE = "Merge"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a template.

    default              : None = an argument is required
    enum, pattern        : of a string, or each of the strings; () and '' = anything
    minimum, maximum     : of an integer, inclusive
    min_items, max_items : of strings
    """

    name: str
    type: ParameterType
    default: Value | None = None
    enum: tuple[str, ...] = ()
    pattern: str = ""
    minimum: int | None = None
    maximum: int | None = None
    min_items: int = 0
    max_items: int = 32


@dataclass(frozen=True, slots=True)
class RequirementTemplate:
    """An entry of matchExpressions. One of key and key_from is set; values_from are added to values."""

    operator: Operator
    key: str = ""
    key_from: str = ""
    values: tuple[str, ...] = ()
    values_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTermTemplate:
    """A term of node affinity.

    when                : a boolean parameter; the term is left out where it is false; '' = always there
    weight, weight_from : of a preferred term; 0 and '' of a required one
    """

    requirements: tuple[RequirementTemplate, ...]
    when: str = ""
    weight: int = 0
    weight_from: str = ""


@dataclass(frozen=True, slots=True)
class PodTermTemplate:
    """A term of pod (anti-)affinity. Namespaces as in Kubernetes: neither names nor a selector = the pod's own."""

    requirements: tuple[RequirementTemplate, ...]
    topology_key: str = ""
    topology_key_from: str = ""
    match_label_keys: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    namespaces_from: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    when: str = ""
    weight: int = 0
    weight_from: str = ""


@dataclass(frozen=True, slots=True)
class PodTerms:
    """podAffinity, or podAntiAffinity."""

    required: tuple[PodTermTemplate, ...] = ()
    preferred: tuple[PodTermTemplate, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSchedulerConfig:
    """A template of node affinity.

    required : one of the terms must match; () = any node will do
    problem  : why it cannot be used, with the field; '' = it can be used
    """

    name: str
    uid: str = ""
    generation: int = 0
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    required: tuple[NodeTermTemplate, ...] = ()
    preferred: tuple[NodeTermTemplate, ...] = ()
    problem: str = ""

    @property
    def kind(self) -> TemplateKind:
        """As a binding names it."""
        return TemplateKind.NODE


@dataclass(frozen=True, slots=True)
class PodSchedulerConfig:
    """A template of pod affinity and anti-affinity."""

    name: str
    uid: str = ""
    generation: int = 0
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    affinity: PodTerms = PodTerms()
    anti_affinity: PodTerms = PodTerms()
    problem: str = ""

    @property
    def kind(self) -> TemplateKind:
        """As a binding names it."""
        return TemplateKind.POD


Template = NodeSchedulerConfig | PodSchedulerConfig


@dataclass(frozen=True, slots=True)
class TemplateReference:
    """Which template; written NodeSchedulerConfig/pool."""

    kind: TemplateKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.value}/{self.name}"


@dataclass(frozen=True, slots=True)
class OwnerCondition:
    """The top owner of a pod, as forecast.service_key has it; name '' = any of that kind."""

    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class PodConditions:
    """Which pods a binding means: all that is set must hold.

    namespaces                   : one of these names; () = any
    namespace_selector, selector : of the namespace's labels, of the pod's; None = any
    annotations                  : all must be there with these very values
    """

    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    selector: LabelSelector | None = None
    owner: OwnerCondition | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchedulerConfigBinding:
    """Applies a template, with arguments, to pods.

    template : None only where there is a problem
    priority : higher first, then by name
    """

    name: str
    template: TemplateReference | None
    uid: str = ""
    generation: int = 0
    arguments: Mapping[str, Value] = field(default_factory=dict)
    pods: PodConditions = PodConditions()
    priority: int = 0
    on_conflict: ConflictRule = ConflictRule.KEEP_POD
    suspended: bool = False
    problem: str = ""
