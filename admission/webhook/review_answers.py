"""Answers AdmissionReviews: new pods are shaped by the templates in effect, and held or given preferences if they ask
for that; everything else passes as it is. Says about which pods the advisor is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any, Protocol

from admission.advice.asked_advice import ByPolicy, affinity_with, asked_mode, pod_to_ask_about, why_not_asked
from admission.templates.applied_bindings import SkipReason
from admission.templates.pod_shaping import Shaped, shape
from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, pod_record
from admission.webhook.admission_review import allowed, decode_review, patch_of, pod_of
from admission.webhook.binding_statuses import LastErrors
from admission.webhook.template_store import TemplateStore
from admission.webhook.wire import AdmissionRequest
from admission.webhook_settings import AdviceGateOptions
from base.excluded import ExcludedOptions
from kube.decoding.stored_templates import LastError
from placement.gate_exemptions import ADVICE, AdviceMode
from placement.preferred_nodes import PreferencesBody

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
class AdmissionAnswer:
    """body: an AdmissionReview; applied: bindings that shaped a pod which is really created."""

    body: bytes
    outcome: AdmissionOutcome
    applied: tuple[str, ...] = ()


class GatesOf(Protocol):
    """admission.advice.holding.Holding."""

    def __call__(
        self, pod: Mapping[str, Any], namespace: str, namespace_labels: Mapping[str, str] | None, *, dry_run: bool
    ) -> list[Any] | None:
        """Return all scheduling gates that the pod gets; None = those that it has."""


Ask = Callable[[Mapping[str, Any] | None], PreferencesBody | None]
"""Asks the advisor and waits for the answer; None = there is none. Never raises.

Takes the affinity that the pod gets by templates, None = its own.
"""

AskOf = Callable[[AdmissionRequest, Mapping[str, Any], Mapping[str, str] | None], Ask | None]
"""Request, pod and labels of its namespace -> what asks which nodes the pod prefers; None = it does not prefer any."""


class Reviewer:
    """
    gates_of : which pods are held for the advisor
    ask_of   : about which pods the advisor is asked
    clock    : unix seconds, for what is remembered of errors
    """

    def __init__(
        self,
        store: TemplateStore,
        errors: LastErrors,
        *,
        gates_of: GatesOf = lambda pod, namespace, namespace_labels, *, dry_run: None,
        ask_of: AskOf = lambda request, pod, labels: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._errors, self._gates_of, self._ask_of = store, errors, gates_of, ask_of
        self._clock = clock

    def review(self, body: bytes) -> AdmissionAnswer:
        """The answer to the body of POST /mutate. Raises Malformed."""
        answer = self.begin(body)
        return answer if isinstance(answer, AdmissionAnswer) else answer()

    def begin(self, body: bytes) -> AdmissionAnswer | Callable[[], AdmissionAnswer]:
        """The answer, or what gives it once the advisor was asked, which takes a moment. Raises Malformed."""
        request = decode_review(body)
        if request.kind.kind != "Pod" or request.kind.group or request.sub_resource or request.operation != "CREATE":
            return AdmissionAnswer(allowed(request.uid), AdmissionOutcome.IGNORED)
        if request.kind.version != "v1":
            warning = f"forecast-scheduler knows pods of v1, not {request.kind.version}: this one is left as it is"
            return AdmissionAnswer(allowed(request.uid, warnings=[warning]), AdmissionOutcome.IGNORED)
        pod = pod_of(request)
        namespace = request.namespace or ""
        labels = self._store.namespaces.labels_of(namespace)
        shaped = shape(pod, namespace, labels, self._store.templates)
        if not request.dry_run:
            self._remember(shaped, pod, namespace)
        if (ask := self._ask_of(request, pod, labels)) is not None:
            return partial(_preferring, request, pod, shaped, ask)
        gates = self._gates_of(pod, namespace, labels, dry_run=bool(request.dry_run))
        patch = patch_of(pod, shaped.affinity, shaped.annotations, gates)
        return _answer(request, pod, shaped, patch)

    def _remember(self, shaped: Shaped, pod: Mapping[str, Any], namespace: str) -> None:
        for one in shaped.skipped:
            if one.reason in _ERRORS:
                moment = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                self._errors.put(one.binding, LastError(one.message[:1024], f"{namespace}/{_name_of(pod)}", moment))


def _preferring(request: AdmissionRequest, pod: Mapping[str, Any], shaped: Shaped, ask: Ask) -> AdmissionAnswer:
    """A shaped pod prefers nodes among those that its templates leave."""
    affinity, annotations = shaped.affinity, shaped.annotations
    found = ask(affinity)
    if found is not None:
        ours = affinity_with(pod["spec"].get("affinity") if affinity is None else affinity, found.nodes)
        if ours is not None:
            affinity, annotations = ours, {**annotations, ADVICE: found.note}
    return _answer(request, pod, shaped, patch_of(pod, affinity, annotations))


def _answer(request: AdmissionRequest, pod: Mapping[str, Any], shaped: Shaped, patch: bytes | None) -> AdmissionAnswer:
    return AdmissionAnswer(
        allowed(request.uid, patch, _warnings(shaped)),
        AdmissionOutcome.UNCHANGED if patch is None else AdmissionOutcome.SHAPED,
        () if request.dry_run else _newly_applied(shaped, pod),
    )


def _newly_applied(shaped: Shaped, pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Without those that the pod records already: the API server asks again where another webhook changed it."""
    metadata = pod.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    record = annotations.get(TEMPLATES_ANNOTATION) if isinstance(annotations, Mapping) else None
    before = pod_record({TEMPLATES_ANNOTATION: record} if isinstance(record, str) else {})
    known = {one.binding for one in before}
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


class AskAdvisor(Protocol):
    """PreferencesOfAdvisor.ask."""

    def __call__(self, pod: Mapping[str, Any], *, dry_run: bool) -> PreferencesBody | None: ...


def asks(
    ask_advisor: AskAdvisor,
    options: AdviceGateOptions,
    is_alive: Callable[[], bool],
    excluded: ExcludedOptions,
    by_policy: ByPolicy = lambda pod: None,
) -> AskOf:
    """Return what asks about pods of the mode `prefer`, while an advisor is alive."""

    def ask_of(request: AdmissionRequest, pod: Mapping[str, Any], labels: Mapping[str, str] | None) -> Ask | None:
        namespace = request.namespace or ""
        mode = asked_mode(pod, namespace, labels, options, excluded, by_policy)
        if mode is not AdviceMode.PREFER or why_not_asked(pod) or not is_alive():
            return None

        def ask(affinity: Mapping[str, Any] | None) -> PreferencesBody | None:
            asked = pod_to_ask_about(request.object, request.uid, namespace, affinity)
            return None if asked is None else ask_advisor(asked, dry_run=bool(request.dry_run))

        return ask

    return ask_of
