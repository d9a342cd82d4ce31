"""The plan of the job profile as tables for the terminal, from the same dictionary that `--json` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from forecast_scheduler.reports.table_format import local_minute, short_duration, titled_table

_GIB = 2.0**30
_MOST_STORMS = 20

Plan = Mapping[str, Any]


def job_plan_tables(plan: Plan) -> Iterator[Table]:
    """Those that have anything to show."""
    if plan["jobs"]:
        yield _jobs_table(plan)
    if plan["storms"]:
        yield _storms_table(plan["storms"])
    if plan["providers"]:
        yield _providers_table(plan["providers"])
    if plan["queues"]:
        yield _queues_table(plan["queues"])


def job_plan_lines(plan: Plan) -> Iterator[str]:
    """What no table says."""
    if plan["no_forecast_because"]:
        yield f"no job is held: {plan['no_forecast_because']}"
    elif not plan["jobs"]:
        yield "no job waits for its start"
    hidden = plan["total_jobs"] - len(plan["jobs"])
    if hidden > 0:
        yield f"{hidden} more jobs: --limit shows them"
    if plan["demand"]:
        highest = max(plan["demand"], key=lambda point: float(point["pods"]))
        pods = sum(float(point["pods"]) for point in plan["demand"])
        yield (
            f"expected: {pods:.0f} pods, most from {local_minute(highest['start'])} on: {highest['pods']:.0f} within "
            f"{highest['seconds'] / 60:.0f} min, {highest['cpu_cores']:.1f} cores"
        )


def _latest(moment: str | None) -> str:
    """The latest start; a pod may name one beyond any calendar, which is none."""
    return "no limit" if moment is not None and moment >= "9999" else local_minute(moment)


def _jobs_table(plan: Plan) -> Table:
    table = titled_table("Jobs that wait for their start", "pod", "of", "start", "latest", "runs", "why")
    for job in plan["jobs"]:
        table.add_row(
            *map(
                Text,
                (
                    f"{job['namespace']}/{job['name']}",
                    job["owner"],
                    local_minute(job["start"]),
                    _latest(job["latest_start"]),
                    short_duration(job["run_seconds"]),
                    job["why"],
                ),
            )
        )
    return table


def _storms_table(storms: Sequence[Plan]) -> Table:
    table = titled_table("Bursts ahead", "from", "until", "pods", "cores", "memory", "reserved now", "state")
    for storm in storms[:_MOST_STORMS]:
        table.add_row(
            local_minute(storm["start"]),
            local_minute(storm["end"]),
            f"{storm['pods']:.0f}",
            f"{storm['cpu_cores']:.1f}",
            _memory(storm["memory_bytes"]),
            f"{storm['reserved_cpu_cores']:.1f} cores, {_memory(storm['reserved_memory_bytes'])}",
            Text(storm["state"]),
        )
    return table


def _providers_table(providers: Sequence[Plan]) -> Table:
    table = titled_table(
        "Providers of virtual nodes", "name", "nodes", "pods", "cores", "memory", "backs off until", "state"
    )
    for one in providers:
        table.add_row(
            Text(one["name"]),
            str(one["nodes"]),
            _of(one["pods"], one["quota_pods"]),
            _of(round(one["cpu_cores"], 1), one["quota_cpu_cores"]),
            _memory(one["memory_bytes"])
            + ("" if one["quota_memory_bytes"] is None else f" of {_memory(one['quota_memory_bytes'])}"),
            local_minute(one["backs_off_until"]),
            Text(one["state"]),
        )
    return table


def _queues_table(queues: Sequence[Plan]) -> Table:
    table = titled_table("Queues", "queue", "order", "owner", "weight", "share", "running", "waiting")
    for one in queues:
        table.add_row(
            Text(one["queue"]),
            Text(one["order"]),
            Text(one["owner"]),
            f"{one['weight']:g}",
            f"{one['share']:.1%}",
            str(one["running"]),
            str(one["waiting"]),
        )
    return table


def _memory(amount: float) -> str:
    return f"{amount / _GIB:.1f} GiB"


def _of(amount: float, quota: float | None) -> str:
    return f"{amount:g}" if quota is None else f"{amount:g} of {quota:g}"
