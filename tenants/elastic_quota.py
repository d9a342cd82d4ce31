"""ElasticQuota objects (scheduling.x-k8s.io/v1alpha1), as scheduler-plugins and Koordinator read them.

    spec.min  what the tenant is guaranteed; nothing said of a resource = 0
    spec.max  what it may never pass; nothing said of a resource = no bound

Koordinator's labels make a tree of quotas, its annotation `namespaces` says whose pods count in addition to those of
the quota's own namespace. Sources: pkg/capacityscheduling/elasticquota.go of scheduler-plugins,
apis/extension/elastic_quota.go of Koordinator. What differs from them is in docs/use/tenants.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec import Raw

from base.errors import InputError
from cluster.tables.columns import NODE_KINDS
from forecast.resources import DISK, LOG, NETWORK, RESOURCES
from kube.decoding.watched_kinds import Watched
from kube.decoding.wire_base import NOTHING, Amounts, Name, StringMap, Text, Wire
from kube.objects.objects import ANNOTATION_PREFIX
from kube.objects.quantity import parse_quantity

_KOORDINATOR: Final = "quota.scheduling.koordinator.sh/"
PARENT_LABEL: Final = _KOORDINATOR + "parent"
LENDS_LABEL: Final = _KOORDINATOR + "allow-lent-resource"
NAMESPACES_ANNOTATION: Final = _KOORDINATOR + "namespaces"
QUOTA_LABEL: Final = _KOORDINATOR + "name"
"""Label of a pod that names its quota, among those that the pod's namespace may use."""

WEIGHT_ANNOTATION: Final = ANNOTATION_PREFIX + "weight"
ROOT: Final = "koordinator-root-quota"

RATES: Final = {ANNOTATION_PREFIX + RESOURCES[r].name: r for r in (DISK, NETWORK, LOG)}
"""Position in forecast.resources.RESOURCES by the name in a quota."""

COMMON: Final = frozenset((*NODE_KINDS, *RATES))
"""Resources that count first, if quotas name more than can be counted."""

MOST_RESOURCES_OF_ONE: Final = 32
"""Of min, and of max: as the schema in deploy/crds has it. Each costs time in every decision about any tenant."""

_MOST_NAMESPACES: Final = 256
_LARGEST_WEIGHT: Final = 1e6
_LONGEST_PROBLEM: Final = 1024


@dataclass(frozen=True, slots=True)
class ElasticQuota:
    """One object.

    parent     : name of the quota above it, '' = none
    guaranteed : spec.min, by resource name in base units, 0 or more
    most       : spec.max, the same; a resource that is missing has no bound
    lends      : whether others may use what is idle of `guaranteed`
    weight     : relative share of what is lent, above 0
    namespaces : whose pods count here, in addition to those of its own
    problem    : what of it cannot be read and counts as not said; '' = nothing
    """

    namespace: str
    name: str
    parent: str = ""
    guaranteed: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    lends: bool = True
    weight: float = 1.0
    namespaces: tuple[str, ...] = ()
    problem: str = ""

    @property
    def key(self) -> str:
        """Return the name under which quotas are kept and reported: `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class _MetadataJson(Wire):
    name: Name
    namespace: Name = "default"
    resource_version: Text = ""
    labels: StringMap | None = None
    annotations: StringMap | None = None


class _SpecJson(Wire):
    min: Amounts | None = None
    max: Amounts | None = None


class _QuotaJson(Wire):
    metadata: _MetadataJson
    spec: _SpecJson | None = None
    status: Raw = NOTHING


_DECODER: Final = msgspec.json.Decoder(_QuotaJson)
_NAMES: Final = msgspec.json.Decoder(list[Name])


def _decode(body: bytes | Raw) -> tuple[ElasticQuota, str]:
    json = _DECODER.decode(body)
    metadata, spec = json.metadata, json.spec or _SpecJson()
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    problems: list[str] = []
    parent = labels.get(PARENT_LABEL) or ""
    quota = ElasticQuota(
        namespace=metadata.namespace,
        name=metadata.name,
        parent="" if parent == ROOT else parent,
        guaranteed=_amounts(spec.min or {}, "min", problems),
        most=_amounts(spec.max or {}, "max", problems),
        lends=labels.get(LENDS_LABEL) != "false",
        weight=_weight(annotations.get(WEIGHT_ANNOTATION), problems),
        namespaces=_namespaces(annotations.get(NAMESPACES_ANNOTATION), problems),
        problem="; ".join(problems)[:_LONGEST_PROBLEM],
    )
    return quota, metadata.resource_version


def _amounts(said: Mapping[str, str | int | float], where: str, problems: list[str]) -> Mapping[str, float]:
    amounts: dict[str, float] = {}
    names = sorted(said, key=lambda name: (name not in COMMON, name))
    if len(names) > MOST_RESOURCES_OF_ONE:
        problems.append(
            f"spec.{where} names {len(names)} resources, {MOST_RESOURCES_OF_ONE} are allowed: "
            f"{first_few(names[MOST_RESOURCES_OF_ONE:])} not counted"
        )
    for resource, text in ((name, said[name]) for name in names[:MOST_RESOURCES_OF_ONE]):
        try:
            amount = parse_quantity(text)
        except InputError as error:
            problems.append(f"spec.{where}.{resource}: {error}")
            continue
        if amount < 0:
            problems.append(f"spec.{where}.{resource} is {text}: it must be 0 or more")
            continue
        amounts[resource] = amount
    return amounts


def first_few(names: Sequence[str], most: int = 3) -> str:
    """Return the first of many names, for a sentence."""
    further = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + further


def _weight(text: str | None, problems: list[str]) -> float:
    if text is None:
        return 1.0
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if 0 < weight <= _LARGEST_WEIGHT:
        return weight
    problems.append(f"annotation {WEIGHT_ANNOTATION} is {text[:40]!r}: write a number above 0, such as 2")
    return 1.0


def _namespaces(text: str | None, problems: list[str]) -> tuple[str, ...]:
    if not text:
        return ()
    try:
        found = tuple(_NAMES.decode(text))
        if len(found) > _MOST_NAMESPACES:
            further = f"the first {_MOST_NAMESPACES} of {len(found)} namespaces count"
            problems.append(f"annotation {NAMESPACES_ANNOTATION} is too long: {further}")
        return found[:_MOST_NAMESPACES]
    except msgspec.DecodeError:
        problems.append(f'annotation {NAMESPACES_ANNOTATION} cannot be read: write a list such as ["search", "ads"]')
        return ()


WATCHED_QUOTAS: Final[Watched[ElasticQuota]] = Watched(
    "elasticquotas", "ElasticQuota", "/apis/scheduling.x-k8s.io/v1alpha1/elasticquotas", _decode, optional=True
)
"""Needs get, list and watch on elasticquotas.scheduling.x-k8s.io."""
