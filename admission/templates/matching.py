"""Which bindings mean a pod? Found by one thing that a pod must have: a label, an annotation, an owner, a namespace.

Of 1,000 bindings a pod then meets the few that could mean it, and only those are looked at closely.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from admission.templates.template_objects import PodConditions
from base.errors import InputError
from forecast.service_key import owner_from_references, service_of_pod
from kube.objects.constraints import LabelSelector, Operator
from kube.objects.labels import selector_matches

T = TypeVar("T")

_MOST_PLACES: Final = 64
"""Conditions that name more values than this are not used for finding."""


@dataclass(frozen=True, slots=True)
class MatchedPod:
    """What conditions ask of a pod.

    namespace_labels      : None = not known
    owner_kind, owner_name : the top owner; '' = a bare pod
    """

    namespace: str
    namespace_labels: Mapping[str, str] | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner_kind: str = ""
    owner_name: str = ""


def pod_facts(metadata: Mapping[str, Any], namespace: str, namespace_labels: Mapping[str, str] | None) -> MatchedPod:
    """From the metadata of a pod as it is sent, whatever that holds."""
    labels = text_map(metadata.get("labels"))
    kind, name = _top_owner(metadata, namespace, labels)
    return MatchedPod(namespace, namespace_labels, labels, text_map(metadata.get("annotations")), kind, name)


def text_map(found: object) -> dict[str, str]:
    """Labels or annotations; a null is an empty text, as in Go, and what is no text is left out."""
    if not isinstance(found, Mapping):
        return {}
    return {k: v or "" for k, v in found.items() if isinstance(k, str) and (v is None or isinstance(v, str))}


def means(conditions: PodConditions, pod: MatchedPod) -> bool:
    """Whether all conditions hold. Without known labels no selector of namespaces holds but the empty one."""
    if conditions.namespaces and pod.namespace not in conditions.namespaces:
        return False
    if (owner := conditions.owner) is not None and (
        owner.kind != pod.owner_kind or (owner.name and owner.name != pod.owner_name)
    ):
        return False
    if any(pod.annotations.get(key) != value for key, value in conditions.annotations.items()):
        return False
    if conditions.selector is not None and not selector_matches(conditions.selector, pod.labels):
        return False
    return conditions.namespace_selector is None or _namespace_matches(conditions.namespace_selector, pod)


class BindingIndex(Generic[T]):
    """Entries by their conditions. Immutable once made."""

    def __init__(self, entries: Iterable[tuple[PodConditions, T]]) -> None:
        """entries: in the order in which they are to be found."""
        self._entries = tuple(entries)
        self._at: dict[Hashable, list[int]] = {}
        self._annotation_keys: set[str] = set()
        for number, (conditions, _) in enumerate(self._entries):
            for place in self._places(conditions):
                self._at.setdefault(place, []).append(number)
                if isinstance(place, tuple) and place[0] == "annotation":
                    self._annotation_keys.add(place[1])

    def meaning(self, pod: MatchedPod) -> list[T]:
        """The entries that mean a pod."""
        at, found = self._at, set[int]()
        for place in self._places_of(pod):
            if (there := at.get(place)) is not None:
                found.update(there)
        return [self._entries[n][1] for n in sorted(found) if means(self._entries[n][0], pod)]

    def _places_of(self, pod: MatchedPod) -> Iterator[Hashable]:
        yield None
        yield ("namespace", pod.namespace)
        yield ("owner", pod.owner_kind)
        yield ("owner", pod.owner_kind, pod.owner_name)
        for key, value in pod.labels.items():
            yield ("label", key, value)
        for key, value in (pod.namespace_labels or {}).items():
            yield ("namespace label", key, value)
        if self._annotation_keys:
            for key, value in pod.annotations.items():
                if key in self._annotation_keys:
                    yield ("annotation", key, value)

    def _places(self, conditions: PodConditions) -> Sequence[Hashable]:
        """Where to find an entry. Of several conditions the one with the fewest entries so far, so that a label that
        all have is not chosen a thousand times."""
        choices = [places for places in _choices(conditions) if len(places) <= _MOST_PLACES]
        if not choices:
            return (None,)
        return min(choices, key=lambda places: max((len(self._at.get(place, ())) for place in places), default=0))


def _choices(conditions: PodConditions) -> Iterator[Sequence[Hashable]]:
    for kind, selector in (("label", conditions.selector), ("namespace label", conditions.namespace_selector)):
        for requirement in selector.requirements if selector else ():
            if requirement.operator is Operator.IN:
                yield [(kind, requirement.key, value) for value in dict.fromkeys(requirement.values)]
    for key, value in conditions.annotations.items():
        yield [("annotation", key, value)]
    if conditions.owner is not None:
        owner = conditions.owner
        yield [("owner", owner.kind, owner.name) if owner.name else ("owner", owner.kind)]
    if conditions.namespaces:
        yield [("namespace", name) for name in dict.fromkeys(conditions.namespaces)]


def _namespace_matches(selector: LabelSelector, pod: MatchedPod) -> bool:
    if pod.namespace_labels is None:
        return not selector.requirements
    return selector_matches(selector, pod.namespace_labels)


def _top_owner(metadata: Mapping[str, Any], namespace: str, labels: Mapping[str, str]) -> tuple[str, str]:
    references = metadata.get("ownerReferences")
    if not isinstance(references, list | tuple):
        return "", ""
    readable = [
        one
        for one in references
        if isinstance(one, Mapping) and isinstance(one.get("kind"), str) and isinstance(one.get("name"), str)
    ]
    owner = owner_from_references(readable)
    if not (owner.kind and owner.name):
        return "", ""
    try:
        # The pod's own name decides of mirror pods alone; one that is being created may have none yet.
        key = service_of_pod(namespace or "default", str(metadata.get("name") or "-"), owner, pod_labels=labels)
    except InputError:
        return "", ""
    return key.kind, key.name
