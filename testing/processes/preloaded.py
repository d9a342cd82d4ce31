"""Imports all that services import, once for all processes that are forked from this one (forked_process.py)."""

from __future__ import annotations

import gc
from importlib import import_module

from forecast_scheduler.settings.document import Settings

for _name in (
    "forecast_scheduler.cli",
    "forecast_scheduler.commands.advise.driver",
    "forecast_scheduler.commands.autoscale_serve",
    "forecast_scheduler.commands.extender_setup",
    "forecast_scheduler.commands.rebalance.rebalance_serve",
    "forecast_scheduler.commands.schedule.schedule_serve",
    "forecast_scheduler.commands.scorer.scorer_setup",
    "forecast_scheduler.commands.webhook_setup",
    "extender.service.extender_app",
    "scheduler.service.scheduling_app",
    "scorer.service.app",
    "uvicorn.protocols.http.httptools_impl",  # chosen by name when a server starts
):
    import_module(_name)

Settings()  # pydantic makes the validators of all groups now

gc.freeze()  # so that pages stay shared
