"""The scheduling cycle of one unit: from popped pods to decisions, in memory, under the lock of the tables.

1. pods that are gone, bound or assumed already are left out
2. like pods go through filters and scores together and are assumed one after the other (placing.py)
3. a gang whose minima are not met by then is taken back as a whole: it never holds a part
4. Reserve plugins are called; one that refuses releases the pod's node
5. pods without a node ask the PostFilter plugins how room can be made, a gang as a whole

Source: schedulingCycle in pkg/scheduler/schedule_one.go of Kubernetes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, Protocol

from cluster.assuming_cluster import AssumingCluster
from kube.objects.counted_pods import waits
from kube.objects.objects import PodInfo
from placement.feasibility import FilterVerdict
from placement.filters.filter import ClusterView, Filter
from placement.guarded_plugin import PluginFailed
from placement.plugins import Nomination
from placement.status import SUCCESS, Code, Status
from scheduler.cycle.cycle_times import CycleTimes, Point
from scheduler.cycle.decisions import Decisions, Rejected
from scheduler.cycle.gang_tables import CycleTables
from scheduler.cycle.like_pods import Likeness
from scheduler.cycle.placing import UnitPlacer
from scheduler.cycle.reserve import reserved, unreserve
from scheduler.preemption.gang_plan import GangPlan
from scheduler.preemption.gang_search import GangPostFilter, GangRequest, only_requests_matter
from scheduler.profile import SchedulingProfile
from scheduler.queue.queued_pods import Popped, QueuedPodInfo

logger = logging.getLogger(__name__)

_LONGEST_SECONDS: Final = 0.1
"""What a cycle may take before it leaves the rest of its pods to the next: the watch waits for the lock meanwhile."""

_NO_NODES: Final = "NoNodes"

_SOON_SECONDS: Final = 1.0
"""When a gang whose victims are being evicted is looked at again, whatever happens."""

Observe = Callable[[str, float], None]


class GangRules(Protocol):
    """What the cycle asks about gangs: scheduler.gangs.directory.GangDirectory."""

    def in_placing_order(self, group: str, pods: Sequence[PodInfo]) -> list[int]:
        """Positions, those that fill minima first."""

    def shortfall(self, group: str, placed: Sequence[PodInfo]) -> str:
        """'' = the minima are met."""

    def scheduled(self, group: str, n: int) -> None:
        """Members have got a node."""

    def attempt_failed(self, group: str, message: str, diagnosis: str = "", *, makes_room: bool = False) -> None:
        """The group was taken back. makes_room: victims go for it."""


class SchedulingCycle:
    """For the one thread that schedules."""

    def __init__(
        self,
        view: ClusterView,
        cluster: AssumingCluster,
        profiles: Mapping[str, SchedulingProfile],
        gangs: GangRules | None,
        *,
        preempt: Callable[[Sequence[tuple[PodInfo, Nomination]]], bool] = lambda seats: False,
        withdraw: Callable[[PodInfo], object] = lambda pod: None,
        observe: Observe = lambda stage, seconds: None,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """
        profiles : by scheduler name
        preempt  : begins to make room for a pod, or for the members of a gang, and does not wait for it. They are
                   nominated on return, so that the next one reckons with it; False = it cannot
        withdraw : ends a nomination that is of no use any more
        """
        self._view, self._cluster, self._profiles, self._gangs = view, cluster, profiles, gangs
        self._preempt, self._withdraw = preempt, withdraw
        self._observe, self._stopwatch = observe, stopwatch
        self._likeness = Likeness(view, profiles)
        self._makes_room, self._times = True, CycleTimes()

    def run(self, popped: Popped, placer: UnitPlacer, *, makes_room: bool = True) -> Decisions:
        """Decide about a unit. makes_room: pods without a node may have others evicted."""
        self._makes_room, self._times = makes_room, placer.times
        decisions = Decisions()
        pods = []
        for queued in popped.pods:
            known = self._cluster.state.pods.get(queued.pod.uid)
            if known is None or not waits(known) or known.terminating or queued.pod.uid in self._cluster.assumed:
                decisions.gone.append(queued.pod.uid)
            else:
                pods.append(queued)
        if popped.is_gang and self._gangs is not None:
            with self._guarded(pods, decisions):
                self._place_gang(popped.key, pods, placer, decisions, self._gangs)
        else:
            self._place_each(pods, placer, decisions)
        return decisions

    def take_back(self, decisions: Decisions) -> None:
        """Undo what a decision placed: it was a plan."""
        row_of = self._view.state.row_of
        for queued, node in decisions.placed:
            self._give_back(queued.pod, row_of[node])

    @contextmanager
    def _guarded(self, pods: Sequence[QueuedPodInfo], decisions: Decisions) -> Iterator[None]:
        """A plugin that raises fails these pods, and nothing of theirs stays behind."""
        before = len(decisions.placed), len(decisions.rejected), len(decisions.unfinished)
        try:
            yield
        except Exception as error:
            message = str(error)
            if not isinstance(error, PluginFailed):  # that is logged where it was called
                logger.exception("pods could not be placed", extra={"pod": pods[0].pod.name, "like_it": len(pods)})
                message = f"placing the pod failed ({type(error).__name__}: {error}): the log says more"
            del decisions.placed[before[0] :], decisions.rejected[before[1] :], decisions.unfinished[before[2] :]
            for queued in pods:
                seat = self._cluster.state.seat_of.get(queued.pod.uid)
                if seat is not None and queued.pod.uid in self._cluster.assumed:
                    self._give_back(queued.pod, seat.node)
            decisions.rejected.append(Rejected(pods, frozenset(), message))

    # Single pods

    def _place_each(self, pods: Sequence[QueuedPodInfo], placer: UnitPlacer, decisions: Decisions) -> None:
        began = self._stopwatch()
        pods = self._likeness.grouped(pods)
        for run in self._likeness.runs([queued.pod for queued in pods]):
            if self._stopwatch() - began > _LONGEST_SECONDS:
                decisions.unfinished += pods[run]
                continue
            of_run = pods[run]
            with self._guarded(of_run, decisions):
                profile = self._profiles[of_run[0].pod.scheduler_name]
                filters, rows, why_not = self._place_run(of_run, placer)
                self._reserve(list(zip(of_run, rows, strict=False)), profile, decisions)
                if why_not is not None:
                    self._post_filter(of_run[len(rows) :], profile, filters, why_not, began, decisions)

    def _place_run(
        self, pods: Sequence[QueuedPodInfo], placer: UnitPlacer
    ) -> tuple[tuple[Filter, ...], Sequence[int], FilterVerdict | None]:
        """Filters, rows of the pods that got one, and why the next one did not."""
        pod = pods[0].pod
        profile = self._profiles[pod.scheduler_name]
        policy = profile.policies.choose(pod).policy
        filters = profile.filters_for(policy)
        placer.use(profile)
        placed = placer.place([queued.pod for queued in pods], filters, policy)
        for _ in placed.rows:
            profile.policies.count(policy.name)
        return filters, placed.rows, placed.why_not

    def _post_filter(
        self,
        pods: Sequence[QueuedPodInfo],
        profile: SchedulingProfile,
        filters: Sequence[Filter],
        why_not: FilterVerdict,
        began: float,
        decisions: Decisions,
    ) -> None:
        """Pods without a node: how room can be made for one after the other."""
        by = _rejected_by(why_not)
        feasibility = why_not.feasibility(self._view)
        summary = str(feasibility)
        rejections = [rejection for _, rejection in why_not.rejections]
        entered = self._stopwatch()
        plugins = profile.post_filters if self._makes_room else ()
        for at, queued in enumerate(pods):
            if at and plugins and self._stopwatch() - began > _LONGEST_SECONDS:
                decisions.unfinished += pods[at:]
                break
            answer: Nomination | Status = SUCCESS
            decisions.looked_for_victims += bool(plugins)
            for plugin in plugins:
                try:
                    with self._times.of(Point.POST_FILTER, plugin.name):
                        answer = plugin.post_filter(queued.pod, self._view, filters, rejections)
                except Exception:
                    logger.exception("a PostFilter plugin failed", extra={"pod": queued.pod.name})
                    answer = Status(Code.ERROR, plugin.name, f"plugin {plugin.name} failed: the log says why")
                if isinstance(answer, Nomination):
                    break
            if isinstance(answer, Nomination):
                begun = self._preempt([(queued.pod, answer)])
                will = "make room" if begun else "could make room"
                message = f"{summary}. preemption: {len(answer.victims)} pod(s) {will} on {answer.node}."
                decisions.rejected.append(Rejected([queued], by | {plugin.name}, message))
                continue
            asked = by | ({answer.plugin} if answer.plugin else frozenset())
            # What is about the pod alone says enough: that no victim would help follows from it.
            message = f"{summary}. {answer.reason}" if answer.reason and not feasibility.sentence else summary
            if answer.code is Code.UNRESOLVABLE:
                self._withdraw_all(pods[at:])
            if answer.code is Code.UNRESOLVABLE or not plugins:
                # What does not help one does not help another like it.
                decisions.rejected.append(Rejected(pods[at:], asked, message, answer.wait_seconds))
                break
            decisions.rejected.append(Rejected([queued], asked, message, answer.wait_seconds))
        self._looked_for_room(self._stopwatch() - entered)

    def _looked_for_room(self, seconds: float) -> None:
        self._observe("post_filter", seconds)
        self._times.points[Point.POST_FILTER] += seconds

    # Gangs

    def _place_gang(
        self, group: str, pods: Sequence[QueuedPodInfo], placer: UnitPlacer, decisions: Decisions, gangs: GangRules
    ) -> None:
        plugin = self._gang_post_filter(pods)
        waits = SUCCESS if plugin is None else plugin.waits([queued.pod for queued in pods], self._view)
        if waits.code is Code.WAIT:
            message = f"PodGroup {group} is placed as a whole. {waits.reason}"
            decisions.rejected.append(Rejected(pods, frozenset({waits.plugin}), message, _SOON_SECONDS))
            return
        order = gangs.in_placing_order(group, [queued.pod for queued in pods])
        in_order = [pods[at] for at in order]
        placed: list[tuple[QueuedPodInfo, int]] = []
        left: list[tuple[QueuedPodInfo, FilterVerdict]] = []
        refusals: dict[str, Status] = {}
        for run in self._likeness.runs([queued.pod for queued in in_order]):
            of_run = in_order[run]
            while of_run:
                # Members that share a claim one by one: what is reserved counts for those that follow.
                at_once = of_run[:1] if of_run[0].pod.volumes else of_run
                _, rows, why_not = self._place_run(at_once, placer)
                of_them = list(zip(at_once, rows, strict=False))
                refused = self._reserve_members(of_them)
                for queued, row in of_them:
                    if queued.pod.uid in refused:
                        self._give_back(queued.pod, row)  # as do members that are assumed
                refusals |= refused
                placed += of_them
                of_run = of_run[len(rows) :]
                if why_not is not None:
                    left += [(queued, why_not) for queued in of_run]
                    break
        seated = [queued.pod for queued, _ in placed if queued.pod.uid not in refusals]
        lacking = gangs.shortfall(group, seated)
        if lacking and in_order:
            by, why = self._reasons_of(left, refusals)
            answer: GangPlan | Status = waits
            if plugin is not None and waits.is_success and left and not refusals:
                decisions.looked_for_victims += 1
                answer = self._room_for_gang(group, plugin, placed, left, placer, gangs)
            for queued, row in placed:
                self._give_back(queued.pod, row)
            message = f"{lacking} fit: {why}" if why else f"{lacking} fit"
            rejected = self._without_room(in_order, by, message, plugin, answer)
            makes_room = plugin is not None and rejected.by == {plugin.name}
            gangs.attempt_failed(group, rejected.message if makes_room else message, makes_room=makes_room)
            message = f"PodGroup {group} is placed as a whole or not at all: {rejected.message}"
            decisions.rejected.append(replace(rejected, message=message))
            return
        names = self._view.state.names
        for queued, row in placed:
            refusal = refusals.get(queued.pod.uid)
            if refusal is None:
                decisions.placed.append((queued, names[row]))
            else:
                decisions.rejected.append(_refused(queued, refusal))
        gangs.scheduled(group, len(seated))
        for queued, why_not in left:
            if queued.pod.nominated_node:
                self._withdraw(queued.pod)  # the gang has what it needs without it
            by, why = self._reasons_of([(queued, why_not)], {})
            decisions.rejected.append(Rejected([queued], by, why))

    def _gang_post_filter(self, pods: Sequence[QueuedPodInfo]) -> GangPostFilter | None:
        """What makes room for a gang; by its first member."""
        plugins = self._profiles[pods[0].pod.scheduler_name].post_filters if pods and self._makes_room else ()
        return next((one for one in plugins if isinstance(one, GangPostFilter)), None)

    def _room_for_gang(
        self,
        group: str,
        plugin: GangPostFilter,
        placed: Sequence[tuple[QueuedPodInfo, int]],
        left: Sequence[tuple[QueuedPodInfo, FilterVerdict]],
        placer: UnitPlacer,
        gangs: GangRules,
    ) -> GangPlan | Status:
        """How room can be made for the rest. placed: members that have their nodes in the tables."""
        entered = self._stopwatch()
        tables = CycleTables(self._view, self._cluster, self._profiles, placer)
        wish = GangRequest(
            members=[queued.pod for queued, _ in left],
            placed=[(queued.pod, row) for queued, row in placed],
            is_enough=lambda members: not gangs.shortfall(group, members),
            is_simple=only_requests_matter([(queued.pod, why_not) for queued, why_not in left]),
            domains=() if placed else tables.domains(left[0][0].pod),
        )
        try:
            with self._times.of(Point.POST_FILTER, plugin.name):
                return plugin.post_filter_gang(wish, self._view, tables)
        except Exception:
            logger.exception("a PostFilter plugin failed", extra={"group": group})
            return Status(Code.ERROR, plugin.name, f"plugin {plugin.name} failed: the log says why")
        finally:
            self._looked_for_room(self._stopwatch() - entered)

    def _without_room(
        self,
        pods: Sequence[QueuedPodInfo],
        by: frozenset[str],
        message: str,
        plugin: GangPostFilter | None,
        answer: GangPlan | Status,
    ) -> Rejected:
        """A gang that did not fit. By the plugin alone if victims go for it: it waits for these."""
        if plugin is None or answer is SUCCESS:
            return Rejected(pods, by, message)
        if isinstance(answer, GangPlan):
            begun = self._preempt(answer.seats)
            will = "make room" if begun else "could make room"
            seated = {pod.uid for pod, _ in answer.seats}
            self._withdraw_all(queued for queued in pods if queued.pod.uid not in seated)
            nodes = len({there.node for _, there in answer.seats if there.victims})
            message = f"{message}. preemption: {answer.n_victims} pod(s) {will} on {nodes} node(s)."
            return Rejected(pods, frozenset({plugin.name}) if begun else by | {plugin.name}, message)
        if answer.code is Code.UNSCHEDULABLE:
            return Rejected(pods, frozenset({plugin.name}), f"{message}. {answer.reason}")
        self._withdraw_all(pods)
        return Rejected(pods, by | {plugin.name}, f"{message}. {answer.reason}", answer.wait_seconds)

    def _withdraw_all(self, pods: Iterable[QueuedPodInfo]) -> None:
        for queued in pods:
            if queued.pod.nominated_node:
                self._withdraw(queued.pod)

    def _reasons_of(
        self, left: Sequence[tuple[QueuedPodInfo, FilterVerdict]], refusals: Mapping[str, Status]
    ) -> tuple[frozenset[str], str]:
        """Plugins that said no to members, and the words of the first."""
        by = {name for _, why_not in left for name in _rejected_by(why_not)}
        by |= {refusal.plugin for refusal in refusals.values()}
        if left:
            return frozenset(by), str(left[0][1].feasibility(self._view))
        return frozenset(by), next((refusal.reason for refusal in refusals.values()), "")

    def _reserve_members(self, placed: Sequence[tuple[QueuedPodInfo, int]]) -> dict[str, Status]:
        """What Reserve plugins refused, by UID."""
        refusals = {}
        for queued, row in placed:
            profile = self._profiles[queued.pod.scheduler_name]
            with self._times.at(Point.RESERVE):
                status = reserved(queued.pod, self._view.state.names[row], profile, self._times)
            if not status.is_success:
                refusals[queued.pod.uid] = status
        return refusals

    def _give_back(self, pod: PodInfo, row: int) -> None:
        """Undo of assume and Reserve; the latter may be undone twice."""
        unreserve(pod, self._view.state.names[row], self._profiles[pod.scheduler_name])
        self._cluster.forget(pod.uid)

    # Reserve

    def _reserve(
        self, placed: Sequence[tuple[QueuedPodInfo, int]], profile: SchedulingProfile, decisions: Decisions
    ) -> None:
        names, plugins = self._view.state.names, profile.binding.reserve
        for queued, row in placed:
            refusal = SUCCESS
            if plugins:
                with self._times.at(Point.RESERVE):
                    refusal = reserved(queued.pod, names[row], profile, self._times)
            if refusal.is_success:
                decisions.placed.append((queued, names[row]))
            else:
                self._cluster.forget(queued.pod.uid)
                decisions.rejected.append(_refused(queued, refusal))


def _rejected_by(why_not: FilterVerdict) -> frozenset[str]:
    """Return the plugins that rejected nodes; without any node, a name without a queueing hint, so that every event
    helps.
    """
    return frozenset(name for name, _ in why_not.rejections) or frozenset({_NO_NODES})


def _refused(queued: QueuedPodInfo, refusal: Status) -> Rejected:
    by = frozenset() if refusal.code is Code.ERROR else frozenset({refusal.plugin})
    return Rejected([queued], by, refusal.reason)
