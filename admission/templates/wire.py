"""The custom resources as JSON, as msgspec types: the same structure and bounds as the schemas in deploy/crds.

Unknown fields are refused: their author meant something that would not be done.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from kube.decoding import wire
from kube.decoding.wire_base import NOTHING, Int32, Text, Wire
from kube.objects.labels import LABEL_VALUE, NAMESPACE, QUALIFIED_NAME

ParameterName = Annotated[str, Meta(min_length=1, max_length=32, pattern=r"^[A-Za-z][A-Za-z0-9]*\Z")]
ShortText = Annotated[str, Meta(max_length=253)]
Description = Annotated[str, Meta(max_length=1024)]
Pattern = Annotated[str, Meta(max_length=128)]
LabelValue = Annotated[str, Meta(max_length=63, pattern=LABEL_VALUE)]
LabelKey = Annotated[str, Meta(min_length=1, max_length=317, pattern=QUALIFIED_NAME)]
Namespace = Annotated[str, Meta(min_length=1, max_length=63, pattern=NAMESPACE)]
ObjectName = Annotated[str, Meta(min_length=1, max_length=253)]
Weight = Annotated[int, Meta(ge=1, le=100)]
Priority = Annotated[int, Meta(ge=-1_000_000, le=1_000_000)]
ItemCount = Annotated[int, Meta(ge=0, le=32)]
Strings = Annotated[list[ShortText], Meta(max_length=32)]
Enum = Annotated[list[ShortText], Meta(min_length=1, max_length=64)]
LabelValues = Annotated[list[LabelValue], Meta(max_length=32)]
Names = Annotated[list[ParameterName], Meta(max_length=8)]
Namespaces = Annotated[list[Namespace], Meta(max_length=32)]


class Strict(Wire, forbid_unknown_fields=True):
    """Every field is known."""


class TemplateMetadataJson(wire.Metadata):
    """metadata, with the number of the spec's version."""

    generation: int | None = None


class TemplateObjectJson(Wire):
    """Any of the custom resources; its spec is decoded apart, so that an object with a bad one still has a name."""

    metadata: TemplateMetadataJson
    api_version: Text = ""
    kind: Text = ""
    spec: Raw = NOTHING


class StringBlock(Strict):
    default: ShortText | None = None
    enum: Enum | None = None
    pattern: Pattern | None = None


class IntegerBlock(Strict):
    default: Int32 | None = None
    minimum: Int32 | None = None
    maximum: Int32 | None = None


class BooleanBlock(Strict):
    default: bool | None = None


class StringsBlock(Strict):
    default: Strings | None = None
    enum: Enum | None = None
    pattern: Pattern | None = None
    min_items: ItemCount | None = None
    max_items: ItemCount | None = None


class ParameterJson(Strict):
    """spec.parameters[]; exactly one of the blocks."""

    name: ParameterName
    string: StringBlock | None = None
    integer: IntegerBlock | None = None
    boolean: BooleanBlock | None = None
    strings: StringsBlock | None = None


class TemplateRequirementJson(Strict):
    """An entry of matchExpressions of a template."""

    operator: Text
    key: LabelKey | None = None
    key_from: ParameterName | None = None
    values: LabelValues | None = None
    values_from: Names | None = None


class TemplateNodeTermJson(Strict):
    """A term of a NodeSchedulerConfig, required or preferred."""

    match_expressions: Annotated[list[TemplateRequirementJson], Meta(min_length=1, max_length=16)]
    when: ParameterName | None = None
    weight: Weight | None = None
    weight_from: ParameterName | None = None


class NodeSpecJson(Strict):
    """spec of a NodeSchedulerConfig."""

    description: Description | None = None
    parameters: Annotated[list[ParameterJson], Meta(max_length=16)] | None = None
    required: Annotated[list[TemplateNodeTermJson], Meta(max_length=16)] | None = None
    preferred: Annotated[list[TemplateNodeTermJson], Meta(max_length=16)] | None = None


class SelectorRequirementJson(Strict):
    """An entry of matchExpressions of a label selector."""

    key: LabelKey
    operator: Text
    values: LabelValues | None = None


class TemplateSelectorJson(Strict):
    """A label selector."""

    match_labels: Annotated[dict[LabelKey, LabelValue], Meta(max_length=16)] | None = None
    match_expressions: Annotated[list[SelectorRequirementJson], Meta(max_length=16)] | None = None


class TemplatePodTermJson(Strict):
    """A term of a PodSchedulerConfig, required or preferred."""

    match_expressions: Annotated[list[TemplateRequirementJson], Meta(max_length=8)] | None = None
    match_label_keys: Annotated[list[LabelKey], Meta(max_length=8)] | None = None
    topology_key: LabelKey | None = None
    topology_key_from: ParameterName | None = None
    namespaces: Namespaces | None = None
    namespaces_from: Names | None = None
    namespace_selector: TemplateSelectorJson | None = None
    when: ParameterName | None = None
    weight: Weight | None = None
    weight_from: ParameterName | None = None


class PodTermsJson(Strict):
    """podAffinity and podAntiAffinity."""

    required: Annotated[list[TemplatePodTermJson], Meta(max_length=8)] | None = None
    preferred: Annotated[list[TemplatePodTermJson], Meta(max_length=8)] | None = None


class PodSpecJson(Strict):
    """spec of a PodSchedulerConfig."""

    description: Description | None = None
    parameters: Annotated[list[ParameterJson], Meta(max_length=16)] | None = None
    pod_affinity: PodTermsJson | None = None
    pod_anti_affinity: PodTermsJson | None = None


class ReferenceJson(Strict):
    kind: Text
    name: ObjectName


class ArgumentJson(Strict):
    """spec.arguments[] of a binding; exactly one value."""

    name: ParameterName
    string: ShortText | None = None
    integer: Int32 | None = None
    boolean: bool | None = None
    strings: Strings | None = None


class OwnerJson(Strict):
    kind: Text
    name: Annotated[str, Meta(min_length=1, max_length=253)] | None = None


class PodsJson(Strict):
    """spec.pods of a binding."""

    namespaces: Annotated[list[Namespace], Meta(min_length=1, max_length=64)] | None = None
    namespace_selector: TemplateSelectorJson | None = None
    selector: TemplateSelectorJson | None = None
    owner: OwnerJson | None = None
    annotations: (
        Annotated[dict[LabelKey, Annotated[str, Meta(max_length=1024)]], Meta(min_length=1, max_length=16)] | None
    ) = None


class BindingSpecJson(Strict):
    """spec of a SchedulerConfigBinding. canary: of earlier versions, refused."""

    template: ReferenceJson
    pods: PodsJson
    arguments: Annotated[list[ArgumentJson], Meta(max_length=16)] | None = None
    priority: Priority = 0
    on_conflict: Text = msgspec.field(default="KeepPod")
    canary: object = None
    suspended: bool = False
