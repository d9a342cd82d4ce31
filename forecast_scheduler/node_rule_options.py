"""From settings to the options of the rules about nodes."""

from __future__ import annotations

from forecast_scheduler.node_rule_settings import GroupSettings, NodeRuleSettings
from placement.card_types.options import CardOptions, Even, Protection
from placement.devices.options import DeviceOptions
from placement.machine_groups.options import Borrow, Group, GroupOptions, GroupOwner
from placement.node_rules import NodeRuleOptions
from placement.topology.options import TopologyOptions

__all__ = ["card_options", "device_options", "group_options", "node_rule_options", "topology_options"]


def node_rule_options(settings: NodeRuleSettings) -> NodeRuleOptions:
    """Raises InputError, see CardOptions, DeviceOptions and Group."""
    return NodeRuleOptions(
        device_options(settings), card_options(settings), group_options(settings), topology_options(settings)
    )


def device_options(settings: NodeRuleSettings) -> DeviceOptions:
    """How nodes and pods speak of cards."""
    ours = settings.devices
    return DeviceOptions(
        resources=tuple(ours.resources),
        shared_memory_resource=ours.shared_memory_resource,
        count_resource=ours.count_resource,
        model_labels=tuple(ours.model_labels),
        mixed=ours.mixed,
    )


def card_options(settings: NodeRuleSettings) -> CardOptions:
    """Raises InputError, see CardOptions."""
    ours = settings.cards
    return CardOptions(
        protection=Protection(ours.protection),
        rare_types=tuple(ours.rare_types),
        rare_from=ours.rare_from,
        band=ours.band,
        half_life_seconds=ours.half_life,
        without_cards=Protection(ours.without_cards),
        even=Even(ours.even),
        pressure_band=ours.pressure_band,
    )


def group_options(settings: NodeRuleSettings) -> GroupOptions:
    """Raises InputError, see Group."""
    return GroupOptions(tuple(map(_group, settings.machine_groups)))


def _group(one: GroupSettings) -> Group:
    return Group(
        name=one.name,
        owners=tuple(GroupOwner(tuple(owner.namespaces), owner.labels) for owner in one.owners),
        only=one.only,
        implied=one.implied,
        borrow=Borrow(one.borrow),
        borrow_below=one.borrow_below,
        keep_free=one.keep_free,
    )


def topology_options(settings: NodeRuleSettings) -> TopologyOptions:
    """How close together."""
    ours = settings.topology
    return TopologyOptions(gangs=ours.gangs, node_topologies=ours.node_topologies, settle_seconds=ours.settle)
