"""The webhook in front of a real API server, with every new pod preferring nodes that an advisor names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api, WebhookProcess, configuration
from testing.servers.cluster_objects import pod
from testing.servers.control_plane.control_plane import ControlPlane
from testing.waiting import eventually

_PATIENCE_SECONDS = 60.0


@contextmanager
def preferring_webhook(
    plane: ControlPlane, directory: Path, advisor: ScorerProcess, *, timeout: str = "300ms"
) -> Iterator[WebhookProcess]:
    """Yield it once a new pod prefers nodes; the advisor must renew its Lease. timeout: for an answer; as shipped"""
    if not eventually(lambda: advisor.metric("forecast_degradation_level") < 3, _PATIENCE_SECONDS):
        raise RuntimeError(f"the advisor found no model: {advisor.log[-3000:]}")
    advice = {"unlabelled": "prefer", "advisor": {"url": advisor.url, "timeout": timeout}}
    settings = {"webhook": {"advice": advice, "statuses": False}}
    with Api(plane) as api:
        if not api.crds_are_served():
            api.install_crds()
        with WebhookProcess(directory, plane.kubeconfig, settings=settings) as webhook:
            made = configuration(webhook)
            api.create(made)
            try:
                tried = pod("tried")
                if not eventually(lambda: "affinity" in api.create(tried, "?dryRun=All")["spec"], _PATIENCE_SECONDS):
                    raise RuntimeError(f"no pod prefers anything: {webhook.log[-3000:]} {advisor.log[-3000:]}")
                yield webhook
            finally:
                api.delete(made)
