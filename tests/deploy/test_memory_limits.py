"""What clients can make a service hold at most, beside what it needs itself, fits into its memory limit in deploy/."""

from __future__ import annotations

import pytest

from admission.webhook_settings import WebhookOptions
from advisor.advice_settings import AdviseOptions
from autoscaling.autoscale_settings import AutoscaleOptions
from forecast_scheduler.settings.sections import ExtenderSettings, ScorerSettings
from profiles.schedule_settings import ScheduleSettings
from rebalancer.rebalance_settings import RebalanceOptions
from serving.body_budget import BODIES_IN_ALL, BYTES_OF_A_VALUE, FREE_BYTES
from serving.connections import MOST_BESIDE_BODY, MOST_UNREAD
from serving.server_settings import ServerOptions, ServingOptions
from serving.tls import MOST_HANDSHAKES
from tests.processes.floods import MIB, memory_limit

OWN = {
    "scorer": 350,
    "extender": 350,
    "schedule": 450,
    "advisor": 450,
    "rebalancer": 600,
    "autoscaler": 450,
    "webhook": 110,
}
"""MiB with 1,000 nodes and their model (docs/understand/results.md), in the webhook's case with hundreds of templates.
The autoscaler holds the same tables as the advisor, and is taken as it: it was not measured by itself."""
OF_A_CONNECTION = 256 * 1024  # with TLS and all its buffers full; 200 are measured
OF_A_HANDSHAKE = 56 * 1024
OF_A_VALUE = 500  # bytes that a decoder makes of it at most


@pytest.mark.parametrize(
    ("part", "settings"),
    [
        ("scorer", ScorerSettings().serving),
        ("extender", ExtenderSettings().serving),
        ("schedule", ScheduleSettings().serving),
        ("advisor", AdviseOptions().serving),
        ("rebalancer", RebalanceOptions().serving),
        ("autoscaler", AutoscaleOptions().serving),
        ("webhook", WebhookOptions().serving),
    ],
)
def test_all_that_clients_can_make_a_service_hold_fits(part: str, settings: ServingOptions) -> None:
    room = BODIES_IN_ALL * settings.max_body_bytes
    bodies = room + settings.max_body_bytes  # one is joined from its parts
    beginnings = settings.max_concurrent * FREE_BYTES
    connections = ServerOptions().connections * (OF_A_CONNECTION + MOST_BESIDE_BODY) + MOST_HANDSHAKES * OF_A_HANDSHAKE
    # The large one at work, and small ones together.
    decoded = 2 * settings.max_body_bytes // BYTES_OF_A_VALUE * OF_A_VALUE
    most = OWN[part] * MIB + bodies + beginnings + connections + decoded + MOST_UNREAD
    assert most < memory_limit(part), f"{most / MIB:.0f} MiB"
