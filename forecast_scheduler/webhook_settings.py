"""Settings of the webhook: where it listens, with which certificate, what it writes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from forecast_scheduler.certificate_settings import CertificateSettings
from forecast_scheduler.serving_settings import ServingSettings

__all__ = ["WebhookSettings"]


class WebhookSettings(ServingSettings):
    """How `webhook` runs (docs/webhook.md). It needs `tls_cert` and `tls_key`, or `certificates.managed`."""

    group: ClassVar[str] = "webhook"

    anonymous: bool = True
    """Listen beyond this machine without asking who asks: API servers show neither token nor certificate by default."""

    port: int = Field(default=8443, ge=0, le=65_535)
    """0: any free one, which is printed; `--port`."""

    max_concurrent: int = Field(default=256, gt=0)
    """Requests at work at once; more are turned away with 503, and failurePolicy decides."""

    kubeconfig: Path | None = None
    """Cluster to follow. None: the one this process runs in, else $KUBECONFIG or ~/.kube/config; `--kubeconfig`."""

    statuses: bool = True
    """Write the statuses of templates and bindings, and watch pods for the figures in them."""

    certificates: CertificateSettings = CertificateSettings()

    @field_validator("kubeconfig")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()
