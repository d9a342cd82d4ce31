"""Serves loops over HTTP while they run: those of `schedule`, and that of `advise`."""

from __future__ import annotations

import sys
from typing import Final

from forecast_scheduler.commands.schedule.live import Driver, open_schedule
from forecast_scheduler.commands.scorer.scorer_setup import Inputs
from forecast_scheduler.commands.serving_access import check_exposed, hosts_of, kubernetes_access
from forecast_scheduler.commands.shell import Shell
from forecast_scheduler.settings.document import Settings
from forecast_scheduler.settings.feature_options import schedule_service_options
from scheduler.service.scheduling_app import create_app
from serving.server import ScorerServer
from serving.server_settings import ServingOptions

_SWITCH_SECONDS: Final = 0.001
"""Between threads. With Python's 5 ms binding, which waits for the API server in one thread, came to half of its rate
while another thread decided."""


def serve(
    shell: Shell,
    settings: Settings,
    inputs: Inputs,
    *,
    name: str = "schedule",
    driver: Driver | None = None,
    serving: ServingOptions | None = None,
) -> None:
    """Run loops until SIGTERM or Ctrl-C. Raises InputError, see open_schedule.

    name    : of the command
    driver  : None = our own loops
    serving : the settings that say where they serve; None = settings.schedule
    """
    serving = serving or settings.schedule
    check_exposed(serving)
    sys.setswitchinterval(_SWITCH_SECONDS)
    with open_schedule(settings, inputs, driver=driver) as live:
        app = create_app(
            live.scorer,
            live.scheduling,
            live.metrics,
            schedule_service_options(settings),
            access=kubernetes_access(serving, inputs.kubeconfig or settings.scorer.kubeconfig),
            collectors=live.collectors,
            routers=live.routers,
            bodies=live.bodies,
            hosts=hosts_of(serving),
        )
        server = ScorerServer(app, serving, on_started=lambda url: shell.say(f"{name}: {url}"))
        with live.background, live.running():
            server.run()
    shell.say(f"{name}: ended")
