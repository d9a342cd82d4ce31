"""PostFilter "DefaultPreemption": room for a pod that fits nowhere is made at the expense of less important pods.

    eligible?  --no--> the nomination stays: its victims are still going
       |
    search     --nothing helps--> the nomination, if any, ends
       |
    Nomination: node and victims; executor.py carries it out

Source: PostFilter, PodEligibleToPreemptOthers of plugins/defaultpreemption/default_preemption.go, Preempt of
framework/preemption/preemption.go. What differs is in docs/preemption.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from extender.filters.filter import ClusterView, Filter, Rejection
from extender.framework.events import ClusterEvent, EventKind
from extender.framework.plugins import Hint, Nomination
from extender.framework.preemption.budgets import DisruptionBudgets
from extender.framework.preemption.gangs import Gangs
from extender.framework.preemption.nominated import NominatedPods
from extender.framework.preemption.options import PreemptionOptions
from extender.framework.preemption.search import Found, Search
from extender.framework.preemption.sitting_pods import SittingPods
from extender.framework.status import Code, Status
from scorer.cluster.objects import PodInfo

__all__ = ["Assumed", "DefaultPreemption"]


class Assumed(Protocol):
    """Pods that are being bound: scorer.assumed.AssumedPods."""

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
        gangs: Gangs | None = None,
        assumed: Assumed | None = None,
        options: PreemptionOptions | None = None,
        may_preempt: Callable[[PodInfo], bool] = lambda pod: True,
    ) -> None:
        """
        clock   : unix seconds
        gangs   : None = there are none
        assumed : pods that are no victims because they are being bound; None = nobody is
        may_preempt : whether nobody but its own preemptionPolicy keeps a pod from it
        """
        self._may_preempt = may_preempt
        self._nominated, self._sitting, self._assumed, self._clock = nominated, sitting, assumed, clock
        self._search = Search(sitting, budgets, nominated, gangs, options or PreemptionOptions())

    def post_filter(
        self, pod: PodInfo, view: ClusterView, filters: Sequence[Filter], rejections: Sequence[Rejection]
    ) -> Nomination | Status:
        """rejections: of all nodes by these filters, all of which were run."""
        why_not = self._ineligible(pod, view, rejections)
        if why_not:
            return self._status(Code.UNSCHEDULABLE, f"not eligible due to {why_not}")
        untouchable = () if self._assumed is None else self._assumed.uids()
        found = self._search.find(pod, view, filters, rejections, now=self._clock(), untouchable=untouchable)
        if found.victims is None:
            self._nominated.clear(pod.uid)
            return self._status(Code.UNRESOLVABLE, _in_words(found, view), found.wait_seconds)
        return Nomination(view.state.names[found.victims.cost.row], found.victims.pods)

    def hint(self, pod: PodInfo, event: ClusterEvent) -> Hint:
        """A pod that waits for its victims is woken by those that leave its node; any other by whoever leaves."""
        if event.kind not in self.woken_by:
            return Hint.SKIP
        nominated = self._nominated.of(pod.uid)
        if event.kind is EventKind.POD_LEFT and nominated is not None and event.pod is not None:
            return Hint.QUEUE if event.pod.node == nominated.node else Hint.SKIP
        return Hint.QUEUE

    def _ineligible(self, pod: PodInfo, view: ClusterView, rejections: Sequence[Rejection]) -> str:
        """Why it may not preempt now; '' = it may."""
        if not pod.may_preempt:
            return "preemptionPolicy=Never."
        if not self._may_preempt(pod):
            return "what it is: such pods take what is left over."
        nominated = self._nominated.of(pod.uid)
        node = pod.nominated_node if nominated is None else nominated.node
        row = view.state.row_of.get(node)
        if not node or row is None or view.state.nodes[row] is None:
            return ""
        if any(one.nodes[row] and not one.preemptible for one in rejections):
            return ""  # whoever goes there now, it is of no use any more
        # Those that go for others there, too: until the API server has taken their deletion nothing else tells of it.
        if any(self._sits_on(uid, row, view) for one in self._nominated.on(row) for uid in one.victims):
            return "a victim that has not left the nominated node yet."
        self._sitting.settle()
        if any(other.terminating and other.priority < pod.priority for other in self._sitting.on(row)):
            return "a terminating pod on the nominated node."
        return ""

    def _sits_on(self, uid: str, row: int, view: ClusterView) -> bool:
        seat = view.state.seat_of.get(uid)
        return seat is not None and seat.node == row

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
