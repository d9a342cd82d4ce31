"""Settings of preemption: `schedule.preemption`."""

from __future__ import annotations

from pydantic import Field

from base.setting_group import Duration, SettingGroup


class PreemptionOptions(SettingGroup):
    """Evicting pods of lower priority for one that fits nowhere (docs/use/preemption.md)."""

    enabled: bool = True
    """Evict. If false, pods wait for room."""

    protect_started: Duration = Field(default=60, ge=0)
    """Pods that started less long ago are not evicted: what has just been started, perhaps for having been preempted
    elsewhere, is not evicted again at once. 0: all may be."""

    least_candidates: int = Field(default=8, ge=1)
    """Fewest nodes that are tried one by one for a pod that needs more than requests to leave. Each takes 15 ms at
    1,000 nodes, 50 ms at 5,000, in which nothing else is scheduled. 100 in kube-scheduler's DefaultPreemptionArgs."""

    candidates_share: float = Field(default=0, ge=0, le=1)
    """Share of the nodes that is tried so, if it is more. 0.1 in kube-scheduler's DefaultPreemptionArgs."""

    def most_candidates(self, n_nodes: int) -> int:
        """Return how many of `n_nodes` are tried one by one (calculateNumCandidates)."""
        return max(self.least_candidates, int(n_nodes * self.candidates_share))
