"""What a profile of ours makes of the nodes for one pod, in the words of an explanation.

cycle --Looked--> judgement_of --> scorer.judgement.Judgement
POST /v1/explain of a running scheduler --> ProfileJudge, which only looks
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cluster.assuming_cluster import AssumingCluster
from cluster.degradation import Level
from kube.objects.objects import PodInfo
from placement.filters.filter import ClusterView
from placement.guarded_plugin import PluginFailed
from placement.pod_groups.group_of_pod import group_of
from placement.policies.policy import ChosenPolicy
from placement.scores.plugin_weights import ScorePart
from scheduler.cycle.placing import Looked, UnitPlacer
from scheduler.profile import SchedulingProfile
from scheduler.queue.queued_pods import WaitingPod
from scorer.judgement import Judgement, SumPart


def profile_component(profile: str, scheduler_name: str, domain: str) -> str:
    """The words for a profile of ours as the component that places a pod."""
    return f"profile {profile} of `schedule` (schedulerName {scheduler_name}, domain {domain or 'without a label'})"


def judgement_of(
    looked: Looked, view: ClusterView, *, component: str, chosen: ChosenPolicy, not_applied: Sequence[str] = ()
) -> Judgement:
    """The judgement of one look of the cycle; under the lock of the tables, while they are as they were."""
    names, ranked = view.state.names, looked.ranked()
    totals = {names[int(row)]: float(total) for row, total in zip(looked.rows, looked.totals, strict=True)}
    if looked.nominated is not None:  # taken whatever the scores say
        totals.setdefault(names[looked.nominated], max(totals.values(), default=0.0))
    return Judgement(
        component=component,
        ranking=tuple(names[row] for row in ranked),
        totals=totals,
        parts=sum_parts(looked.parts, [names[int(row)] for row in looked.rows]),
        passed_over={names[row]: by for row, by in looked.passed_over.items()},
        rejections=looked.verdict.rejected_nodes(view),
        n_nodes=int(view.state.alive.sum()),
        policy=chosen.policy.name,
        policy_because=chosen.because,
        not_applied=tuple(not_applied),
    )


def sum_parts(parts: Sequence[ScorePart], nodes: Sequence[str]) -> tuple[SumPart, ...]:
    """nodes: those that the points of the parts are of."""
    return tuple(
        SumPart(part.name, part.weight, dict(zip(nodes, part.points.astype(float).tolist(), strict=True)))
        for part in parts
    )


class ProfileJudge:
    """Implements scorer.judgement.Judge for a process that follows its cluster: it only looks, and changes nothing."""

    def __init__(
        self,
        view: ClusterView,
        cluster: AssumingCluster,
        profiles: Mapping[str, SchedulingProfile],
        waiting: Callable[[], Sequence[WaitingPod]],
        level: Callable[[], Level],
        *,
        domain: str,
    ) -> None:
        """
        profiles : by scheduler name
        waiting  : pods of the queue
        level    : rung of the degradation ladder; under the lock
        domain   : of the process, for people
        """
        self._view, self._cluster, self._profiles = view, cluster, profiles
        self._waiting, self._level, self._domain = waiting, level, domain

    def __call__(self, pod: PodInfo) -> Judgement | None:
        """The judgement on the tables as they are; None = no profile of this process places the pod."""
        profile = self._profiles.get(pod.scheduler_name)
        if profile is None:
            return None
        chosen = profile.policies.choose(pod)
        placer = UnitPlacer(self._view, self._cluster, self._level(), until=0.0)
        placer.use(profile)
        component = profile_component(profile.name, profile.scheduler_name, self._domain)
        try:
            looked = placer.look([pod], profile.filters_for(chosen.policy), chosen.policy)
        except PluginFailed as failure:  # which fails the pod, as the plugin wants it
            return Judgement(component, (), {}, n_nodes=int(self._view.state.alive.sum()), held=str(failure))
        return judgement_of(
            looked,
            self._view,
            component=component,
            chosen=chosen,
            not_applied=(*self._left_out(pod, looked, profile), *profile.troubles()),
        )

    def _left_out(self, pod: PodInfo, looked: Looked, profile: SchedulingProfile) -> Sequence[str]:
        left_out = []
        seat = self._cluster.state.seat_of.get(pod.uid)
        if seat is not None:
            node = self._cluster.state.names[seat.node]
            left_out.append(f"the pod sits on {node}: what it requests, its ports and its labels count there")
        own = next((one for one in self._waiting() if one.uid == pod.uid), None)
        if own is not None and own.message:
            left_out.append(f"the queue has it as {own.part.value}: {own.message}")
        elif own is None and seat is None and profile.pre_enqueue:
            left_out.append(f"gates before the queue: {', '.join(one.name for one in profile.pre_enqueue)}")
        if (group := group_of(pod)) is not None:
            left_out.append(f"the other members of PodGroup {group}, with which it is placed")
        if not len(looked.rows) and profile.post_filters:
            left_out.append("preemption: whether evicting pods makes room")
        return left_out
