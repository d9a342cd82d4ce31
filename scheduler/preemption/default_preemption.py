"""PostFilter "DefaultPreemption": room for a pod that fits nowhere is made at the expense of less important pods.

    eligible?  --no--> the nomination stays: its victims are still going
       |
    search     --nothing helps--> the nomination, if any, ends
       |
    Nomination: node and victims; executor.py carries it out

A gang asks as a whole (gang_search.py): a nomination for each member that is needed, or none for any.

Source: PostFilter, PodEligibleToPreemptOthers of plugins/defaultpreemption/default_preemption.go, Preempt of
framework/preemption/preemption.go. What differs is in docs/use/preemption.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Protocol

from kube.objects.objects import PodInfo
from placement.cluster_events import ClusterEvent, EventKind, Hint
from placement.disruption_budgets import DisruptionBudgets
from placement.filters.filter import ClusterView, Filter, Rejection
from placement.plugins import Nomination
from placement.status import SUCCESS, Code, Status
from scheduler.loop_settings import PreemptionOptions
from scheduler.preemption.gang_plan import GangPlan
from scheduler.preemption.gang_search import GangRequest, GangSearch, GangTables
from scheduler.preemption.nominated import NominatedPods
from scheduler.preemption.sitting_pods import SittingPods
from scheduler.preemption.victim_gangs import VictimGangs
from scheduler.preemption.victim_search import Found, VictimSearch
from tenants.reclaim import Reclaim

_KEPT_BY_BUDGETS: Final = "PodDisruptionBudgets keep the pods that borrow what the tenant is owed."

_ABOUT_PODS: Final = frozenset({EventKind.POD_LEFT, EventKind.POD_CHANGED})


class Assumed(Protocol):
    """Pods that are being bound: cluster.assumed_pods.AssumedPods."""

    def uids(self) -> Collection[str]:
        """Of all."""


class DefaultPreemption:
    """Called under the lock of the tables by one thread. UNSCHEDULABLE = wait for the victims, UNRESOLVABLE = nothing
    helps; wait_seconds with it: until that may be different because a pod is no longer protected as newly started."""

    name: Final = "DefaultPreemption"
    woken_by = frozenset(
        {
            EventKind.POD_LEFT,
            EventKind.NODE_ADDED,
            EventKind.NODE_CHANGED,
            EventKind.POD_CHANGED,
            EventKind.UNSCHEDULED_POD_CHANGED,
        }
    )

    def __init__(
        self,
        sitting: SittingPods,
        budgets: DisruptionBudgets,
        nominated: NominatedPods,
        *,
        clock: Callable[[], float],
        gangs: VictimGangs | None = None,
        assumed: Assumed | None = None,
        options: PreemptionOptions | None = None,
        may_preempt: Callable[[PodInfo], bool] = lambda pod: True,
        reclaim: Reclaim | None = None,
    ) -> None:
        """
        clock   : unix seconds
        gangs   : None = there are none
        assumed : pods that are no victims because they are being bound; None = none is
        may_preempt : whether only its own preemptionPolicy keeps a pod from it
        reclaim : which pods go because their tenant borrows; None = there are no tenants
        """
        self._may_preempt, self._gangs, self._reclaim = may_preempt, gangs, reclaim
        self._nominated, self._sitting, self._assumed, self._clock = nominated, sitting, assumed, clock
        options = options or PreemptionOptions()
        self._search = VictimSearch(sitting, budgets, nominated, gangs, options, reclaim)
        self._gang_search = GangSearch(
            self._search, sitting, budgets, nominated, gangs, most_domains=options.least_candidates
        )

    def post_filter(
        self, pod: PodInfo, view: ClusterView, filters: Sequence[Filter], rejections: Sequence[Rejection]
    ) -> Nomination | Status:
        """rejections: of all nodes by these filters, all of which were run."""
        why_not = self._forbidden(pod) or self._awaited(pod, view, rejections)
        if why_not:
            return self._status(Code.UNSCHEDULABLE, f"not eligible due to {why_not}")
        found = self._search.find(pod, view, filters, rejections, now=self._clock(), untouchable=self._untouchable())
        if found.victims is None:
            self._nominated.clear(pod.uid)
            return self._status(Code.UNRESOLVABLE, _in_words(found, view), found.wait_seconds)
        if found.victims.cost.violations and self._lent(found.victims.pods, pod):
            return self._status(Code.UNRESOLVABLE, _KEPT_BY_BUDGETS)
        return Nomination(view.state.names[found.victims.cost.row], found.victims.pods)

    # Gangs

    def waits(self, members: Sequence[PodInfo], view: ClusterView) -> Status:
        """See GangPostFilter. While evictions are being sent, an attempt would look to the executor as if the members
        needed no room any more."""
        why_not = next((why for pod in members if (why := self._awaited(pod, view, ()))), "")
        if not why_not:
            return SUCCESS
        is_evicting = not self._nominated.evicting.isdisjoint(pod.uid for pod in members)
        return self._status(Code.WAIT if is_evicting else Code.UNSCHEDULABLE, f"not eligible due to {why_not}")

    def post_filter_gang(self, wish: GangRequest, view: ClusterView, tables: GangTables) -> GangPlan | Status:
        """See GangPostFilter. Members that may not preempt have free room or none; members that sit are no victims."""
        forbidden = [self._forbidden(pod) for pod in wish.members]
        if all(forbidden):
            return self._status(Code.UNRESOLVABLE, f"not eligible due to {forbidden[0]}")
        self._nominated.forget(pod.uid for pod in (*wish.members, *(one for one, _ in wish.placed)))
        group = None if self._gangs is None else self._gangs.group_of(wish.members[0])
        own = frozenset(pod.uid for pod in self._gangs.sitting(group)) if self._gangs and group else frozenset()
        plan = self._gang_search.find(
            wish,
            view,
            tables,
            now=self._clock(),
            may_preempt=lambda pod: not self._forbidden(pod),
            untouchable=lambda: own.union(self._untouchable()),
        )
        if plan is None:
            why = "no victims found that would make room for the whole gang."
            return self._status(Code.UNRESOLVABLE, why, self._gang_search.wait_seconds)
        victims = [victim for _, there in plan.seats for victim in there.victims]
        if plan.cost.violations and self._lent(victims, wish.members[0]):
            return self._status(Code.UNRESOLVABLE, _KEPT_BY_BUDGETS)
        return plan

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """A pod that waits for its victims is woken by those that leave its node, a gang by the last of them; any other
        pod by any pod that leaves."""
        if event.kind not in self.woken_by:
            return Hint.SKIP
        nominated = self._nominated.of(pod.uid)
        if nominated is not None and nominated.together and event.kind in _ABOUT_PODS:
            return Hint.SKIP if self._nominated.is_waiting_for_victims(nominated.together) else Hint.QUEUE
        if event.kind is EventKind.POD_LEFT and nominated is not None and event.pod is not None:
            return Hint.QUEUE if event.pod.node == nominated.node else Hint.SKIP
        return Hint.QUEUE

    # Inside

    def _untouchable(self) -> Collection[str]:
        refusing = self._nominated.refusing(self._clock())
        assumed = () if self._assumed is None else self._assumed.uids()
        others = (*refusing, *self._sitting.stand_ins)  # room of a tenant may be borrowed, and is no pod all the same
        return {*assumed, *others} if others else assumed

    def _forbidden(self, pod: PodInfo) -> str:
        """Why it may never preempt; '' = it may."""
        if not pod.may_preempt:
            return "preemptionPolicy=Never."
        return "" if self._may_preempt(pod) else "what it is: such pods take what is left over."

    def _awaited(self, pod: PodInfo, view: ClusterView, rejections: Sequence[Rejection]) -> str:
        """Who is on the way out for it already; '' = no pod."""
        nominated = self._nominated.of(pod.uid)
        node = pod.nominated_node if nominated is None else nominated.node
        row = view.state.row_of.get(node)
        if not node or row is None or view.state.nodes[row] is None:
            return ""
        if any(one.nodes[row] and not one.preemptible for one in rejections):
            return ""  # the nomination is of no use any more
        # Those that go for others there, too: until the API server has accepted their deletion, it is known only here.
        if any(self._nominated.sits_on(uid, row) for one in self._nominated.on(row) for uid in one.victims):
            return "a victim that has not left the nominated node yet."
        self._sitting.settle()
        if any(
            other.terminating and (other.priority < pod.priority or self._lent((other,), pod))
            for other in self._sitting.on(row)
        ):
            return "a terminating pod on the nominated node."
        return ""

    def _lent(self, victims: Iterable[PodInfo], pod: PodInfo) -> bool:
        """Whether some of these go only for what their tenant borrows, and not for their priority."""
        return self._reclaim is not None and any(self._reclaim.is_lent(victim, pod) for victim in victims)

    def _status(self, code: Code, why: str, wait_seconds: float = 0.0) -> Status:
        return Status(code, self.name, f"preemption: {why}", wait_seconds)


def _in_words(found: Found, view: ClusterView) -> str:
    """As kube-scheduler says it."""
    n_nodes = int(view.state.alive.sum())
    reasons = (
        (found.unhelpful, "Preemption is not helpful for scheduling"),
        (n_nodes - found.unhelpful, "No preemption victims found for incoming pod"),
    )
    return f"0/{n_nodes} nodes are available: {', '.join(f'{n} {words}' for n, words in reasons if n)}."
