"""Tenants of a cluster file, by the tables of `schedule` in memory."""

from __future__ import annotations

from typing import Any

import msgspec

from base.errors import InputError
from forecast_scheduler.commands.schedule.dry_run import open_dry_loop
from forecast_scheduler.commands.scorer.setup import Inputs, check_inputs
from forecast_scheduler.settings.document import Settings
from tenants.answers import tenants_answer
from tenants.live_report import live_report


def tenants_of_file(settings: Settings, inputs: Inputs, *, hours: int, namespace: str | None) -> dict[str, Any]:
    """Return what /v1/tenants of a `schedule` process would answer. Raises InputError."""
    check_inputs(inputs)
    with open_dry_loop(settings, inputs) as (scorer, background, world):
        background.look_for_model()
        scorer.tables.tick()
        tenants = world.loop.tables.tenants
        if tenants is None:
            raise InputError("quotas are not heeded: set schedule.tenants.enabled to true")
        if tenants.need is not None:
            tenants.need.refresh()
        report = live_report(scorer.tables, tenants.quotas, tenants.need, n_hours=hours)
    found: dict[str, Any] = msgspec.to_builtins(tenants_answer(report, namespace))
    return found
