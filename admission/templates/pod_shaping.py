"""What do the bindings make of a pod? Pure: the pod as JSON in, its new affinity and annotations out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from admission.templates.affinity import AffinityTooLarge, affinity_json, read_affinity
from admission.templates.applied_bindings import Skipped, SkipReason, decide
from admission.templates.matching import pod_facts
from admission.templates.pod_arguments import with_pod_arguments
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, Applied, pod_record, record_text
from admission.templates.template_set import Compiled, TemplateSet
from base.errors import InputError
from scorer.scoring_policy import OPT_OUT_ANNOTATION

_MOST_ANNOTATION_BYTES: Final = 256 * 1024
"""Of all annotations together (TotalAnnotationSizeLimitB of apimachinery); a pod with more is refused."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """What becomes of a pod.

    affinity    : the whole new spec.affinity; None = it stays as it is. To be sent, not to be changed in place
    annotations : to be set; a value of None = to be removed; {} = they stay as they are
    applied     : in order of priority; exactly what the record says
    remarks     : sentences about arguments of the pod that no binding takes
    """

    affinity: dict[str, Any] | None = None
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    applied: tuple[Applied, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    remarks: tuple[str, ...] = ()


_NOTHING: Final = Shaped()


def shape(
    pod: Mapping[str, Any],
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    templates: TemplateSet,
) -> Shaped:
    """Apply every binding that means the pod, by priority.

    namespace, namespace_labels : of the request; the pod's own metadata may lack a namespace. None = labels not known,
                                  no namespace selector holds but the empty one

    Applying it again to the result changes nothing. Never raises, for any JSON.
    """
    metadata, spec = _mapping(pod, "metadata"), _mapping(pod, "spec")
    if not _is_pod(pod, metadata):
        return _NOTHING
    facts = pod_facts(metadata, namespace, namespace_labels)
    if facts.annotations.get(OPT_OUT_ANNOTATION, "").lower() == "true":
        return _left_alone(templates.meaning(facts), SkipReason.OPTED_OUT, f"the pod has {OPT_OUT_ANNOTATION}")
    if spec.get("nodeName"):
        return _left_alone(templates.meaning(facts), SkipReason.NODE_NAMED, "the pod names its node")
    bindings: Sequence[Compiled] = templates.meaning(facts)
    annotations = facts.annotations
    given = with_pod_arguments(bindings, annotations)
    bindings = given.bindings
    if not bindings and TEMPLATES_ANNOTATION not in annotations:
        return Shaped(remarks=given.remarks) if given.remarks else _NOTHING
    try:
        before = read_affinity(spec, namespace, facts.labels)
    except AffinityTooLarge as error:
        return _left_alone(bindings, SkipReason.TOO_LARGE, str(error))
    except InputError as error:
        return _left_alone(bindings, SkipReason.UNREADABLE, str(error)[:400])
    written = spec.get("affinity")
    decisions = decide(bindings, written, before, {one.binding: one for one in pod_record(annotations)})
    wanted = {TEMPLATES_ANNOTATION: record_text(decisions.applied) if decisions.applied else None}
    if not _annotations_fit(metadata, wanted):
        return _left_alone(bindings, SkipReason.TOO_LARGE, "the pod's annotations leave no room for the record")
    return Shaped(
        affinity=None if decisions.affinity is before else affinity_json(written, before, decisions.affinity),
        annotations={key: text for key, text in wanted.items() if _written(metadata, key) != text},
        applied=decisions.applied,
        skipped=(*given.refused, *decisions.skipped),
        remarks=given.remarks,
    )


def _left_alone(bindings: Sequence[Compiled], reason: SkipReason, message: str) -> Shaped:
    if not bindings:
        return _NOTHING
    return Shaped(skipped=tuple(Skipped(one.binding.name, reason, message) for one in bindings))


def _is_pod(pod: object, metadata: Mapping[str, Any]) -> bool:
    """Whether there is a place for an affinity and annotations. Without one it is no pod, and no binding means it."""
    return (
        isinstance(pod, Mapping)
        and isinstance(pod.get("metadata"), Mapping)
        and isinstance(pod.get("spec"), Mapping)
        and isinstance(metadata.get("annotations"), Mapping | None)
    )


def _mapping(of: object, name: str) -> Mapping[str, Any]:
    found = of.get(name) if isinstance(of, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _written(metadata: Mapping[str, Any], key: str) -> object:
    """The annotation as it is in the pod, be it a text or not."""
    return _mapping(metadata, "annotations").get(key)


def _annotations_fit(metadata: Mapping[str, Any], wanted: Mapping[str, str | None]) -> bool:
    annotations = {**_mapping(metadata, "annotations"), **wanted}
    total = sum(_length(key) + _length(value) for key, value in annotations.items())
    return total <= _MOST_ANNOTATION_BYTES


def _length(text: object) -> int:
    return len(text.encode(errors="replace")) if isinstance(text, str) else 0
