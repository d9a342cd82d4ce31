"""Pods that this process has given a node: assumed in all tables until the watch shows them there.

    Initial --assume (cycle)--> ASSUMED --bound by us--> ASSUMED, confirmed soon --watch: there--> Added --> Deleted
                                   |                        |
                                   | binding failed         | time is over: EXPIRED, the API server is asked;
                                   |                        | after a binding without an answer that is soon
                                   v                        |
                                Initial <--it is not there--+--it is there: ASSUMED, the watch lags
                                                            +--it is gone, or elsewhere--> Deleted

As in kube-scheduler (pkg/scheduler/backend/cache/interface.go), with one difference: before an overdue assumption is
released, the API server is asked. Behind a watch that lags for minutes the pod does hold the room. The states Added and
Deleted are the tables' own (cluster/assuming_cluster.py), which follow the watch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cluster.assuming_cluster import AssumingCluster
from scheduler.binding.outcome import Reserved


class Assumptions:
    """Everything is called under the lock of the tables."""

    def __init__(
        self,
        cluster: AssumingCluster,
        *,
        seconds: float,
        binding_seconds: float,
        ask: Callable[[Sequence[Reserved]], None],
        clock: Callable[[], float],
    ) -> None:
        """
        seconds         : time for the watch to show a pod after its binding
        binding_seconds : a binding ends within this time, with whatever outcome
        ask             : called with pods whose time is over; must find out what became of them, without waiting
        """
        self._cluster, self._ask, self._clock = cluster, ask, clock
        self._seconds, self._binding_seconds = seconds, binding_seconds
        cluster.on_overdue.append(self._overdue)

    @property
    def until(self) -> float:
        """Until when a pod that is given a node now is assumed: its binding may wait behind thousands."""
        return self._clock() + 2 * self._binding_seconds + self._seconds

    def keep(self, uid: str) -> None:
        """Keep a pod that the API server has bound: the watch gets time anew to show it."""
        self._cluster.keep(uid, self._clock() + self._seconds)

    def ask_soon(self, uid: str, *, since: float) -> None:
        """Ask about a pod of which it is unknown, since then, whether it is bound: if it is not, the watch shows
        nothing.

        Not at once: a request that timed out may be carried out a little later, and until then "not bound" proves
        nothing. It has as long for that as a binding has. While nothing answers, the pauses become longer.
        """
        now = self._clock()
        self._cluster.keep(uid, now + min(max(self._binding_seconds, now - since), self._seconds))

    def forget(self, uid: str) -> None:
        """It is not on that node: give everything back."""
        self._cluster.forget(uid)

    def _overdue(self, uids: Sequence[str]) -> None:
        state = self._cluster.state
        reserved = []
        for uid in uids:
            pod, seat = state.pods.get(uid), state.seat_of.get(uid)
            if pod is None or seat is None:
                self._cluster.forget(uid)
                continue
            self._cluster.keep(uid, self._clock() + self._binding_seconds + self._seconds)
            reserved.append(Reserved(pod, pod.node))
        if reserved:
            self._ask(reserved)
