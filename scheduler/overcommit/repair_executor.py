"""Carries repairs of overcommitted nodes out: what `repair` names is evicted as node_relief.py does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from kube.eviction.eviction import Evict
from kube.objects.objects import PodInfo
from scheduler.overcommit.node_relief import NodeRelief, RepairReport
from scheduler.overcommit.overcommit import Cause, Overcommit
from scheduler.overcommit.repair_victims import RepairPlan, is_evictable, plan_repair


class OvercommitRepair(NodeRelief[Overcommit]):
    """`step` is called again and again by one thread."""

    def __init__(
        self,
        look: Callable[[], Iterable[Overcommit]],
        evict: Evict,
        scheduler_names: Collection[str],
        *,
        may_write: Callable[[], bool] = lambda: True,
        tell: Callable[[RepairReport], None] = lambda report: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        look            : returns the overcommits as they are now, OvercommitWatch.look
        scheduler_names : names of our schedulers
        may_write, tell : see NodeRelief
        """
        self._names = frozenset(scheduler_names)
        super().__init__(
            lambda: (one for one in look() if one.cause is not Cause.SHRUNK),
            self._planned,
            evict,
            what="an overcommitted node",
            may_write=may_write,
            tell=tell,
            clock=clock,
        )

    def _planned(self, one: Overcommit, leaving: Collection[str], refused: Collection[str]) -> RepairPlan:
        return plan_repair(one, self._is_ours, leaving=leaving, refused=refused)

    def _is_ours(self, pod: PodInfo) -> bool:
        return is_evictable(pod, self._names)
