from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

from admission.certificates.authority import (
    Pair,
    is_ours,
    issue,
    names_of,
    new_authority,
    read_certificates,
    read_pair,
    to_pem,
)
from tests.admission.certificates.certificate_world import NAME, START, trusts

NAMES = (NAME, "hook.shop", "127.0.0.1", "::1")
YEAR, MONTH = timedelta(days=365), timedelta(days=30)
OURS = "forecast-scheduler webhook authority"
_CERT_MANAGER = (
    Path(__file__).parents[3] / "deploy" / "components" / "webhook-certificate-by-cert-manager" / "certificates.yaml"
)
_COMMON_NAMES_OF_CERT_MANAGER = [
    one["spec"]["commonName"] for one in yaml.safe_load_all(_CERT_MANAGER.read_text()) if one["spec"].get("isCA")
]


@pytest.fixture(scope="module")
def authority() -> Pair:
    return new_authority(datetime.now(UTC), YEAR)


@pytest.mark.parametrize(
    ("name", "age", "trusted", "expected"),
    [
        (NAME, 0, "ours", True),
        ("hook.shop", 0, "both", True),
        ("other.shop.svc", 0, "ours", False),
        (NAME, 0, "other", False),  # of an authority whose name begins alike
        (NAME, 31, "ours", False),  # it has ended
    ],
)
def test_whom_a_client_trusts(authority: Pair, name: str, age: int, trusted: str, expected: bool) -> None:
    now = datetime.now(UTC)
    serving, other = issue(authority, NAMES, now - timedelta(days=age), MONTH), new_authority(now, YEAR)
    bundle = {"ours": [authority], "other": [other], "both": [other, authority]}[trusted]
    assert trusts(to_pem([one.certificate for one in bundle]), serving.certificate, now, name) is expected


def test_a_certificate_has_its_names_an_hour_for_slow_clocks_and_ends_no_later_than_its_authority() -> None:
    authority = new_authority(START, YEAR)
    serving = issue(authority, NAMES, START, MONTH).certificate
    assert names_of(serving) == set(NAMES) and names_of(authority.certificate) == set()
    assert trusts(to_pem([authority.certificate]), serving, START - timedelta(minutes=59))
    last = issue(authority, NAMES, START + timedelta(days=350), MONTH).certificate
    assert last.not_valid_after_utc == authority.certificate.not_valid_after_utc


@pytest.mark.parametrize("name", [*_COMMON_NAMES_OF_CERT_MANAGER, f"{OURS} of cert-manager", OURS, f"{OURS} {2:x}"])
def test_an_authority_of_somebody_else_is_not_ours(name: str) -> None:
    assert len(_COMMON_NAMES_OF_CERT_MANAGER) == 1 and len(name) <= 64
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, START, START + YEAR)
    assert not is_ours(builder.sign(key, hashes.SHA256()))


def test_a_serving_certificate_has_its_key_and_can_sign_nothing(authority: Pair) -> None:
    serving = issue(authority, NAMES, datetime.now(UTC), MONTH)
    forged = issue(serving, NAMES, datetime.now(UTC), MONTH)
    assert not trusts(to_pem([authority.certificate]), forged.certificate, datetime.now(UTC))
    constraints = serving.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert not constraints.ca
    usage = serving.certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.digital_signature and not usage.key_cert_sign
    pem = to_pem([authority.certificate])
    with pytest.raises(ValueError, match="another certificate"):
        read_pair(pem, new_authority(START, YEAR).key_pem)
    key = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ValueError, match="elliptic curve"):
        read_pair(pem, key)


@pytest.mark.parametrize("text", [b"x", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_is_refused(authority: Pair, text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the library's words
        read_certificates(text)
    with pytest.raises(ValueError):  # noqa: PT011
        read_pair(text, authority.key_pem)
    with pytest.raises(ValueError, match="the key cannot be read"):
        read_pair(to_pem([authority.certificate]), text)


def test_a_text_full_of_certificates_is_cut() -> None:
    one = new_authority(START, YEAR).certificate
    assert len(read_certificates(to_pem([one] * 40))) == 16
    assert read_certificates(b" \n") == ()
