"""Machine groups that have owners; groups that are not listed are anybody's who names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from forecast.errors import InputError
from kube.objects.pod_shape import IDENTITY_LABELS

__all__ = ["Borrow", "Group", "GroupOptions", "GroupOwner"]


class Borrow(Enum):
    """Whether pods of others may use machines of a group."""

    NEVER = "never"
    IDLE = "idle"  # what the owners leave free, as long as these do not want it


@dataclass(frozen=True, slots=True)
class GroupOwner:
    """Pods of these namespaces that have all of these labels; what is not given is not asked.

    Whoever may create pods chooses their labels: namespaces keep people apart, labels only keep order among them.

    Raises InputError.
    """

    namespaces: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.namespaces or self.labels):
            raise InputError("an owner of a machine group has neither namespaces nor labels: name one of them")
        if telling := sorted(IDENTITY_LABELS & self.labels.keys()):
            raise InputError(
                f"an owner of a machine group has the label {telling[0]!r}, by which a controller tells its own pods "
                "apart: choose one that all pods of the owner share"
            )


@dataclass(frozen=True, slots=True)
class Group:
    """One machine group: the nodes with the label MACHINE_GROUP: name.

    owners       : whose pods may name it; none = anybody's
    only         : pods that name it go nowhere else; false = to other nodes, too, once it is full
    implied      : pods of its owners that name no group count as if they named it
    borrow       : whether pods of others may be there
    borrow_below : these need a lower priority than this, which pods of the owners should have at least: who comes back
                   for what was lent gets it by preemption
    keep_free    : share of the group, 0..1, that is never lent: of its devices, its CPU and what else a pod requests

    Raises InputError.
    """

    name: str
    owners: tuple[GroupOwner, ...] = ()
    only: bool = True
    implied: bool = False
    borrow: Borrow = Borrow.NEVER
    borrow_below: int = 0
    keep_free: float = 0.0

    def __post_init__(self) -> None:
        if not self.name or "," in self.name or self.name != self.name.strip():
            raise InputError(f"{self.name!r} cannot name a machine group: use the value of the nodes' label, no commas")
        if not 0 <= self.keep_free <= 1:
            raise InputError(f"keep_free of machine group {self.name!r} is {self.keep_free}: give a share from 0 to 1")
        if self.implied and not self.owners:
            raise InputError(f"machine group {self.name!r} is implied and has no owners: say whose pods it is for")


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """groups: those with rules of their own.

    Raises InputError.
    """

    groups: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        names = [group.name for group in self.groups]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"machine group {twice[0]!r} is given twice: say all of it in one place")
