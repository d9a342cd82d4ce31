"""Which filters run: those that the settings switch on, or those that a policy names. One way to make them for both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from base.errors import InputError
from kube.objects.objects import PodInfo
from placement.card_types.listed_cards import ListedCards
from placement.filters.catalogue import STANDARD_FILTERS, standard_filters
from placement.filters.domain import Domain
from placement.filters.filter import Filter
from placement.filters.predicted_peak import PredictedPeak
from placement.machine_groups.machine_group import MachineGroup
from placement.machine_groups.membership import Membership
from placement.node_rule_settings import NodeRuleOptions
from placement.policies.mistakes import way_out

FILTER_NAMES: Final = (Domain.name, MachineGroup.name, ListedCards.name, PredictedPeak.name, *STANDARD_FILTERS)
"""All there are: ours in the order in which they run, then kube-scheduler's in its order."""

_FORMER: Final = "RareDevices"


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """
    domain        : of this scheduler, the same for every pod: it says who owns which node
    shared        : further domains, where another scheduler places pods, too
    daemons       : scheduler names whose pods of DaemonSets may be on nodes of every domain
    standard      : filters of kube-scheduler to run, by plugin name
    predicts      : whether the forecast is in this process, which PredictedPeak needs
    rules         : about nodes; without highest_peaks PredictedPeak does not run
    is_offline    : whether a pod without cards may use idle cores of nodes with cards
    plugins       : filters of other packages, which policies may name
    plugins_on    : those of them that run unless a policy names filters
    """

    domain: str = ""
    standard: tuple[str, ...] = ()
    predicts: bool = True
    shared: tuple[str, ...] = ()
    daemons: tuple[str, ...] = ()
    rules: NodeRuleOptions = field(default_factory=NodeRuleOptions)
    is_offline: Callable[[PodInfo], bool] = lambda pod: False
    plugins: Sequence[Filter] = ()
    plugins_on: Sequence[Filter] = ()


def chosen_filters(options: FilterOptions, names: Collection[str] | None = None) -> tuple[Filter, ...]:
    """Filters in the order in which they run. Domain is always the first.

    names : which to run; None = MachineGroup, CardTypes, and all that the options switch on
    Raises InputError: a name that is none, a filter that is named but has nothing to go by, no forecast here.
    """
    if names is None:
        names = _switched_on(options)
    for name in names:
        check_filter(name, options)
    ours: list[Filter] = [Domain(options.domain, options.shared, options.daemons)]
    if MachineGroup.name in names:
        ours.append(MachineGroup(Membership(options.rules.machine_groups)))
    if ListedCards.name in names:
        ours.append(card_rule(options))
    if PredictedPeak.name in names:
        ours.append(_predicted_peak(options))
    of_others = (one for one in options.plugins if one.name in names)
    return (*ours, *standard_filters(name for name in names if name in STANDARD_FILTERS), *of_others)


def check_filter(name: str, options: FilterOptions) -> None:
    """Raises InputError unless there is a filter of this name, ours or of another package."""
    if name == _FORMER:
        raise InputError(f"filter {_FORMER} is {ListedCards.name} now: name that")
    known = (*FILTER_NAMES, *(one.name for one in options.plugins))
    if name not in known:
        raise InputError(f"there is no filter {name!r}: {way_out(name, known)}")


def card_rule(options: FilterOptions) -> ListedCards:
    """What nodes with cards, and rare ones, are to pods, as far as it takes no tables."""
    return ListedCards(options.rules.cards, options.rules.devices, is_offline=options.is_offline)


def _switched_on(options: FilterOptions) -> Sequence[str]:
    ours = [MachineGroup.name, ListedCards.name]
    if options.rules.highest_peaks:
        ours.append(PredictedPeak.name)
    return (*ours, *options.standard, *(one.name for one in options.plugins_on))


def _predicted_peak(options: FilterOptions) -> PredictedPeak:
    if not options.rules.highest_peaks:
        raise InputError("PredictedPeak is named without highest_peaks: add them, for instance {cpu: 0.9}")
    if not options.predicts:
        raise InputError(
            "highest_peaks needs the forecast in this process, extender.scorer.url has it elsewhere: "
            "leave one of them out"
        )
    return PredictedPeak(options.rules.highest_peaks)
