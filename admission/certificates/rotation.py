"""What to do about the certificates now. Pure: the Secret's content, what is trusted, and the time go in.

    authority   made ──────────── 2/3 of its life: PREPARE ── ahead: PROMOTE ──── its end
                  signs ─────────────────────────────────────────┘  trusted ──────┘
    the next                      trusted, does not sign ────────┴─ signs ─────────── ...

A certificate ends before the authority that signed it. So an authority that is trusted until its own end is trusted for
the life of every certificate it signed.

The webhook shows a certificate once the API server trusts its authority (may_serve). Until then it shows the one
before, whose authority is still trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum

from cryptography import x509

from admission.certificates.authority import (
    BACKDATED,
    Pair,
    fingerprint,
    is_ours,
    is_signed_by,
    issue,
    issued_at,
    names_of,
    new_authority,
)
from admission.certificates.certificate_secret import SecretContent, earlier, unended
from admission.webhook_settings import Lifetimes

Trusted = Set[bytes] | None
"""Fingerprints in the caBundle of every webhook that leads to us; None = there is no such webhook."""

_MAX_NAMES = 64


class RotationStep(Enum):
    """Each is one write of the Secret, but for KEEP."""

    KEEP = "all is well"
    START = "a new authority and certificate"
    REPAIR = "written again: a part could not be read, or the Secret was exchanged for another"
    PREPARE = "a next authority, to be trusted ahead of its time"
    NOTE = "the next authority is trusted from now on"
    PROMOTE = "the next authority signs"
    RENEW = "a new certificate"


def next_step(
    held: SecretContent | None,
    trusted: Trusted,
    names: Iterable[str],
    lifetimes: Lifetimes,
    now: datetime,
    *,
    signer: x509.Certificate | None = None,
) -> RotationStep:
    """The first thing to do.

    held   : None = there is nothing in the Secret that could be used
    signer : of the certificate that is shown; None = none is
    """
    if held is None:
        return RotationStep.START
    upcoming = held.upcoming
    if upcoming is not None and not _is_good(upcoming.certificate, now):
        upcoming = None
    if not _is_good(held.authority.certificate, now):
        return RotationStep.START if upcoming is None else RotationStep.PROMOTE
    if held.broken or (signer is not None and not set(unended([signer], now)) <= set(held.bundle(now))):
        return RotationStep.REPAIR
    if upcoming is not None:
        if trusted is None or fingerprint(upcoming.certificate) in trusted:
            if held.trusted_at is None or held.trusted_at > now:
                return RotationStep.NOTE
            near_the_end = held.authority.certificate.not_valid_after_utc - now < lifetimes.ahead
            if now >= held.trusted_at + lifetimes.ahead or near_the_end:
                return RotationStep.PROMOTE
    elif _is_due(held.authority.certificate, lifetimes.authority, now):
        return RotationStep.PREPARE
    return RotationStep.RENEW if _needs_renewal(held, names, lifetimes, now) else RotationStep.KEEP


def advanced(
    held: SecretContent | None,
    step: RotationStep,
    published: Iterable[x509.Certificate],
    names: Sequence[str],
    lifetimes: Lifetimes,
    now: datetime,
    *,
    signer: x509.Certificate | None = None,
) -> SecretContent:
    """The Secret's content after a step.

    published : authorities in the caBundle. Where the Secret is lost or broken, those of ours stay trusted: a replica
                may show a certificate of theirs still
    signer    : see next_step; stays trusted, too
    """
    # First who signed what is shown, that must stay. Authorities of others in the caBundle are not ours to keep.
    shown = () if signer is None else (signer,)
    ours = tuple(one for one in published if is_ours(one))
    if held is None:
        authority = new_authority(now, lifetimes.authority)
        previous = earlier((*shown, *ours), authority, now)
        return SecretContent(authority, issue(authority, names, now, lifetimes.serving), previous=previous)
    match step:
        case RotationStep.START:
            authority = new_authority(now, lifetimes.authority)
            previous = earlier((*shown, held.authority.certificate, *held.previous, *ours), authority, now)
            return SecretContent(authority, issue(authority, names, now, lifetimes.serving), previous=previous)
        case RotationStep.PROMOTE:
            assert held.upcoming is not None
            authority = held.upcoming
            lost = ours if held.broken else ()
            previous = earlier((*shown, held.authority.certificate, *held.previous, *lost), authority, now)
            return SecretContent(authority, issue(authority, names, now, lifetimes.serving), previous=previous)
        case RotationStep.PREPARE:
            upcoming = new_authority(now, lifetimes.authority)
            # An earlier authority that signed nothing was trusted for nothing.
            return replace(_pruned(held, now), upcoming=upcoming, trusted_at=None)
        case RotationStep.NOTE:
            return replace(_pruned(held, now), trusted_at=now)
        case RotationStep.REPAIR:
            others = [*shown, *held.previous, *ours]
            if held.upcoming is not None:
                others = [one for one in others if one != held.upcoming.certificate]
            previous = earlier(others, held.authority, now)
            serving = held.serving or issue(held.authority, names, now, lifetimes.serving)
            return replace(held, serving=serving, previous=previous, broken=())
        case RotationStep.RENEW:
            return replace(
                _pruned(held, now), serving=issue(held.authority, _names(held, names, now), now, lifetimes.serving)
            )
        case RotationStep.KEEP:
            return held


def may_serve(
    candidate: Pair,
    shown: x509.Certificate | None,
    trusted_for: timedelta | None,
    lifetimes: Lifetimes,
    now: datetime,
) -> bool:
    """Whether a certificate of the Secret may be shown in place of the one that is shown now.

    trusted_for : since when its issuer was found in the caBundle; None = it is not there
    """
    if shown is not None and fingerprint(shown) == fingerprint(candidate.certificate):
        return False
    if trusted_for is None:
        return False
    # With nothing else to show there is nothing to wait for.
    return shown is None or not _is_good(shown, now) or trusted_for >= lifetimes.settle


def _needs_renewal(held: SecretContent, names: Iterable[str], lifetimes: Lifetimes, now: datetime) -> bool:
    if held.serving is None:
        return True
    certificate = held.serving.certificate
    return (
        not is_signed_by(certificate, held.authority.certificate)
        or _is_due(certificate, lifetimes.serving, now)
        or not names_of(certificate) >= set(names)
    )


def _names(held: SecretContent, names: Sequence[str], now: datetime) -> tuple[str, ...]:
    """Names for a new certificate.

    Replicas of two versions may want different ones for a while; if each took only its own, they would take turns for
    ever.
    """
    if held.serving is None:
        return tuple(names)
    before = names_of(held.serving.certificate)
    if before >= set(names) or not _is_good(held.serving.certificate, now):
        return tuple(names)
    return tuple(dict.fromkeys((*names, *sorted(before))))[:_MAX_NAMES]


def _pruned(held: SecretContent, now: datetime) -> SecretContent:
    return replace(held, previous=earlier(held.previous, held.authority, now))


def _is_good(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _is_due(certificate: x509.Certificate, lifetime: timedelta, now: datetime) -> bool:
    """Whether two thirds of its life are over, or it is from the future: of a clock that was wrong."""
    made = issued_at(certificate)
    life = min(certificate.not_valid_after_utc - made, lifetime)
    return now >= made + life * 2 / 3 or now < made - BACKDATED
