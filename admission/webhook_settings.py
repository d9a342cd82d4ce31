"""Settings of the webhook, `webhook`: who may ask, advice at admission, and managed certificates."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, field_validator

from base.errors import InputError
from base.setting_group import SettingGroup
from placement.gate_exemptions import AdviceMode
from serving.remote_service import RemoteServiceOptions
from serving.server_settings import ServingOptions

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_MAX_NAMES = 32


@dataclass(frozen=True, slots=True)
class Named:
    """An object in a namespace."""

    namespace: str
    name: str

    @classmethod
    def of(cls, text: str, what: str) -> Named:
        """NAMESPACE/NAME. Raises InputError."""
        namespace, slash, name = text.partition("/")
        if not slash or not re.fullmatch(_LABEL, namespace) or not _HOST.fullmatch(name):
            raise InputError(f"{what} is {text!r}: write NAMESPACE/NAME")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates are good; all are replaced after two thirds of it. An authority signs for two thirds of its
    life and the time ahead: `serving` and `ahead` together are a third of it at most, so that what it signs last ends
    before it does.

    serving   : of the certificate the webhook shows
    authority : of who signs it
    ahead     : time for which a new authority is trusted before it signs
    settle    : time for which an authority is trusted before a certificate of it is shown: API servers need a moment to
                read it
    """

    serving: timedelta = timedelta(days=30)
    authority: timedelta = timedelta(days=365)
    ahead: timedelta = timedelta(days=1)
    settle: timedelta = timedelta(seconds=10)


def _named(value: Any) -> Any:
    """An object of "NAMESPACE/NAME"."""
    try:
        return Named.of(value, "this") if isinstance(value, str) else value
    except InputError:
        raise ValueError("write NAMESPACE/NAME") from None


class CertificateOptions(SettingGroup):
    """Certificates that the webhook makes and renews itself, in place of files (docs/operate/webhook.md)."""

    managed: bool = False
    """Make and renew the certificate. If false, `webhook.serving.tls_cert` names a file that others
    renew."""

    secret: Annotated[Named, BeforeValidator(_named)] = Named(
        "forecast-scheduler", "forecast-scheduler-webhook-certificates"
    )
    """NAMESPACE/NAME of the Secret that all replicas share. It holds authority, certificate and keys."""

    webhook_configuration: str = "forecast-scheduler"
    """Name of the MutatingWebhookConfiguration whose caBundle is kept right."""

    service: Annotated[Named, BeforeValidator(_named)] = Named("forecast-scheduler", "forecast-scheduler-webhook")
    """NAMESPACE/NAME of the Service by which the API server reaches the webhook."""

    names: tuple[str, ...] = ()
    """Further DNS names and IP addresses that the certificate is good for, where a URL is called instead."""

    every: ClassVar[float] = 60.0
    """Seconds between two looks at Secret and caBundle."""

    lifetimes: ClassVar[Lifetimes] = Lifetimes()

    @field_validator("webhook_configuration")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not _HOST.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a MutatingWebhookConfiguration: "
                "`kubectl get mutatingwebhookconfigurations` lists those that are there"
            )
        return name

    @field_validator("names")
    @classmethod
    def _are_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(names) > _MAX_NAMES:
            raise ValueError(f"{len(names)} further names for a certificate: {_MAX_NAMES} are allowed")
        for name in names:
            if not (_HOST.fullmatch(canonical(name)) or _is_address(canonical(name))):
                raise ValueError(f"{name!r} is neither a DNS name nor an IP address: correct the certificate's names")
        # As they are read back from a certificate: else it would never be good for them.
        return tuple(map(canonical, names))

    @property
    def all_names(self) -> tuple[str, ...]:
        """What the certificate is good for; the first is what the API server asks for."""
        # https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#service-reference
        short = f"{self.service.name}.{self.service.namespace}"
        return tuple(dict.fromkeys((f"{short}.svc", f"{short}.svc.cluster.local", short, *self.names)))


def canonical(name: str) -> str:
    """An IP address in the one way of writing it; anything else as it is. RFC 5952"""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    # A zone (fe80::1%eth0) means something on one machine only; certificates have none.
    return getattr(address, "scope_id", None) is None


class AdvisorOptions(RemoteServiceOptions):
    """Where the advisor is asked which nodes a pod prefers. Only pods of the mode `prefer` need it."""

    url: str | None = None
    """For instance http://forecast-scheduler-advisor.forecast-scheduler:8890. None: pods prefer nothing."""

    timeout: ClassVar[float] = 0.3
    """Seconds after which a pod about which there is no answer is created without preferences: its creation waits."""


class AdviceGateOptions(SettingGroup):
    """Which new pods are held for the advisor, or prefer nodes (docs/use/advisor.md). The label
    forecast-scheduler.io/advice of a pod or its namespace asks for it: `advise`, `prefer` or `off`."""

    enabled: bool = True
    """Hold pods that ask for it, or let them prefer nodes, while an advisor is alive: without one, nothing is done."""

    unlabelled: AdviceMode = AdviceMode.OFF
    """What pods ask for that have no such label, nor has their namespace."""

    scheduler_names: list[str] = Field(default_factory=lambda: ["default-scheduler"], min_length=1)
    """schedulerNames of the kube-scheduler that is advised; pods of others are left alone."""

    alive_for: ClassVar[float] = 2.0
    """An advisor that has not renewed its Lease for so many seconds counts as dead: new pods are not held. It renews it
    twice a second."""

    advisor: AdvisorOptions = Field(default_factory=AdvisorOptions)


class WebhookServing(ServingOptions):
    """Where `webhook` listens, and who may ask."""

    group: ClassVar[str] = "webhook.serving"

    port: int = Field(default=8443, ge=0, le=65_535)

    # API servers show neither token nor certificate by default.
    anonymous: bool = True


class WebhookOptions(SettingGroup):
    """How `webhook` runs (docs/operate/webhook.md). It needs `serving.tls_cert`, or `certificates.managed`.

    docs/operate/webhook.md says how an API server sends a token.
    """

    serving: WebhookServing = Field(default_factory=WebhookServing)

    receive_timeout: ClassVar[float] = 5.0
    """Seconds until a body must have arrived."""

    statuses: bool = True
    """Write the statuses of templates and bindings, and watch pods for the figures in them."""

    advice: AdviceGateOptions = Field(default_factory=AdviceGateOptions)
    certificates: CertificateOptions = Field(default_factory=CertificateOptions)
