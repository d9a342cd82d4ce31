"""What a dry run of the scheduling loops decided, as a table, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from rich.table import Table

from forecast_scheduler.commands.schedule.dry_run_gaps import Gap
from forecast_scheduler.reports.table_format import Column, table_of
from kube.objects.objects import PodInfo
from profiles.dry_loop import Planned
from profiles.gpu.tide.tide_report import NO_REPORT, ReportedMove, TideReport
from profiles.job.jobs_plan_answers import StormReport
from scorer.load_scale import percent

_SHOWN: Final = 50
_FEW: Final = 5


@dataclass(frozen=True, slots=True)
class DryRunPlan:
    """
    planned : waiting pods, those that get a node in the order in which they do
    stacks  : how far the water level of each pool makes scores stack pods: 0 = they spread them, 1 = they stack them
    gaps    : what the file does not hold and the dry run could therefore not judge by
    unread  : objects of the file that no part reads, by kind
    remarks : what is odd about the file; it was logged when the file was read
    """

    planned: tuple[Planned, ...]
    storms: tuple[StormReport, ...] = ()
    tide: TideReport = NO_REPORT
    stacks: Mapping[str, float] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def plan_table(planned: Sequence[Planned]) -> Table:
    """The first pods, as people read them."""
    columns = (
        Column("pod", lambda one: _name(one.pod)),
        Column("profile", lambda one: one.profile),
        Column("node", lambda one: one.node or None),
        Column(">expected peak there", lambda one: percent(one.peak_share)),
        Column("why not, or at whose expense", _remark),
    )
    table = table_of("Where pods would go, in this order", columns, planned[:_SHOWN])
    for column in table.columns[:3]:
        column.no_wrap = True
    return table


def plan_lines(plan: DryRunPlan, scheduler_names: Iterable[str]) -> Iterator[str]:
    """What the table does not say."""
    planned = plan.planned
    if not planned:
        yield f"no pod waits for the scheduler {' or '.join(scheduler_names)}: pods name it in spec.schedulerName"
    else:
        if len(planned) > _SHOWN:
            yield f"and {len(planned) - _SHOWN} more: --json FILE has all"
        yield f"{sum(bool(one.node) for one in planned)} of {len(planned)} pods would be bound"
    groups = {one.group for one in planned if one.group}
    for group in sorted(groups):
        members = [one for one in planned if one.group == group]
        yield f"PodGroup {group}: {sum(bool(one.node) for one in members)} of {len(members)} waiting members"
    for queue in sorted({one.queue for one in planned if one.queue}):
        waiting = [one for one in planned if one.queue == queue]
        yield f"queue {queue}: {sum(bool(one.node) for one in waiting)} of {len(waiting)} waiting pods"
    for pool, stacks in sorted(plan.stacks.items()):
        yield f"water level of pool {pool}: scores that follow it {_leaning(stacks)}"
    for storm in plan.storms:
        yield (
            f"storm {storm.start:%Y-%m-%d %H:%M} UTC to {storm.end:%Y-%m-%d %H:%M} UTC: {storm.pods:.0f} pods of "
            f"{', '.join(storm.services[:_FEW])} ({storm.state})"
        )
    for move in plan.tide.moves:
        yield f"tide: {move.move.training.key} {move.why}"
    for move in plan.tide.ahead[:_FEW]:
        yield f"tide, {_moment(move.move.at)}: {move.move.training.key} {move.why}"
    yield from gap_lines(plan.gaps, plan.unread)


def gap_lines(gaps: Sequence[Gap], unread: Mapping[str, int]) -> Iterator[str]:
    """What could not be judged by, a line each; nothing where nothing lacks."""
    if gaps:
        yield "not covered:"
        yield from (f"  {gap.what}: {gap.because}" for gap in gaps)
    if unread:
        yield f"objects of the file that are not read: {', '.join(f'{n} {kind}' for kind, n in unread.items())}"


def plan_json(plan: DryRunPlan) -> dict[str, Any]:
    """All of it. Times are in UTC."""
    return {
        "placed": sum(bool(one.node) for one in plan.planned),
        "pods": [
            {
                "namespace": one.pod.namespace,
                "name": one.pod.name,
                "profile": one.profile,
                "node": one.node or None,
                "message": one.message,
                "rejected_by": list(one.rejected_by),
                "evicts": [_name(victim) for victim in one.evicts],
                "waits_until": None if one.waits_until is None else _utc(one.waits_until),
                "pod_group": one.group or None,
                "queue": one.queue or None,
                "peak_share": one.peak_share,
            }
            for one in plan.planned
        ],
        "water_level_stacks": dict(plan.stacks),
        "storms": [
            {
                "start": storm.start.isoformat(timespec="seconds"),
                "end": storm.end.isoformat(timespec="seconds"),
                "pods": storm.pods,
                "services": list(storm.services),
                "state": storm.state,
            }
            for storm in plan.storms
        ],
        "tide": {
            "moves": [_move_json(one) for one in plan.tide.moves],
            "ahead": [_move_json(one) for one in plan.tide.ahead],
            "unread": dict(plan.tide.failures),
        },
        **gaps_json(plan.gaps, plan.unread, plan.remarks),
    }


def gaps_json(gaps: Sequence[Gap], unread: Mapping[str, int], remarks: Sequence[str]) -> dict[str, Any]:
    """What could not be judged by. remarks: on the cluster file."""
    return {
        "not_covered": [{"what": gap.what, "because": gap.because} for gap in gaps],
        "objects_not_read": dict(unread),
        "cluster_file": list(remarks),
    }


def _move_json(one: ReportedMove) -> dict[str, Any]:
    move = one.move
    return {
        "at": _utc(move.at),
        "training": move.training.key,
        "kind": move.kind.value,
        "before": move.before,
        "after": move.after,
        "why": one.why,
    }


def _remark(one: Planned) -> str:
    parts = []
    if one.waits_until is not None:
        parts.append(f"waits until {_moment(one.waits_until)}")
    if one.evicts:
        names = ", ".join(map(_name, one.evicts[:_FEW])) + (", ..." if len(one.evicts) > _FEW else "")
        parts.append(f"evicts {names}")
    return ": ".join([*parts, *([one.message] if one.message else [])])


def _leaning(stacks: float) -> str:
    if stacks in (0.0, 1.0):
        return "stack pods" if stacks else "spread pods"
    return f"stack by {100 * stacks:.0f} % and spread by the rest"


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _name(pod: PodInfo) -> str:
    return f"{pod.namespace}/{pod.name}"
