from __future__ import annotations

import ssl
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization

from admission.certificates.authority import Pair, fingerprint, is_signed_by, issue, new_authority, to_pem
from admission.certificates.certificate_secret import SecretContent, held_from, secret_data, unended
from admission.certificates.rotation import RotationStep, Trusted, advanced, may_serve, next_step
from admission.webhook_settings import Lifetimes
from tests.admission.certificates.certificate_world import NAME, START

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
LIVES = Lifetimes()
NAMES = (NAME,)
AUTHORITY = new_authority(START, LIVES.authority)
UPCOMING = new_authority(START + 244 * DAY, LIVES.authority)
FRESH = SecretContent(AUTHORITY, issue(AUTHORITY, NAMES, START, LIVES.serving))
BOTH: Trusted = {fingerprint(AUTHORITY.certificate), fingerprint(UPCOMING.certificate)}
ONE: Trusted = {fingerprint(AUTHORITY.certificate)}


def held_at(now: datetime, *, upcoming: Pair | None = None, trusted_at: datetime | None = None) -> SecretContent:
    """With a certificate made a moment ago."""
    return SecretContent(AUTHORITY, issue(AUTHORITY, NAMES, now, LIVES.serving), upcoming, trusted_at)


def step(
    held: SecretContent | None, now: datetime, trusted: Trusted = BOTH, names: tuple[str, ...] = NAMES
) -> RotationStep:
    return next_step(held, trusted, names, LIVES, now)


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (timedelta(), RotationStep.KEEP),
        (20 * DAY - HOUR, RotationStep.KEEP),
        (20 * DAY, RotationStep.RENEW),
        (31 * DAY, RotationStep.RENEW),
        (243 * DAY, RotationStep.RENEW),
        (244 * DAY, RotationStep.PREPARE),
        (366 * DAY, RotationStep.START),
        (-timedelta(minutes=30), RotationStep.KEEP),
    ],
)
def test_by_age(age: timedelta, expected: RotationStep) -> None:
    assert step(FRESH, START + age) is expected


def test_no_secret_is_a_start_and_another_name_or_authority_a_renewal() -> None:
    assert step(None, START) is step(None, START, None) is RotationStep.START
    assert step(FRESH, START, names=(NAME, "more.example")) is RotationStep.RENEW
    renewed = advanced(FRESH, RotationStep.RENEW, (), (NAME, "more.example"), LIVES, START)
    assert step(renewed, START, names=(NAME, "more.example")) is RotationStep.KEEP
    assert step(replace(FRESH, serving=issue(UPCOMING, NAMES, START, LIVES.serving)), START) is RotationStep.RENEW


@pytest.mark.parametrize(
    ("age", "trusted_for", "trusted", "expected"),
    [
        (245 * DAY, None, ONE, RotationStep.KEEP),
        (245 * DAY, None, BOTH, RotationStep.NOTE),
        (245 * DAY, DAY - HOUR, BOTH, RotationStep.KEEP),
        (245 * DAY, DAY, BOTH, RotationStep.PROMOTE),
        (245 * DAY, -DAY, BOTH, RotationStep.NOTE),  # a time in the future
        (250 * DAY, 5 * DAY, ONE, RotationStep.KEEP),  # a webhook does not trust it
        (250 * DAY, 5 * DAY, None, RotationStep.PROMOTE),
        (365 * DAY - 2 * HOUR, HOUR, BOTH, RotationStep.PROMOTE),  # near the end there is no whole day left
        (365 * DAY - 2 * HOUR, HOUR, ONE, RotationStep.KEEP),
    ],
)
def test_when_the_next_authority_signs(
    age: timedelta, trusted_for: timedelta | None, trusted: Trusted, expected: RotationStep
) -> None:
    now = START + age
    held = held_at(now, upcoming=UPCOMING, trusted_at=None if trusted_for is None else now - trusted_for)
    assert step(held, now, trusted) is expected


@pytest.mark.parametrize("kind", list(RotationStep))
def test_every_step_leads_to_a_secret_that_is_read_back(kind: RotationStep) -> None:
    now = START + 246 * DAY
    before = replace(held_at(now, upcoming=UPCOMING, trusted_at=now - DAY), broken=("something",))
    after = advanced(before, kind, (AUTHORITY.certificate, UPCOMING.certificate), NAMES, LIVES, now)
    data = {key: value for key, value in secret_data(after).items() if value is not None}
    read = held_from(data)
    assert secret_data(read) == secret_data(after)
    assert read.bundle(now) == after.bundle(now)
    assert read.broken == ()


def test_an_authority_that_has_ended_gives_way_and_few_are_trusted() -> None:
    assert step(SecretContent(AUTHORITY, None, UPCOMING), START + 366 * DAY, ONE) is RotationStep.PROMOTE
    ended = new_authority(START - 400 * DAY, LIVES.authority)
    now = START + 245 * DAY
    held = held_at(now, upcoming=ended, trusted_at=START)
    assert step(held, now) is RotationStep.PREPARE
    after = advanced(held, RotationStep.PREPARE, (), NAMES, LIVES, now)
    assert after.upcoming is not None and after.upcoming != ended and after.trusted_at is None
    many = [new_authority(START, LIVES.authority).certificate for _ in range(12)]
    assert unended([*many, many[0]], START) == tuple(many[:8])
    assert unended([many[0], many[1], many[0]], START) == (many[0], many[1])
    assert unended(many, START + 365 * DAY) == ()


@pytest.mark.parametrize(
    ("shown_age", "trusted_for", "expected"),
    [
        (None, None, False),  # no API server would trust it
        (None, timedelta(), True),  # nothing else to show
        (DAY, None, False),
        (DAY, timedelta(seconds=9), False),
        (DAY, timedelta(seconds=10), True),
        (31 * DAY, timedelta(), True),  # what is shown has ended
        (31 * DAY, None, False),
    ],
)
def test_what_may_be_shown(shown_age: timedelta | None, trusted_for: timedelta | None, expected: bool) -> None:
    assert FRESH.serving is not None
    shown = None if shown_age is None else issue(AUTHORITY, NAMES, START - shown_age, LIVES.serving).certificate
    assert may_serve(FRESH.serving, shown, trusted_for, LIVES, START) is expected
    assert not may_serve(FRESH.serving, FRESH.serving.certificate, trusted_for, LIVES, START)


def test_what_is_damaged_or_no_whole_secret_is_none() -> None:
    assert FRESH.serving is not None
    with pytest.raises(ValueError, match="serving certificate"):
        secret_data(SecretContent(AUTHORITY))
    with pytest.raises(ValueError, match="not the certificate of an authority"):
        held_from({"ca.crt": to_pem([FRESH.serving.certificate]), "ca.key": FRESH.serving.key_pem})
    other_key = new_authority(START, LIVES.authority)
    foreign = issue(AUTHORITY, NAMES, START, LIVES.serving)
    for pair in (other_key, AUTHORITY):
        data = {"ca.crt": to_pem([pair.certificate]), "ca.key": pair.key_pem}
        assert held_from(data).authority.certificate == pair.certificate
    der = bytearray(AUTHORITY.certificate.public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1  # of its signature
    text = ssl.DER_cert_to_PEM_cert(bytes(der)).encode()
    with pytest.raises(ValueError, match="damaged"):
        held_from({"ca.crt": text, "ca.key": AUTHORITY.key_pem})
    assert not is_signed_by(foreign.certificate, other_key.certificate)
