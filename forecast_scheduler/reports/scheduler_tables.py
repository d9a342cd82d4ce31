"""What a running scheduler answers to `jobs`, `tide` and `tenants`, as tables for the terminal, from the same
dictionaries that `--json` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table
from rich.text import Text

from forecast_scheduler.reports.table_format import local_minute, short_duration, titled_table
from scorer.load_scale import UNKNOWN
from tenants.quota_amounts import in_short

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


Tenants = Mapping[str, Any]
_COLUMNS = ("used", "waiting", "borrowed", "lent", "owed", "may_borrow")
_HOURS_OF_TABLE = 8


def tenant_tables(found: Tenants, hours: int) -> Iterator[Table]:
    """What tenants have now; with `hours`, what they are expected to need and lend by hour."""
    if found["tenants"]:
        yield _now(found["tenants"])
    if hours and found["from_hour"]:
        first = datetime.fromisoformat(found["from_hour"])
        for start in range(0, hours, _HOURS_OF_TABLE):
            yield _by_hour(found["tenants"], first, range(start, min(start + _HOURS_OF_TABLE, hours)))


def tenant_lines(found: Tenants) -> Iterator[str]:
    """What no table says."""
    if not found["tenants"]:
        yield "there is no such tenant: no ElasticQuota is installed, or none is meant"
    elif not found["from_hour"]:
        yield "there is no forecast: all that is idle is lent"
    yield from found["problems"]


def _now(tenants: Sequence[Tenants]) -> Table:
    table = titled_table(
        "Tenants",
        "tenant",
        "part of",
        ">pods",
        ">wait",
        "resource",
        ">min",
        ">max",
        *(f">{name.replace('_', ' ')}" for name in _COLUMNS),
        wrap_first=False,
    )
    for one in tenants:
        for at, it in enumerate(one["resources"]):
            named = (Text(one["tenant"]), Text(one["parent"] or ""), str(one["pods"]), str(one["waiting_pods"]))
            table.add_row(
                *(named if not at else ("", "", "", "")),
                Text(it["resource"]),
                in_short(it["resource"], it["min"]),
                UNKNOWN if it["max"] is None else in_short(it["resource"], it["max"]),
                *(in_short(it["resource"], it[name]) for name in _COLUMNS),
            )
    return table


def _by_hour(tenants: Sequence[Tenants], first: datetime, hours: range) -> Table:
    columns = (f">{first + timedelta(hours=hour):%H:%M}" for hour in hours)
    table = titled_table("Expected need (lent)", "tenant", "resource", ">min", *columns, wrap_first=False)
    for one in tenants:
        for at, it in enumerate(one["resources"]):
            name = it["resource"]
            cells = [
                f"{in_short(name, it['expected'][hour])} ({in_short(name, it['will_lend'][hour])})"
                for hour in hours
                if hour < len(it["expected"])
            ]
            table.add_row(Text("" if at else one["tenant"]), Text(name), in_short(name, it["min"]), *cells)
    return table


_EVERY = 4
"""Half hours of a row."""

_MOST_MOVES = 30
Tide = Mapping[str, Any]


def tide_report_tables(tide: Tide) -> Iterator[Table]:
    """Those that have anything to show."""
    for pool in tide["pools"]:
        yield _pool_table(pool)
    if tide["trainings"]:
        yield _trainings_table(tide["trainings"])
    if tide["moves"]:
        yield _moves_table("Moves that were made", tide["moves"])
    if tide["ahead"]:
        yield _moves_table("Moves ahead", tide["ahead"])


def tide_lines(tide: Tide) -> Iterator[str]:
    """What no table says."""
    if tide["no_forecast_because"]:
        yield f"no training grows: {tide['no_forecast_because']}"
    if tide["writes_nothing_because"]:
        yield f"no training is moved: {tide['writes_nothing_because']}"
    if not tide["pools"]:
        yield "no node has GPUs"
    for what, why in tide["unread"].items():
        yield f"{what}: {why}"
    for one in tide["trainings"]:
        if one["mistakes"]:
            yield f"{one['training']}: {one['mistakes']}"


def _pool_table(pool: Tide) -> Table:
    title = (
        f"{pool['pool']}: {pool['capacity_gpus']:g} GPUs, now {pool['inference_gpus']:g} inference, "
        f"{pool['training_gpus']:g} training, {pool['waiting_gpus']:g} waited for"
    )
    table = titled_table(title, "from", "inference expects", "kept for it", "training")
    points = pool["ahead"]
    for start in range(0, len(points), _EVERY):
        some = points[start : start + _EVERY]
        training = [one["training_gpus"] for one in some if one["training_gpus"] is not None]
        table.add_row(
            local_minute(some[0]["start"]),
            f"{max(one['expected_gpus'] for one in some):.1f}",
            f"{max(one['needed_gpus'] for one in some):g}",
            f"{min(training):g}" if training else "–",
        )
    return table


def _trainings_table(trainings: Sequence[Tide]) -> Table:
    table = titled_table(
        "Trainings", "training", "pool", "replicas", "min", "max", "GPUs each", "drains in", "moves today", "state"
    )
    for one in trainings:
        state = "stopped" if one["stopped"] else "pods wait" if one["pods_wait"] else ""
        table.add_row(
            Text(one["training"]),
            Text(one["pool"]),
            str(one["replicas"]),
            str(one["min_replicas"]),
            str(one["max_replicas"]),
            f"{one['gpus_per_replica']:g}",
            short_duration(one["lead_seconds"]),
            str(one["moves_today"]),
            state,
        )
    return table


def _moves_table(title: str, moves: Sequence[Tide]) -> Table:
    table = titled_table(title, "at", "training", "move", "replicas", "why", "outcome")
    for one in moves[:_MOST_MOVES]:
        table.add_row(
            local_minute(one["at"]),
            Text(one["training"]),
            one["kind"],
            f"{one['before']} to {one['after']}",
            Text(one["why"]),
            Text(one["outcome"]),
        )
    return table
