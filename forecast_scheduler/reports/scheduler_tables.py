"""What a running scheduler answers to `jobs`, `tide` and `tenants`, as tables for the terminal, from the same
dictionaries that `--json` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table

from forecast_scheduler.reports.table_format import Column, local_minute, plain, short_duration, table_of
from scorer.load_scale import UNKNOWN
from tenants.quota_amounts import in_short

_GIB = 2.0**30
_MOST_STORMS = 20
Plan = Mapping[str, Any]

_QUEUES = (
    Column("queue"),
    Column("order"),
    Column("owner"),
    Column("weight", form="{:g}".format),
    Column("share", form="{:.1%}".format),
    Column("running"),
    Column("waiting"),
)

Tenants = Mapping[str, Any]
_COLUMNS = ("used", "waiting", "borrowed", "lent", "owed", "may_borrow")
_HOURS_OF_TABLE = 8
_SAME: Tenants = dict.fromkeys(("tenant", "parent", "pods", "waiting_pods"), "")

_EVERY = 4
"""Half hours of a row."""

_MOST_MOVES = 30
Tide = Mapping[str, Any]

_TRAININGS = (
    Column("training"),
    Column("pool"),
    Column("replicas"),
    Column("min", "min_replicas"),
    Column("max", "max_replicas"),
    Column("GPUs each", "gpus_per_replica", "{:g}".format),
    Column("drains in", "lead_seconds", short_duration),
    Column("moves today", "moves_today"),
    Column("state", lambda one: "stopped" if one["stopped"] else "pods wait" if one["pods_wait"] else ""),
)

_MOVES = (
    Column("at", form=local_minute),
    Column("training"),
    Column("move", "kind"),
    Column("replicas", lambda one: f"{one['before']} to {one['after']}"),
    Column("why"),
    Column("outcome"),
)


def job_plan_tables(plan: Plan) -> Iterator[Table]:
    """Those that have anything to show."""
    if plan["jobs"]:
        yield table_of("Jobs that wait for their start", _JOBS, plan["jobs"])
    if plan["storms"]:
        yield table_of("Bursts ahead", _STORMS, plan["storms"][:_MOST_STORMS])
    if plan["providers"]:
        yield table_of("Providers of virtual nodes", _PROVIDERS, plan["providers"])
    if plan["queues"]:
        yield table_of("Queues", _QUEUES, plan["queues"])


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


def _of_quota(name: str, form: Callable[[float], str]) -> Callable[[Plan], str]:
    """Return what shows an amount of a provider, and its quota if it has one."""

    def shown(one: Plan) -> str:
        quota = one[f"quota_{name}"]
        return form(one[name]) if quota is None else f"{form(one[name])} of {form(quota)}"

    return shown


def _memory(amount: float) -> str:
    return f"{amount / _GIB:.1f} GiB"


_JOBS = (
    Column("pod", lambda job: f"{job['namespace']}/{job['name']}"),
    Column("of", "owner"),
    Column("start", form=local_minute),
    Column("latest", "latest_start", _latest),
    Column("runs", "run_seconds", short_duration),
    Column("why"),
)
_STORMS = (
    Column("from", "start", local_minute),
    Column("until", "end", local_minute),
    Column("pods", form="{:.0f}".format),
    Column("cores", "cpu_cores", "{:.1f}".format),
    Column("memory", "memory_bytes", _memory),
    Column(
        "reserved now", lambda one: f"{one['reserved_cpu_cores']:.1f} cores, {_memory(one['reserved_memory_bytes'])}"
    ),
    Column("state"),
)
_PROVIDERS = (
    Column("name"),
    Column("nodes"),
    Column("pods", _of_quota("pods", "{:g}".format)),
    Column("cores", _of_quota("cpu_cores", lambda cores: f"{round(cores, 1):g}")),
    Column("memory", _of_quota("memory_bytes", _memory)),
    Column("backs off until", "backs_off_until", local_minute),
    Column("state"),
)


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
    columns = (
        Column("tenant"),
        Column("part of", "parent", lambda parent: plain(parent or "")),
        Column(">pods"),
        Column(">wait", "waiting_pods"),
        Column("resource"),
        _in_short(">min"),
        _in_short(">max"),
        *(_in_short(f">{name.replace('_', ' ')}", name) for name in _COLUMNS),
    )
    return table_of("Tenants", columns, _by_resource(tenants), wrap_first=False)


def _by_hour(tenants: Sequence[Tenants], first: datetime, hours: range) -> Table:
    def of_hour(hour: int) -> Column:
        def shown(row: Tenants) -> str:
            if hour >= len(row["expected"]):
                return ""
            need, lent = (in_short(row["resource"], row[name][hour]) for name in ("expected", "will_lend"))
            return f"{need} ({lent})"

        return Column(f">{first + timedelta(hours=hour):%H:%M}", shown)

    columns = (Column("tenant"), Column("resource"), _in_short(">min"), *map(of_hour, hours))
    return table_of("Expected need (lent)", columns, _by_resource(tenants), wrap_first=False)


def _by_resource(tenants: Sequence[Tenants]) -> Iterator[Tenants]:
    """A row for each resource of a tenant; only the first says of which."""
    for one in tenants:
        for at, it in enumerate(one["resources"]):
            yield (_SAME if at else one) | it


def _in_short(head: str, name: str = "") -> Column:
    key = name or head.removeprefix(">")
    return Column(head, lambda row: None if row[key] is None else in_short(row["resource"], row[key]))


def tide_report_tables(tide: Tide) -> Iterator[Table]:
    """Those that have anything to show."""
    for pool in tide["pools"]:
        yield _pool_table(pool)
    if tide["trainings"]:
        yield table_of("Trainings", _TRAININGS, tide["trainings"])
    for key, title in (("moves", "Moves that were made"), ("ahead", "Moves ahead")):
        if tide[key]:
            yield table_of(title, _MOVES, tide[key][:_MOST_MOVES])


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
    points = pool["ahead"]
    rows = [points[start : start + _EVERY] for start in range(0, len(points), _EVERY)]
    return table_of(title, _POINTS, rows)


def _least_training(some: Sequence[Tide]) -> str:
    training = [one["training_gpus"] for one in some if one["training_gpus"] is not None]
    return f"{min(training):g}" if training else UNKNOWN


_POINTS = (
    Column("from", lambda some: local_minute(some[0]["start"])),
    Column("inference expects", lambda some: f"{max(one['expected_gpus'] for one in some):.1f}"),
    Column("kept for it", lambda some: f"{max(one['needed_gpus'] for one in some):g}"),
    Column("training", _least_training),
)
