"""Where the pods of a cluster from a file would go, one after the other, and why not: `schedule --dry-run --cluster`.

Each pod is assumed where it would be bound, so that those after it see it. Nobody is preempted, and PodGroups, which
the file does not have, are not heeded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.markup import escape
from rich.table import Table

from extender.filters.filter import ClusterView
from extender.framework.cycle.likeness import Likeness
from extender.framework.cycle.placing import Placer
from extender.framework.gangs.labels import group_of
from extender.framework.profile import SchedulingProfile
from forecast_scheduler.schedule_settings import ScheduleSettings
from scorer.cluster.objects import PodInfo
from scorer.cluster.seating import waits
from scorer.scorer import Scorer

__all__ = ["Planned", "plan", "plan_json", "plan_lines", "plan_table", "waiting_pods"]

_ASSUMED_SECONDS: Final = 300.0
_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Planned:
    """One pod.

    node       : "" = none
    message    : why not
    peak_share : predicted peak of the node's fullest resource once all pods are where they would go; None = not known
    """

    pod: PodInfo
    node: str
    message: str = ""
    peak_share: float | None = None


def waiting_pods(pods: Iterable[PodInfo], scheduler_names: Collection[str]) -> list[PodInfo]:
    """Those to be placed, in the order of the queue: by priority, then by age."""
    ours = [pod for pod in pods if waits(pod) and not pod.terminating and pod.scheduler_name in scheduler_names]
    return sorted(ours, key=lambda pod: (-pod.priority, pod.created, pod.namespace, pod.name))


def plan(
    scorer: Scorer, view: ClusterView, profiles: Mapping[str, SchedulingProfile], settings: ScheduleSettings
) -> list[Planned]:
    """Place all waiting pods of the profiles, which are given by scheduler name. The tables keep what was assumed."""
    planned: list[Planned] = []
    with scorer.reading() as cluster:
        level, _ = scorer.level()
        placer = Placer(
            view,
            cluster,
            level,
            until=cluster.now + _ASSUMED_SECONDS,
            bounded_scan=settings.bounded_scan,
        )
        pods = waiting_pods(cluster.state.pods.values(), profiles)
        for run in Likeness(view, profiles).runs(pods):
            planned += _placed(pods[run], placer, profiles[pods[run.start].scheduler_name])
    return [
        Planned(one.pod, one.node, one.message, scorer.peak_share(one.pod, one.node) if one.node else None)
        for one in planned
    ]


def _placed(pods: Sequence[PodInfo], placer: Placer, profile: SchedulingProfile) -> Iterator[Planned]:
    """pods: all alike."""
    if pods[0].gates:
        gates = ", ".join(pods[0].gates[:5])
        yield from (Planned(pod, "", f"waits for its scheduling gates: {gates}") for pod in pods)
        return
    policy = profile.policies.choose(pods[0]).policy
    placer.use(profile)
    found = placer.place(pods, profile.filters_for(policy), policy)
    names = placer.view.state.names
    yield from (Planned(pod, names[row]) for pod, row in zip(pods, found.rows, strict=False))
    why_not = "" if found.why_not is None else str(found.why_not.feasibility(placer.view))
    yield from (Planned(pod, "", why_not) for pod in pods[len(found.rows) :])


def plan_table(planned: Sequence[Planned]) -> Table:
    """The first pods, as people read them."""
    table = Table(title="Where pods would go, in this order", title_justify="left")
    for column in ("pod", "node"):
        table.add_column(column, no_wrap=True)
    table.add_column("peak there", justify="right")
    table.add_column("why not")
    for one in planned[:_SHOWN]:
        peak = "–" if one.peak_share is None else f"{100 * one.peak_share:.0f} %"
        table.add_row(escape(_name(one.pod)), escape(one.node or "–"), peak, escape(one.message))
    return table


def plan_lines(planned: Sequence[Planned], scheduler_names: Iterable[str]) -> Iterator[str]:
    """What the table does not say."""
    if not planned:
        names = " or ".join(scheduler_names)
        yield f"no pod waits for the scheduler {names}: pods name it in spec.schedulerName"
        return
    if len(planned) > _SHOWN:
        yield f"and {len(planned) - _SHOWN} more: --json FILE has all"
    placed = sum(bool(one.node) for one in planned)
    yield f"{placed} of {len(planned)} pods would be bound"
    if any(group_of(one.pod) is not None for one in planned):
        yield "some pods are in PodGroups, which are not in the file: they were placed one by one"


def plan_json(planned: Sequence[Planned]) -> dict[str, Any]:
    """All of it."""
    return {
        "placed": sum(bool(one.node) for one in planned),
        "pods": [
            {
                "namespace": one.pod.namespace,
                "name": one.pod.name,
                "node": one.node or None,
                "message": one.message,
                "peak_share": one.peak_share,
            }
            for one in planned
        ],
    }


def _name(pod: PodInfo) -> str:
    return f"{pod.namespace}/{pod.name}"
