"""Plugin GangTopology: members of a gang near each other, as the annotations of their PodGroup say
(placement/pod_groups/pod_group.py).

    first member     the tightest level at which some domain holds all that is left of the gang, in the smallest such
                     domain; where none does, the same for the fewest members that can run
    other members    where members sit already, assumed ones included: from the loosest level to the tightest, as long
                     as there is room; else where there is room for the rest

What is required is a filter: no node outside the domain that was chosen, or that members have chosen by sitting there.
Nothing is remembered: after a restart those that sit decide.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from base.arrays import Bools, Ints
from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.devices.device_table import DeviceTable
from placement.filters.filter import ClusterView, Filter, PlainFilter, Rejection
from placement.filters.rejections import every_node, found
from placement.index.node_labels import ABSENT, LabelColumn
from placement.plugins import NodePreference, Preferred
from placement.pod_groups.pod_group import GangLookup
from placement.topology.gang_domains import (
    DomainCapacity,
    FiltersOf,
    MemberKind,
    domain_sums_of,
    held_by_domain,
    kinds_of,
    left_of_nodes,
    rooms_of,
)


class GangTopology(PlainFilter, NodePreference):
    """Filter and NodePreference; for the one thread that schedules.

    chosen : how often the first member of a gang was given a domain, by how tight it is: 1 = the first level named;
             0 = no domain holds the gang
    """

    name = "GangTopology"
    knows_domains = True
    woken_by = frozenset(
        {
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.POD_LEFT,
            EventKind.POD_CHANGED,
            EventKind.GROUP_CHANGED,
            EventKind.UNSCHEDULED_POD_CHANGED,
        }
    )

    def __init__(self, gangs: GangLookup, devices: DeviceTable, filters_of: FiltersOf) -> None:
        """filters_of: all filters of a pod's profile, this one among them or not."""
        self.chosen: Counter[int] = Counter()
        self._gangs, self._devices, self._filters_of = gangs, devices, filters_of

    def domains(self, pod: PodInfo, view: ClusterView) -> Sequence[Bools]:
        """Return the domains of the required level, while no pod of the gang is bound."""
        group = self._gangs.group_of(pod)
        level = "" if group is None else self._gangs.topology(group).required
        if group is None or not level or len(self._seats(group, view)):
            return ()
        column = view.index.labels.column(level)
        there = view.state.alive & (column.values != ABSENT)
        sizes = np.bincount(column.values[there], minlength=len(column.names))
        largest = np.argsort(-sizes, kind="stable")[: int((sizes > 0).sum())]
        return [there & (column.values == domain) for domain in largest.tolist()]

    # Filter

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """For groups that require a level. Evicting pods may help where no domain holds the gang."""
        group = self._gangs.group_of(pod)
        level = "" if group is None else self._gangs.topology(group).required
        if group is None or not level:
            return ()
        column = view.index.labels.column(level)
        lacking = found(column.values == ABSENT, view, f"node(s) didn't have the label {level}", preemptible=False)
        seats = self._seats(group, view)
        if len(seats):
            return (*lacking, *self._beside(group, level, np.unique(column.values[seats]), column, view))
        domain, why_not = self._required(pod, group, level, column, view)
        if domain is None:
            return (*lacking, *found(column.values != ABSENT, view, why_not, preemptible=True))
        others = (column.values != ABSENT) & (column.values != domain)
        reason = f"node(s) were not in {level} {column.names[domain]}, which was chosen for PodGroup {group}"
        return (*lacking, *found(others, view, reason, preemptible=False))

    def _beside(
        self, group: str, level: str, inside: Ints, column: LabelColumn, view: ClusterView
    ) -> Sequence[Rejection]:
        """Members sit in these domains."""
        if len(inside) > 1 or inside[0] == ABSENT:
            return every_node(view, f"node(s) can't bring PodGroup {group} into one {level}: its members sit apart")
        elsewhere = (column.values != ABSENT) & (column.values != inside[0])
        reason = f"node(s) were not in {level} {column.names[inside[0]]}, where PodGroup {group} sits"
        return found(elsewhere, view, reason, preemptible=False)

    def _required(
        self, pod: PodInfo, group: str, level: str, column: LabelColumn, view: ClusterView
    ) -> tuple[int | None, str]:
        """Return the domain for a gang without a bound pod, or why there is none."""
        waiting = self._waiting(group, pod)
        everything = self._held(waiting, column, view)
        if everything.everything.any():
            return _smallest(everything), ""
        needed = self._needed(group, waiting)
        fewest = everything if len(needed) == len(waiting) else self._held(needed, column, view)
        # Of those that are only maybe large enough one is tried all the same: the count may have missed a way.
        enough = fewest.everything if fewest.everything.any() else fewest.maybe & (fewest.size > 0)
        if enough.any():
            return int(np.where(enough, everything.members, -1).argmax()), ""
        most = int(fewest.members.max(initial=0))
        members = f"{len(needed)} members" if len(needed) > 1 else "member"
        return None, (
            f"node(s) were in no {level} with room for the {members} that PodGroup {group} needs "
            f"(at most {most} in one)"
        )

    # NodePreference

    def prefer(self, pod: PodInfo, n_pods: int, view: ClusterView, rows: Ints) -> Preferred:
        group = self._gangs.group_of(pod)
        levels = () if group is None else self._gangs.topology(group).preferred
        if group is None or not levels or len(rows) < 2:
            return Preferred(rows, n_pods)
        columns = [view.index.labels.column(level) for level in levels]
        seats = self._seats(group, view)
        if not len(seats):
            rows = self._holding(pod, group, columns, view, rows)
        room = rooms_of(pod, view, self._others(pod), rows)
        for column in reversed(columns):
            if room.sum() <= n_pods:
                break  # all of it will be full
            kept = _nearest(column, seats, rows, room, n_pods)
            rows, room = rows[kept], room[kept]
        return Preferred(rows, min(n_pods, max(1, int(room.sum()))))

    def tells_apart(self, pod: PodInfo) -> Hashable:
        """Nothing: like pods have the same labels, and so the same group."""
        return None

    def _holding(
        self,
        pod: PodInfo,
        group: str,
        columns: Sequence[LabelColumn],
        view: ClusterView,
        rows: Ints,
    ) -> Ints:
        """Return the rows in the domain chosen for a gang without a bound pod; all rows, if no domain holds it."""
        waiting = self._waiting(group, pod)
        needed = self._needed(group, waiting)
        for members in (waiting,) if len(needed) == len(waiting) else (waiting, needed):
            kinds = kinds_of(members, view, self._others, self._devices, asked=pod, rows=rows)
            for at, column in enumerate(columns):
                held = self._held_of(kinds, column, view)
                if held.everything.any():
                    self.chosen[at + 1] += 1
                    kept: Ints = rows[column.values[rows] == _smallest(held)]
                    return kept
        self.chosen[0] += 1
        return rows

    def ignores_like_pods(self, pod: PodInfo, view: ClusterView) -> bool:
        """Members that land confirm the domain that was chosen for the first."""
        return True

    # The queue

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """Room anywhere may be the room that was missing, and a node may have come into another domain."""
        match event.kind:
            case EventKind.GROUP_CHANGED:
                helps = event.group == self._gangs.group_of(pod)
            case EventKind.UNSCHEDULED_POD_CHANGED:
                helps = event.pod is None or self._gangs.group_of(event.pod) == self._gangs.group_of(pod)
            case _:
                helps = event.kind in self.woken_by
        return Hint.QUEUE if helps else Hint.SKIP

    # Inside

    def _others(self, pod: PodInfo) -> Sequence[Filter]:
        return [one for one in self._filters_of(pod) if one.name != self.name]

    def _seats(self, group: str, view: ClusterView) -> Ints:
        """(n_members,) rows of the members that sit."""
        seat_of = view.state.seat_of
        seats = [seat_of[one.uid].node for one in self._gangs.sitting(group) if one.uid in seat_of]
        return np.array(seats, dtype=np.int64)

    def _waiting(self, group: str, pod: PodInfo) -> list[PodInfo]:
        """In the order in which they are placed."""
        waiting = list(self._gangs.waiting(group))
        if all(one.uid != pod.uid for one in waiting):
            waiting.append(pod)
        return [waiting[at] for at in self._gangs.in_placing_order(group, waiting)]

    def _needed(self, group: str, waiting: Sequence[PodInfo]) -> Sequence[PodInfo]:
        """The first of them without which the minima are not met; all, if they are not met anyhow."""
        n = bisect_left(range(len(waiting)), True, key=lambda n: not self._gangs.shortfall(group, waiting[:n]))
        return waiting[: max(1, n)]

    def _held(self, members: Sequence[PodInfo], column: LabelColumn, view: ClusterView) -> DomainCapacity:
        return self._held_of(kinds_of(members, view, self._others, self._devices), column, view)

    def _held_of(self, kinds: Sequence[MemberKind], column: LabelColumn, view: ClusterView) -> DomainCapacity:
        useful = np.logical_or.reduce([one.room > 0 for one in kinds])
        rows = np.flatnonzero(useful & (column.values != ABSENT))
        nodes = left_of_nodes(view, self._devices, column.values, len(column.names), rows)
        return held_by_domain([one.on(rows) for one in kinds], nodes)


def _smallest(held: DomainCapacity) -> int:
    """Of the domains that hold everything."""
    return int(np.where(held.everything, held.size, np.iinfo(np.int64).max).argmin())


def _nearest(column: LabelColumn, seats: Ints, rows: Ints, room: Ints, n_pods: int) -> Ints:
    """(n_kept,) positions of the rows in the domain that comes first at one level; all, where none has the label.

    That with the most members, of which there is one; else the smallest with room for all n_pods; else the largest, and
    with it the next ones that will be full, too: whichever of them is filled first, it comes to the same.
    """
    domain = column.values[rows]
    having = np.flatnonzero(domain != ABSENT)
    if not len(having) or (len(having) == len(rows) and (domain == domain[0]).all()):
        return np.arange(len(rows))
    n_domains = len(column.names)
    there = np.unique(domain[having])
    of_seats = column.values[seats]
    members = np.bincount(of_seats[of_seats != ABSENT], minlength=n_domains)[there]
    if members.any():
        return np.flatnonzero(domain == there[members.argmax()])
    sums = domain_sums_of(room[having], domain[having], n_domains)[there]
    if (sums >= n_pods).any():
        return np.flatnonzero(domain == there[np.where(sums >= n_pods, sums, np.iinfo(np.int64).max).argmin()])
    largest = np.argsort(-sums, kind="stable")
    n_full = max(1, int((np.cumsum(sums[largest]) <= n_pods).sum()))
    return np.flatnonzero(np.isin(domain, there[largest[:n_full]]))
