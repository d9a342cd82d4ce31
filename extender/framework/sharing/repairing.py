"""Carries repairs of overcommitted nodes out: what `repair` names is evicted as relieving.py does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from extender.framework.sharing.eviction import Evict
from extender.framework.sharing.overcommit import Cause, Overcommit
from extender.framework.sharing.relieving import NodeRelief, RepairNews
from extender.framework.sharing.repair import RepairPlan, is_evictable, plan_repair
from scorer.cluster.objects import PodInfo

__all__ = ["OvercommitRepair"]


class OvercommitRepair(NodeRelief[Overcommit]):
    """`step` is called again and again by one thread."""

    def __init__(
        self,
        look: Callable[[], Iterable[Overcommit]],
        evict: Evict,
        scheduler_names: Collection[str],
        *,
        may_write: Callable[[], bool] = lambda: True,
        tell: Callable[[RepairNews], None] = lambda told: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """
        look            : at the overcommits as they are now, OvercommitWatch.look
        scheduler_names : whose pods are ours
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
