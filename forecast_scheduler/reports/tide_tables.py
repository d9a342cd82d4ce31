"""The tide of the GPU profile as tables for the terminal, from the same dictionary that `--json` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from forecast_scheduler.reports.table_format import local_minute, short_duration, titled_table

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
