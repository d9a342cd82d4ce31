"""What matters of a PodGroup: what it asks for, how close together its members are to be, what its status says; and
what a filter asks about gangs.

A domain is the nodes that have the same value of a label: a node by kubernetes.io/hostname, a rack, a zone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Protocol

from msgspec import Struct

from base.errors import InputError
from kube.decoding.stored_templates import StoredCondition
from kube.objects.labels import is_qualified_name
from kube.objects.objects import ANNOTATION_PREFIX, PodInfo
from placement.pod_groups.group_apis import OURS, GroupApi, group_key
from placement.pod_groups.minima import Minima

TOPOLOGY_PREFERRED: Final = f"{ANNOTATION_PREFIX}topology-preferred"
TOPOLOGY_REQUIRED: Final = f"{ANNOTATION_PREFIX}topology-required"
MOST_LEVELS: Final = 8


@dataclass(frozen=True, slots=True)
class GroupTopology:
    """Label keys of nodes.

    preferred : levels, from the tightest to the loosest; none = it does not matter
    required  : all members are to be in one domain of it; '' = they need not
    """

    preferred: tuple[str, ...] = ()
    required: str = ""


ANYWHERE: Final = GroupTopology()


def group_topology(annotations: Mapping[str, str]) -> GroupTopology:
    """What a PodGroup's annotations say. Raises InputError that begins with the annotation's key."""
    preferred = _keys(annotations, TOPOLOGY_PREFERRED)
    required = _keys(annotations, TOPOLOGY_REQUIRED)
    if len(preferred) > MOST_LEVELS:
        raise InputError(f"{TOPOLOGY_PREFERRED}: names {len(preferred)} levels, at most {MOST_LEVELS} are allowed")
    if len(required) > 1:
        raise InputError(
            f"{TOPOLOGY_REQUIRED}: must be one label key of nodes, found {len(required)}: name the tightest only"
        )
    return GroupTopology(preferred, required[0] if required else "") if preferred or required else ANYWHERE


def _keys(annotations: Mapping[str, str], annotation: str) -> tuple[str, ...]:
    text = annotations.get(annotation, "")
    keys = tuple(key for key in map(str.strip, text.split(",")) if key)
    for at, key in enumerate(keys):
        if not is_qualified_name(key):
            raise InputError(
                f"{annotation}: must list label keys of nodes such as topology.kubernetes.io/zone, found {key[:60]!r}"
            )
        if key in keys[:at]:
            raise InputError(f"{annotation}: {key} is there twice")
    return keys


class PodGroupStatus(Struct, rename="camel", frozen=True):
    """status as the API server has it. scheduled, conditions: never, where scheduler-plugins' own definition is
    installed, which does not know them."""

    phase: str = ""
    occupied_by: str = ""
    scheduled: int | None = None
    running: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    schedule_start_time: str | None = None
    conditions: tuple[StoredCondition, ...] = ()


class Disruption(Enum):
    """What the loss of members that have a node means to the others.

    BY_MINIMA : nothing until less is left than the group needs, then all go; groups of ours
    SINGLE    : nothing, each may be evicted alone; native groups unless they say `all`
    ALL       : one goes, all go
    """

    BY_MINIMA = auto()
    SINGLE = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True)
class PodGroupInfo:
    """A PodGroup.

    created          : unix seconds
    version          : resourceVersion
    timeout_seconds  : scheduleTimeoutSeconds, None = the scheduler's own
    problem          : why the group is unusable, '' = usable; minima and topology mean nothing then
    topology         : how close together its members are to be
    api              : that it is of
    priority         : that its pods must have; None = whatever they have
    may_preempt      : that its pods must say as well; None = whatever they say
    is_by_annotation : created for the owner of its pods (group_of_pod.py)
    is_basic         : its pods are placed, and make room, one by one, like pods that are in no group
    """

    namespace: str
    name: str
    uid: str
    generation: int
    created: float
    minima: Minima = field(default_factory=Minima)
    timeout_seconds: float | None = None
    problem: str = ""
    status: PodGroupStatus = field(default_factory=PodGroupStatus)
    version: str = ""
    topology: GroupTopology = ANYWHERE
    api: GroupApi = OURS
    disruption: Disruption = Disruption.BY_MINIMA
    priority: int | None = None
    may_preempt: bool | None = None
    is_by_annotation: bool = False
    is_basic: bool = False

    @property
    def key(self) -> str:
        """As of `group_of` a pod."""
        return group_key(self.namespace, self.name, self.api)

    def says_the_same(self, other: PodGroupInfo | None) -> bool:
        """Whether it is the same object that asks for the same; the status may differ."""
        return (
            other is not None
            and (self.key, self.uid, self.problem) == (other.key, other.uid, other.problem)
            and (self.minima, self.timeout_seconds) == (other.minima, other.timeout_seconds)
            and (self.topology, self.disruption) == (other.topology, other.disruption)
            and (self.priority, self.may_preempt, self.is_basic) == (other.priority, other.may_preempt, other.is_basic)
        )


class GangLookup(Protocol):
    """Gangs by the key of their PodGroup, namespace/name. All methods are for the thread that places pods."""

    def group_of(self, pod: PodInfo) -> str | None:
        """Return the gang of a pod, None for a pod without one."""

    def topology(self, group: str) -> GroupTopology:
        """Return how close together the members are to be."""

    def sitting(self, group: str) -> Sequence[PodInfo]:
        """Return the members that have a node."""

    def waiting(self, group: str) -> Sequence[PodInfo]:
        """Return the members that wait for a node."""

    def in_placing_order(self, group: str, pods: Sequence[PodInfo]) -> list[int]:
        """Return positions in `pods`, the first to place first."""

    def shortfall(self, group: str, placed: Sequence[PodInfo]) -> str:
        """Return what the gang lacks if only `placed` join its sitting members; empty if its minima are met."""
