"""Settings of the webhook: `webhook`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from admission.advice.options import AdviceGateOptions
from admission.certificates.options import CertificateOptions
from base.setting_group import Duration
from serving.options import ServingOptions


class WebhookOptions(ServingOptions):
    """How `webhook` runs (docs/operate/webhook.md). It needs `tls_cert` and `tls_key`, or `certificates.managed`.

    docs/operate/webhook.md says how an API server sends a token.
    """

    group: ClassVar[str] = "webhook"

    anonymous: bool = True
    """Listen beyond this machine without asking who asks: API servers show neither token nor certificate by default."""

    port: int = Field(default=8443, ge=0, le=65_535)
    """0: any free one, which is printed; `--port`."""

    max_body_bytes: int = Field(default=3 * 2**20, gt=0)
    """Size of a request; the API server takes requests up to 3 MiB. All bodies together get 8 times as much memory."""

    max_concurrent: int = Field(default=256, gt=0)
    """Requests at work at once; more are turned away with 503, and failurePolicy decides."""

    receive_timeout: Duration = Field(default=5, gt=0)
    """A body must have arrived by then."""

    kubeconfig: Path | None = None
    """Cluster to follow. None: the one this process runs in, else $KUBECONFIG or ~/.kube/config; `--kubeconfig`."""

    statuses: bool = True
    """Write the statuses of templates and bindings, and watch pods for the figures in them."""

    advice: AdviceGateOptions = Field(default_factory=AdviceGateOptions)
    certificates: CertificateOptions = Field(default_factory=CertificateOptions)

    @field_validator("kubeconfig")
    @classmethod
    def _expand(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser()
