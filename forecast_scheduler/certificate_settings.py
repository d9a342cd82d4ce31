"""Settings of the webhook's certificates, and the options that they stand for (docs/certificates.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import Field

from forecast.setting_group import Duration, SettingGroup

if TYPE_CHECKING:
    from admission.certificates.options import CertificateOptions

__all__ = ["CertificateSettings", "certificate_options"]


class CertificateSettings(SettingGroup):
    """Certificates that the webhook makes and renews itself, in place of files."""

    managed: bool = False
    """Make and renew the certificate; else `webhook.tls_cert` and `webhook.tls_key` name files that others renew."""

    secret: str = "forecast-scheduler/forecast-scheduler-webhook-certificates"
    """NAMESPACE/NAME of the Secret that all replicas share."""

    webhook_configuration: str = "forecast-scheduler"
    """Name of the MutatingWebhookConfiguration whose caBundle is kept right."""

    service: str = "forecast-scheduler/forecast-scheduler-webhook"
    """NAMESPACE/NAME of the Service by which the API server reaches the webhook."""

    names: list[str] = Field(default_factory=list)
    """Further DNS names and IP addresses that the certificate is good for, where a URL is called instead."""

    every: Duration = Field(default=60, gt=0)
    """How often Secret and caBundle are looked at."""

    lifetime: Duration = Field(default=30 * 86_400, gt=0)
    """Of the certificate; replaced after two thirds of it."""

    authority_lifetime: Duration = Field(default=365 * 86_400, gt=0)
    """Of the authority that signs it; replaced after two thirds of it."""

    ahead: Duration = Field(default=86_400, ge=0)
    """So long is a new authority in the caBundle before it signs."""

    settle: Duration = Field(default=10, ge=0)
    """So long must an authority have been in the caBundle before a certificate of it is shown."""


def certificate_options(settings: CertificateSettings) -> CertificateOptions:
    """Raises InputError."""
    from admission.certificates.options import CertificateOptions, Lifetimes, Named

    return CertificateOptions(
        secret=Named.of(settings.secret, "webhook.certificates.secret"),
        configuration=settings.webhook_configuration,
        service=Named.of(settings.service, "webhook.certificates.service"),
        names=tuple(settings.names),
        every_seconds=settings.every,
        lifetimes=Lifetimes(
            serving=timedelta(seconds=settings.lifetime),
            authority=timedelta(seconds=settings.authority_lifetime),
            ahead=timedelta(seconds=settings.ahead),
            settle=timedelta(seconds=settings.settle),
        ),
    )
