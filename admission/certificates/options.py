"""How managed certificates are set up: whose, kept where, and for how long they are good."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from datetime import timedelta

from forecast.errors import InputError

__all__ = ["CertificateOptions", "Lifetimes", "Named", "canonical"]

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
    """How long certificates are good; all are replaced after two thirds of it.

    serving   : of the certificate the webhook shows
    authority : of who signs it
    ahead     : so long is a new authority trusted before it signs anything
    settle    : so long must an authority have been trusted before a certificate of it is shown: the API servers need a
                moment to hear of it
    """

    serving: timedelta = timedelta(days=30)
    authority: timedelta = timedelta(days=365)
    ahead: timedelta = timedelta(days=1)
    settle: timedelta = timedelta(seconds=10)

    def __post_init__(self) -> None:
        if self.serving <= timedelta() or self.ahead < timedelta() or self.settle < timedelta():
            raise InputError("lifetimes of certificates must be above 0")
        if self.serving + self.ahead > self.authority / 3:
            # It signs for two thirds of its life and the time ahead; what it signs last must end before it does.
            raise InputError(
                f"a certificate authority of {_days(self.authority)} cannot sign certificates of {_days(self.serving)} "
                f"with {_days(self.ahead)} ahead: both together may be a third of its lifetime at most"
            )


@dataclass(frozen=True, slots=True)
class CertificateOptions:
    """
    secret        : where authority, certificate and keys are kept
    configuration : name of the MutatingWebhookConfiguration whose caBundle is kept right
    service       : by which the API server reaches the webhook
    names         : further DNS names and IP addresses that the certificate is good for; canonical
    every_seconds : between two looks at Secret and caBundle
    """

    secret: Named
    configuration: str
    service: Named
    names: tuple[str, ...] = ()
    every_seconds: float = 60.0
    lifetimes: Lifetimes = field(default_factory=Lifetimes)

    def __post_init__(self) -> None:
        if not _HOST.fullmatch(self.configuration):
            raise InputError(
                f"{self.configuration!r} is no name of a MutatingWebhookConfiguration: "
                "`kubectl get mutatingwebhookconfigurations` lists those that are there"
            )
        if len(self.names) > _MAX_NAMES:
            raise InputError(f"{len(self.names)} further names for a certificate: {_MAX_NAMES} are allowed")
        # As they are read back from a certificate: else it would never be good for them.
        object.__setattr__(self, "names", tuple(map(canonical, self.names)))
        for name in self.names:
            if not (_HOST.fullmatch(name) or _is_address(name)):
                raise InputError(f"{name!r} is neither a DNS name nor an IP address: correct the certificate's names")

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


def _days(span: timedelta) -> str:
    return f"{span / timedelta(days=1):g} days"
