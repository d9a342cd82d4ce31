"""Settings of machine groups that have owners: `node_rules.machine_groups`. Groups that are not listed are for any pod
that names them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Self

from pydantic import Field, model_validator

from base.setting_group import SettingGroup
from kube.objects.pod_shape import IDENTITY_LABELS


class Borrow(Enum):
    """Whether pods of others may use machines of a group."""

    NEVER = "never"
    IDLE = "idle"  # what the owners leave free, as long as these do not want it


class GroupOwner(SettingGroup):
    """Pods of one of the namespaces that have all of the labels. At least one of both is given.

    A user who may create pods chooses their labels: namespaces keep people apart, labels only keep order among them.
    """

    namespaces: tuple[str, ...] = ()
    """Any of them. Empty: all namespaces."""

    labels: Mapping[str, str] = Field(default_factory=dict)
    """All of them. Not labels by which a controller distinguishes its own pods."""

    @model_validator(mode="after")
    def _says_who(self) -> Self:
        if not (self.namespaces or self.labels):
            raise ValueError("an owner of a machine group has neither namespaces nor labels: name one of them")
        if telling := sorted(IDENTITY_LABELS & self.labels.keys()):
            raise ValueError(
                f"an owner of a machine group has the label {telling[0]!r}, by which a controller tells its own pods "
                "apart: choose one that all pods of the owner share"
            )
        return self


class Group(SettingGroup):
    """A machine group with rules of its own (docs/use/machine-groups.md)."""

    name: str
    """Value of the node label forecast-scheduler.io/machine-group, without commas."""

    owners: tuple[GroupOwner, ...] = ()
    """Owners whose pods may name the group. Empty: any pod may."""

    only: bool = True
    """Pods that name the group go nowhere else. If false, they go to other nodes, too, once the group is full."""

    implied: bool = False
    """Pods of the owners that name no group count as if they named this one. Needs `owners`."""

    borrow: Borrow = Borrow.NEVER
    """idle: pods of others may use what the owners leave free."""

    borrow_below: int = 0
    """Pods that borrow need a lower priority than this. Pods of the owners should have at least this priority: they
    take back by preemption what was lent."""

    keep_free: float = Field(default=0, ge=0, le=1)
    """Share of the group that is never lent: of its devices, its CPU and what else a pod requests."""

    @model_validator(mode="after")
    def _can_be_named(self) -> Self:
        if not self.name or "," in self.name or self.name != self.name.strip():
            raise ValueError(f"{self.name!r} cannot name a machine group: use the value of the nodes' label, no commas")
        if self.implied and not self.owners:
            raise ValueError(f"machine group {self.name!r} is implied and has no owners: say whose pods it is for")
        return self
