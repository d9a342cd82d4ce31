"""Settings of the rules about nodes: cards and their types, machine groups, topology. One section for every profile of
`schedule` and for `extender`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from forecast.setting_group import Duration, SettingGroup
from placement.devices.options import MODEL_LABELS

__all__ = [
    "CardSettings",
    "GpuDeviceSettings",
    "GroupOwnerSettings",
    "GroupSettings",
    "NodeRuleSettings",
    "TopologySettings",
]

Share = Annotated[float, Field(ge=0, le=1)]


def _off(value: Any) -> Any:
    """YAML 1.1 reads `off`, unquoted, as the truth value false."""
    return "off" if value is False else value


Protect = Annotated[Literal["off", "soft", "hard"], BeforeValidator(_off)]


class GpuDeviceSettings(SettingGroup):
    """How nodes say what cards they have (docs/gpu-devices.md)."""

    resources: list[str] = Field(default_factory=lambda: ["nvidia.com/gpu"], min_length=1)
    """Extended resources that count whole cards."""

    shared_memory_resource: str = "aliyun.com/gpu-mem"
    """Extended resource of the device plugin for shared cards: their memory, summed over a node."""

    count_resource: str = "aliyun.com/gpu-count"
    """Its resource that counts the cards of a node."""

    model_labels: list[str] = Field(default_factory=lambda: list(MODEL_LABELS))
    """Node labels that say the model of its cards; the first that a node has."""

    mixed: bool = True
    """Whole and shared cards on one node: only where whatever hands out whole cards obeys the chosen index."""


class CardSettings(SettingGroup):
    """What is kept for whom among types of cards (docs/card-types.md)."""

    protection: Protect = "soft"
    """Of scarce cards from pods that name no type: less scarce ones come first, or scarce ones are not for them."""

    rare_types: list[str] = Field(default_factory=list)
    """Types that are always the scarcest."""

    rare_from: float = Field(default=0.8, gt=0, le=1)
    """Scarcity from which on a type is rare, with protection: hard."""

    band: float = Field(default=0.8, ge=0.01, le=1)
    """Width of a class of scarcity: types of one class are the same to pods that name none."""

    half_life: Duration = Field(default=21_600, gt=0)
    """After it what was wanted once, and no longer is, counts half."""

    without_cards: Protect = "soft"
    """Of nodes with cards from pods that ask for none: other nodes come first, or these are not for them."""

    even: Literal["off", "named", "all"] = "named"
    """For which pods the pressure of types is kept even: those that name several types, or all."""

    pressure_band: Share = 0.2
    """Differences of pressure that do not matter."""


class GroupOwnerSettings(SettingGroup):
    """Whose pods may name a machine group: of one of the namespaces and with all labels."""

    namespaces: list[str] = Field(default_factory=list)
    """Any of them; empty: all."""

    labels: dict[str, str] = Field(default_factory=dict)
    """All of them."""


class GroupSettings(SettingGroup):
    """A machine group with rules of its own (docs/machine-groups.md)."""

    name: str = Field(min_length=1)
    """Value of the node label forecast-scheduler.io/machine-group."""

    owners: list[GroupOwnerSettings] = Field(default_factory=list)
    """Whose pods may name it; empty: anybody's."""

    only: bool = True
    """Pods that name it go nowhere else; false: to other nodes, too, once it is full."""

    implied: bool = False
    """Pods of its owners that name no group count as if they named it."""

    borrow: Literal["never", "idle"] = "never"
    """Whether pods of others may use what the owners leave free."""

    borrow_below: int = 0
    """Those need a lower priority than this."""

    keep_free: Share = 0
    """Share of the group that is never lent."""


class TopologySettings(SettingGroup):
    """Gangs close together, and cards with fast links (docs/topology.md)."""

    gangs: bool = True
    """Heed the topology annotations of PodGroups."""

    node_topologies: bool = True
    """Read NodeResourceTopology objects, where they are installed."""

    settle: Duration = Field(default=120, ge=0)
    """So long after a pod has started, what its node publishes is taken to include it."""


class NodeRuleSettings(SettingGroup):
    """Which nodes pods may go to and which come first, whatever places them."""

    devices: GpuDeviceSettings = GpuDeviceSettings()
    cards: CardSettings = CardSettings()
    machine_groups: list[GroupSettings] = Field(default_factory=list)
    """Machine groups with owners (docs/machine-groups.md)."""

    topology: TopologySettings = TopologySettings()
