"""Which pods are alike, so that one is as good as another for a node, and copies of them that sit elsewhere.

Replicas of a service differ in UID, name and age only. What is found out about one of them holds for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from itertools import repeat
from operator import attrgetter
from typing import Any, Final

from kube.objects.bulk_records import bulk_records
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo

_OWN: Final = ("uid", "name", "created")
_FIELDS: Final = tuple(field.name for field in fields(PodInfo))
_SHARED: Final = tuple(name for name in _FIELDS if name not in (*_OWN, "node"))

shape_of: Final[Callable[[PodInfo], tuple[Any, ...]]] = attrgetter("node", *_SHARED)
"""All of a pod but its UID, name and age. For comparing, not for hashing."""

IDENTITY_LABELS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-uid",
        "job-name",
        "statefulset.kubernetes.io/pod-name",
    }
)
"""Labels by which controllers distinguish their pods
(https://kubernetes.io/docs/reference/labels-annotations-taints/).
"""

_but_for_identity: Final[Callable[[PodInfo], tuple[Any, ...]]] = attrgetter(
    *(name for name in _SHARED if name not in ("labels", "owner", "owner_uid"))
)

_everything: Final[Callable[[PodInfo], tuple[Any, ...]]] = attrgetter(*_FIELDS)
_setters: Final[list[Callable[[PodInfo, object], None]]] = [getattr(PodInfo, name).__set__ for name in _FIELDS]
_set_node: Final[Callable[[PodInfo, str], None]] = _setters[_FIELDS.index("node")]


def is_like(a: PodInfo, b: PodInfo) -> bool:
    """Whether two pods that wait are equal in everything but UID, name and age."""
    # Decoded pods of a service share their pieces, and tuples compare identities first.
    return waits(a) and waits(b) and bool(shape_of(a) == shape_of(b))


def is_like_but_for_identity(a: PodInfo, b: PodInfo) -> bool:
    """Return whether two waiting pods differ only in what identifies them.

    That is UID, name and age, the labels by which controllers distinguish their pods, and of pods of Jobs the Job.
    """
    if not (waits(a) and waits(b)) or _but_for_identity(a) != _but_for_identity(b) or a.owner.kind != b.owner.kind:
        return False
    if a.owner_uid != b.owner_uid and a.owner.kind != "Job":
        return False
    return a.labels == b.labels or _without_identity(a.labels) == _without_identity(b.labels)


def _without_identity(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key not in IDENTITY_LABELS}


def on_node(pod: PodInfo, node: str) -> PodInfo:
    """The pod bound to a node; '' = to none. A third of the cost of dataclasses.replace (bulk_records.py says why)."""
    moved = object.__new__(PodInfo)
    for put, value in zip(_setters, _everything(pod), strict=True):
        put(moved, value)
    _set_node(moved, node)
    return moved


def on_nodes(like: PodInfo, pods: Sequence[PodInfo], nodes: Sequence[str]) -> list[PodInfo]:
    """Alike pods, each bound to its node; all that they have in common is taken from `like`."""
    shared = {name: repeat(getattr(like, name)) for name in _SHARED}
    own = {name: map(attrgetter(name), pods) for name in _OWN}
    return bulk_records(PodInfo, len(pods), node=nodes, **shared, **own)
