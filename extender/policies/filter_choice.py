"""Which filters run: those that the settings switch on, or those that a policy names. One way to make them for both."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from extender.card_types.rare_devices import TYPE_LABELS, RareDevices
from extender.filters.catalogue import STANDARD_FILTERS, standard_filters
from extender.filters.domain import Domain
from extender.filters.filter import Filter
from extender.filters.predicted_peak import PredictedPeak
from extender.machine_groups.machine_group import MachineGroup
from extender.machine_groups.membership import Membership
from extender.machine_groups.options import GroupOptions
from extender.policies.mistakes import way_out
from forecast.errors import InputError

__all__ = [
    "FILTER_NAMES",
    "FilterOptions",
    "RareDeviceMode",
    "RareDeviceOptions",
    "avoided_devices",
    "check_filter",
    "chosen_filters",
]

FILTER_NAMES: Final = (Domain.name, MachineGroup.name, RareDevices.name, PredictedPeak.name, *STANDARD_FILTERS)
"""All there are: ours in the order in which they run, then kube-scheduler's in its order."""


class RareDeviceMode(Enum):
    """What rare devices mean to pods that do not ask for them: nothing, a rejection, or fewer points."""

    OFF = "off"
    HARD = "hard"
    SOFT = "soft"


@dataclass(frozen=True, slots=True)
class RareDeviceOptions:
    """See RareDevices. points: so many fewer, in mode SOFT."""

    mode: RareDeviceMode = RareDeviceMode.OFF
    resources: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    type_labels: tuple[str, ...] = TYPE_LABELS
    points: int = 50


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """
    domain        : of this scheduler, the same for every pod: it says who owns which node
    shared        : further domains, where another scheduler places pods, too
    daemons       : scheduler names whose pods of DaemonSets may be on nodes of every domain
    highest_peaks : by resource, see PredictedPeak; none = it does not run
    standard      : filters of kube-scheduler to run, by plugin name
    predicts      : whether the forecast is in this process, which PredictedPeak needs
    groups        : machine groups with owners; the others are anybody's who names them
    """

    domain: str = ""
    rare_devices: RareDeviceOptions = RareDeviceOptions()
    highest_peaks: Mapping[str, float] = field(default_factory=dict)
    standard: tuple[str, ...] = ()
    predicts: bool = True
    shared: tuple[str, ...] = ()
    daemons: tuple[str, ...] = ()
    groups: GroupOptions = field(default_factory=GroupOptions)


def chosen_filters(options: FilterOptions, names: Collection[str] | None = None) -> tuple[Filter, ...]:
    """Filters in the order in which they run. Domain is always the first.

    names : which to run; None = MachineGroup, and all that the options switch on
    Raises InputError: a name that is none, a filter that is named but has nothing to go by, no forecast here.
    """
    if names is None:
        names = _switched_on(options)
    for name in names:
        check_filter(name)
    ours: list[Filter] = [Domain(options.domain, options.shared, options.daemons)]
    if MachineGroup.name in names:
        ours.append(MachineGroup(Membership(options.groups)))
    if RareDevices.name in names:
        if options.rare_devices.mode is RareDeviceMode.OFF:
            raise InputError("RareDevices is named, and rare_devices.mode is off: set it to hard or soft")
        ours.append(_devices(options.rare_devices))
    if PredictedPeak.name in names:
        ours.append(_predicted_peak(options))
    return (*ours, *standard_filters(name for name in names if name in STANDARD_FILTERS))


def check_filter(name: str) -> None:
    """Raises InputError unless there is a filter of this name."""
    if name not in FILTER_NAMES:
        raise InputError(f"there is no filter {name!r}: {way_out(name, FILTER_NAMES)}")


def avoided_devices(options: RareDeviceOptions) -> RareDevices | None:
    """Whose nodes get fewer points; None = nobody's."""
    return _devices(options) if options.mode is RareDeviceMode.SOFT else None


def _switched_on(options: FilterOptions) -> Sequence[str]:
    ours = [MachineGroup.name]
    if options.rare_devices.mode is not RareDeviceMode.OFF:
        ours.append(RareDevices.name)
    if options.highest_peaks:
        ours.append(PredictedPeak.name)
    return (*ours, *options.standard)


def _devices(options: RareDeviceOptions) -> RareDevices:
    return RareDevices(
        options.resources,
        types=options.types,
        type_labels=options.type_labels,
        hard=options.mode is RareDeviceMode.HARD,
    )


def _predicted_peak(options: FilterOptions) -> PredictedPeak:
    if not options.highest_peaks:
        raise InputError("PredictedPeak is named without highest_peaks: add them, for instance {cpu: 0.9}")
    if not options.predicts:
        raise InputError(
            "highest_peaks needs the forecast in this process, extender.scorer.url has it elsewhere: "
            "leave one of them out"
        )
    return PredictedPeak(options.highest_peaks)
