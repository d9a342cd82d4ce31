"""The tables as a search for victims of a gang changes them: members are assumed and reserved as in the cycle itself,
and taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from base.arrays import Bools
from cluster.assuming_cluster import AssumingCluster
from kube.objects.objects import PodInfo
from placement.feasibility import FilterVerdict
from placement.filters.filter import ClusterView, Filter, PlainFilter, Rejection
from placement.filters.rejections import every_node, found
from placement.what_if import WithoutPods
from scheduler.cycle.placing import UnitPlacer
from scheduler.cycle.reserve import reserved, unreserve
from scheduler.preemption.gang_search import RefusedMember
from scheduler.profile import SchedulingProfile


@dataclass(frozen=True, slots=True)
class _Within(PlainFilter):
    """Filter: these nodes and no others, in place of a filter that knows domains."""

    name: str
    nodes: Bools

    def filter(self, pod: PodInfo, view: ClusterView) -> Sequence[Rejection]:
        """Others are of no use to this attempt."""
        return found(view.state.alive & ~self.nodes, view, "node(s) were in another domain", preemptible=False)


class CycleTables:
    """Implements GangTables, for one attempt."""

    def __init__(
        self,
        view: ClusterView,
        cluster: AssumingCluster,
        profiles: Mapping[str, SchedulingProfile],
        placer: UnitPlacer,
    ) -> None:
        self._view, self._cluster, self._profiles, self._placer = view, cluster, profiles, placer
        self.within: Bools | None = None

    def domains(self, pod: PodInfo) -> Sequence[Bools]:
        """Sets of nodes of which a gang may use one, by the first filter that knows any; empty = all nodes."""
        knowing = (one for one in self.filters_of(pod) if one.knows_domains)
        return next((domains for one in knowing if (domains := one.domains(pod, self._view))), ())

    def filters_of(self, pod: PodInfo) -> Sequence[Filter]:
        """Filters of the pod's profile and policy; with `within`, those that know domains allow these nodes alone."""
        profile = self._profiles[pod.scheduler_name]
        filters = profile.filters_of(pod)
        within = self.within
        if within is None:
            return filters
        return [_Within(one.name, within) if one.knows_domains else one for one in filters]

    def place(self, pod: PodInfo) -> int | RefusedMember:
        """Assume and reserve the pod on the best node; returns its row, or why there is none."""
        profile, filters = self._profiles[pod.scheduler_name], self.filters_of(pod)
        self._placer.use(profile)
        placed = self._placer.place([pod], filters, profile.policies.choose(pod).policy)
        if placed.why_not is not None:
            return RefusedMember(filters, placed.why_not)
        row = placed.rows[0]
        refusal = reserved(pod, self._view.state.names[row], profile)
        if refusal.is_success:
            return row
        self._cluster.forget(pod.uid)
        nowhere = [(refusal.plugin, one) for one in every_node(self._view, refusal.reason)]
        return RefusedMember(filters, FilterVerdict(~self._view.state.alive, tuple(nowhere)))

    def put(self, pod: PodInfo, row: int) -> bool:
        """Assume and reserve the pod on this node; False = a Reserve plugin refuses, and nothing has changed."""
        node = self._view.state.names[row]
        self._cluster.assume(pod, node, self._placer.until)
        if reserved(pod, node, self._profiles[pod.scheduler_name]).is_success:
            return True
        self._cluster.forget(pod.uid)
        return False

    def take_back(self, pod: PodInfo, row: int) -> None:
        """Undo `place` or `put`."""
        unreserve(pod, self._view.state.names[row], self._profiles[pod.scheduler_name])
        self._cluster.forget(pod.uid)

    def fits(self, pod: PodInfo, row: int) -> bool:
        """Whether the pod, which sits there, passes all filters for its node. Its reservations stay."""
        node = self._view.state.names[row]
        self._cluster.forget(pod.uid)
        with WithoutPods(self._view) as free:
            if (room := self._cluster.rooms.owed(pod, node)) is not None:
                free.take(room.uid)  # as it was while the pod had it
            answers = (rejection for one in self.filters_of(pod) for rejection in one.filter(pod, self._view))
            is_fitting = not any(rejection.nodes[row] for rejection in answers)
        self._cluster.assume(pod, node, self._placer.until)
        return is_fitting
