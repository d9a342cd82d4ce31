"""Answers AdmissionReviews: new pods are shaped by the templates in effect, and held if they ask for advice; everything
else passes as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Protocol

from admission.templates.pod_shaping import Shaped, shape
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, pod_record
from admission.templates.skip_reasons import SkipReason
from admission.templates.template_set import TemplateSet
from admission.webhook.last_errors import LastErrors
from admission.webhook.protocol import allowed, canary_point, decode_review, patch_of, pod_of
from kube.decoding.stored_templates import LastError

_ERRORS = frozenset({SkipReason.CONTRADICTION, SkipReason.TOO_LARGE, SkipReason.ARGUMENTS})
"""What the binding's status remembers: the pod went without it, or without the pod's arguments, by mistake."""


class AdmissionOutcome(Enum):
    """What became of a review."""

    SHAPED = "shaped"
    UNCHANGED = "unchanged"
    IGNORED = "ignored"  # no new pod
    MALFORMED = "malformed"
    NOT_READY = "not_ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """body: an AdmissionReview; applied: bindings that shaped a pod which is really created."""

    body: bytes
    outcome: AdmissionOutcome
    applied: tuple[str, ...] = ()


class _Namespaces(Protocol):
    def labels_of(self, namespace: str) -> Mapping[str, str] | None: ...


class _Store(Protocol):
    @property
    def templates(self) -> TemplateSet: ...

    @property
    def namespaces(self) -> _Namespaces: ...


GatesOf = Callable[[Mapping[str, Any], str, Mapping[str, str] | None], list[Any] | None]
"""Pod, namespace and its labels -> all scheduling gates that the pod gets; None = those that it has."""


class Reviewer:
    """
    gates_of : which pods are held for the advisor
    clock    : unix seconds, for what is remembered of errors
    """

    def __init__(
        self,
        store: _Store,
        errors: LastErrors,
        *,
        gates_of: GatesOf = lambda pod, namespace, labels: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._errors, self._gates_of, self._clock = store, errors, gates_of, clock

    def review(self, body: bytes) -> Answer:
        """The answer to the body of POST /mutate. Raises Malformed."""
        request = decode_review(body)
        if request.kind.kind != "Pod" or request.kind.group or request.sub_resource or request.operation != "CREATE":
            return Answer(allowed(request.uid), AdmissionOutcome.IGNORED)
        if request.kind.version != "v1":
            warning = f"forecast-scheduler knows pods of v1, not {request.kind.version}: this one is left as it is"
            return Answer(allowed(request.uid, warnings=[warning]), AdmissionOutcome.IGNORED)
        pod = pod_of(request)
        namespace = request.namespace or ""
        labels = self._store.namespaces.labels_of(namespace)
        shaped = shape(pod, namespace, labels, self._store.templates, canary_point(request.uid))
        patch = patch_of(pod, shaped.affinity, shaped.annotations, self._gates_of(pod, namespace, labels))
        if not request.dry_run:
            self._remember(shaped, pod, namespace)
        return Answer(
            allowed(request.uid, patch, _warnings(shaped)),
            AdmissionOutcome.UNCHANGED if patch is None else AdmissionOutcome.SHAPED,
            () if request.dry_run else _newly_applied(shaped, pod),
        )

    def _remember(self, shaped: Shaped, pod: Mapping[str, Any], namespace: str) -> None:
        for one in shaped.skipped:
            if one.reason in _ERRORS:
                moment = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                self._errors.put(one.binding, LastError(one.message[:1024], f"{namespace}/{_name_of(pod)}", moment))


def _newly_applied(shaped: Shaped, pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Without those that the pod records already: the API server asks again where another webhook changed it."""
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    record = annotations.get(TEMPLATES_ANNOTATION) if isinstance(annotations, Mapping) else None
    before = pod_record({TEMPLATES_ANNOTATION: record} if isinstance(record, str) else {})
    known = {one.binding for one in before.applied}
    return tuple(one.binding for one in shaped.applied if one.binding not in known)


def _warnings(shaped: Shaped) -> Iterator[str]:
    """Yield the warnings for the client that creates the pod: errors, and pod settings that won over a template."""
    yield from shaped.remarks
    yield from (f"{one.binding}: {one.message}" for one in shaped.skipped if one.reason in _ERRORS or one.lost_keys)


def _name_of(pod: Mapping[str, Any]) -> str:
    """A pod of a controller has no name yet, only the beginning of one."""
    metadata = pod.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    name, beginning = metadata.get("name"), metadata.get("generateName")
    if isinstance(name, str) and name:
        return name[:253]
    return f"{beginning[:253]}*" if isinstance(beginning, str) else ""
