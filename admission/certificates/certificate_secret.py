"""What the Secret holds, read with tolerance and written whole.

ca.crt, ca.key                       who signs now
tls.crt, tls.key                     the certificate that is shown, of ca.crt
next.crt, next.key, next.published   who will sign next; since when it is trusted
previous.crt                         who signed before and is still trusted
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509

from admission.certificates.authority import Pair, fingerprint, is_signed_by, read_certificates, read_pair, to_pem

KEYS: Final = (
    "ca.crt", "ca.key", "tls.crt", "tls.key", "next.crt", "next.key", "next.published", "previous.crt",
)  # fmt: skip
_MOST_TRUSTED: Final = 8
"""Authorities follow each other after two thirds of their lives: two or three are seen together."""
_MOST_PREVIOUS: Final = _MOST_TRUSTED - 2
"""Who signs now and who will sign next are trusted, too."""


@dataclass(frozen=True, slots=True)
class SecretContent:
    """
    authority  : signs the serving certificate
    serving    : None = cannot be used, or is not there
    upcoming   : signs next; None = not made yet
    trusted_at : since when `upcoming` is known to be in the caBundle; None = not yet
    previous   : signed before
    broken     : what could not be read, in words; () = all is well
    """

    authority: Pair
    serving: Pair | None = None
    upcoming: Pair | None = None
    trusted_at: datetime | None = None
    previous: tuple[x509.Certificate, ...] = ()
    broken: tuple[str, ...] = ()

    def bundle(self, now: datetime) -> tuple[x509.Certificate, ...]:
        """Return all authorities to trust."""
        upcoming = () if self.upcoming is None else (self.upcoming.certificate,)
        return unended((self.authority.certificate, *upcoming, *self.previous), now)


def held_from(data: Mapping[str, bytes]) -> SecretContent:
    """What a Secret's data say. Raises ValueError where there is no authority that could sign; see
    SecretContent.broken."""
    broken: list[str] = []
    authority = _signer(data, "ca")
    serving = upcoming = None
    try:
        serving = read_pair(data.get("tls.crt", b""), data.get("tls.key", b""))
    except ValueError as error:
        broken.append(f"tls.crt: {error}")
    if data.get("next.crt") or data.get("next.key"):
        try:
            upcoming = _signer(data, "next")
        except ValueError as error:
            broken.append(f"next.crt: {error}")
    previous: tuple[x509.Certificate, ...] = ()
    try:
        previous = read_certificates(data.get("previous.crt", b""))
    except ValueError as error:
        broken.append(f"previous.crt: {error}")
    trusted_at = None
    if upcoming is not None and (text := data.get("next.published")):
        try:
            trusted_at = datetime.fromisoformat(text.decode())
            trusted_at.timestamp()
            if trusted_at.tzinfo is None:
                raise ValueError("without a zone")
        except (ValueError, OverflowError):
            trusted_at = None
            broken.append("next.published: not a time")
    return SecretContent(authority, serving, upcoming, trusted_at, previous, tuple(broken))


def secret_data(held: SecretContent) -> dict[str, bytes | None]:
    """The Secret's data; None = to be removed. Raises ValueError without a serving certificate."""
    if held.serving is None:
        raise ValueError("a Secret is written with a serving certificate")
    data: dict[str, bytes | None] = dict.fromkeys(KEYS)
    data["ca.crt"], data["ca.key"] = to_pem([held.authority.certificate]), held.authority.key_pem
    data["tls.crt"], data["tls.key"] = to_pem([held.serving.certificate]), held.serving.key_pem
    if held.upcoming is not None:
        data["next.crt"], data["next.key"] = to_pem([held.upcoming.certificate]), held.upcoming.key_pem
        if held.trusted_at is not None:
            data["next.published"] = held.trusted_at.isoformat(timespec="seconds").encode()
    if held.previous:
        data["previous.crt"] = to_pem(held.previous)
    return data


def unended(certificates: Iterable[x509.Certificate], now: datetime) -> tuple[x509.Certificate, ...]:
    """Each once, without those that have ended; a few at most, the first ones."""
    found: dict[bytes, x509.Certificate] = {}
    for one in certificates:
        if now < one.not_valid_after_utc:
            found.setdefault(fingerprint(one), one)
    return tuple(found.values())[:_MOST_TRUSTED]


def earlier(certificates: Iterable[x509.Certificate], authority: Pair, now: datetime) -> tuple[x509.Certificate, ...]:
    """SecretContent.previous beside that authority: so many that none is missing in SecretContent.bundle, the first
    ones."""
    others = (one for one in certificates if one != authority.certificate)
    return unended(others, now)[:_MOST_PREVIOUS]


def _signer(data: Mapping[str, bytes], name: str) -> Pair:
    pair = read_pair(data.get(f"{name}.crt", b""), data.get(f"{name}.key", b""))
    try:
        constraints = pair.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = None
    if constraints is None or not constraints.ca:
        raise ValueError("it is not the certificate of an authority")
    if not is_signed_by(pair.certificate, pair.certificate):
        raise ValueError("it is damaged: its signature is not its own")
    return pair
