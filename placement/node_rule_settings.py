"""Settings of the rules about nodes: `node_rules` with its sections `devices`, `cards`, `machine_groups` and
`topology`. One for every profile of `schedule` and for `extender`.

Groups that are not listed are for any pod that names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, model_validator

from base.setting_group import Off, SettingGroup, check_names
from kube.objects.labels import is_qualified_name
from kube.objects.pod_shape import IDENTITY_LABELS
from placement.card_names import TYPE_LABELS

MODEL_LABELS: Final = (
    *TYPE_LABELS,
    "aliyun.accelerator/nvidia_name",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
)
"""Those of the two labellers, then of Alibaba Cloud, Google and Karpenter."""


class TopologyOptions(SettingGroup):
    """Gangs close together, and cards with fast links (docs/use/topology.md)."""

    gangs: bool = True
    """Heed the topology annotations of PodGroups."""

    node_topologies: bool = True
    """Read NodeResourceTopology objects, if they are installed."""

    settle: ClassVar[float] = 120.0
    """Seconds after the start of a pod from which what its node publishes is taken to include the pod, even if nothing
    was published since. Twice as long as exporters wait at most by default."""


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


class MachineGroupOptions(SettingGroup):
    """A machine group with rules of its own (docs/use/node-rules.md)."""

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
    """Pods that borrow need a lower priority than this. Owners take back by preemption what was lent."""

    keep_free: float = Field(default=0, ge=0, le=1)
    """Share of the group that is never lent: of its devices, its CPU and what else a pod requests."""

    @model_validator(mode="after")
    def _can_be_named(self) -> Self:
        if not self.name or "," in self.name or self.name != self.name.strip():
            raise ValueError(f"{self.name!r} cannot name a machine group: use the value of the nodes' label, no commas")
        if self.implied and not self.owners:
            raise ValueError(f"machine group {self.name!r} is implied and has no owners: say whose pods it is for")
        return self


class Protection(Enum):
    """What nodes are kept for whom by."""

    OFF = "off"
    SOFT = "soft"  # other nodes come first
    HARD = "hard"  # the nodes are not for others


class Even(Enum):
    """Among which types the pressure is kept even."""

    OFF = "off"
    NAMED = "named"  # those that a pod names, if it names several
    ALL = "all"  # also, for pods that name none, all that are equally scarce


class CardOptions(SettingGroup):
    """What is kept for whom among types of cards (docs/use/gpu.md)."""

    protection: Annotated[Protection, Off] = Protection.SOFT
    """Protection of scarce cards from pods that name no type. soft: other cards come first. hard: such pods get no
    scarce cards."""

    rare_types: tuple[str, ...] = ()
    """Types that are always the scarcest, whatever the cluster says."""

    without_cards: Annotated[Protection, Off] = Protection.SOFT
    """Protection of nodes with cards from pods that ask for none. off: none. soft: they come last. hard: such pods do
    not go there."""

    even: Annotated[Even, Off] = Even.NAMED
    """Pods for which the pressure of types is kept even: none, those that name several types, or all."""

    rare_from: ClassVar[float] = 0.8
    """Scarcity from which on a type is rare, with `protection: hard`."""

    band: ClassVar[float] = 0.8
    """Width of a class of scarcity: types of one class are the same to pods that name none. Wide, so that there are two
    classes: among few nodes fragmentation has little choice."""

    half_life: ClassVar[float] = 21_600.0
    """Seconds after which what was wanted once, and no longer is, counts half."""

    pressure_band: ClassVar[float] = 0.2
    """Difference of pressure that does not matter: share of its supply by which one type may be wanted more than
    another before the other one comes first."""


class DeviceOptions(SettingGroup):
    """How nodes say what cards they have (docs/use/gpu.md)."""

    resources: tuple[str, ...] = Field(default=("nvidia.com/gpu",), min_length=1)
    """Extended resources that count whole cards. If a node offers several of them, they are taken for the same
    cards."""

    shared_memory_resource: str = "aliyun.com/gpu-mem"
    """Extended resource that counts the memory of shared cards, in units of the plugin. Empty: not used."""

    count_resource: str = "aliyun.com/gpu-count"
    """Extended resource of that plugin that counts the cards with that memory. Empty: not used."""

    model_labels: tuple[str, ...] = MODEL_LABELS
    """Node labels that say the model of its cards; the first that a node has counts."""

    mixed: bool = True
    """Allow whole and shared cards on one node. Needs a plugin for whole cards that obeys the index: NVIDIA's does
    not."""

    @model_validator(mode="after")
    def _can_be_told_apart(self) -> Self:
        named = [*self.resources, *filter(None, (self.shared_memory_resource, self.count_resource))]
        for name in named:
            if "/" not in name or not is_qualified_name(name):
                raise ValueError(
                    f"{name!r} cannot be a resource of devices: extended resources have a domain, as nvidia.com/gpu has"
                )
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            raise ValueError(f"resource {twice[0]!r} is given twice: name each once, as a whole card, memory or number")
        return self


class NodeRuleOptions(SettingGroup):
    """Which nodes pods may go to and which come first, whatever places them (docs/use/node-rules.md)."""

    devices: DeviceOptions = Field(default_factory=DeviceOptions)
    cards: CardOptions = Field(default_factory=CardOptions)
    machine_groups: tuple[MachineGroupOptions, ...] = ()
    """Machine groups with owners (docs/use/node-rules.md)."""

    topology: TopologyOptions = Field(default_factory=TopologyOptions)

    highest_peaks: dict[str, Annotated[float, Field(gt=0, le=10)]] = Field(default_factory=dict)
    """By resource: share of capacity that a node's predicted peak must not pass with the pod, for instance
    {cpu: 0.9}."""

    @model_validator(mode="after")
    def _groups_with_names(self) -> Self:
        check_names("machine group", [one.name for one in self.machine_groups])
        return self
