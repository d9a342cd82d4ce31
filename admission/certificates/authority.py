"""Certificates of our own: make an authority, have it sign, read PEM. When to do so is rotation.py's question.

What Go's TLS, and so the API server, asks for: names in subjectAltName (the common name is not looked at), serverAuth,
an authority marked as such that may sign, and key identifiers that distinguish two authorities. crypto/x509/verify.go
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATED = timedelta(hours=1)
"""A certificate is good from an hour before it is made: clocks differ."""

_COMMON_NAME = "forecast-scheduler webhook authority"
_MAX_COMMON_NAME = 64
_MAX_CERTIFICATES = 16


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def key_pem(self) -> bytes:
        """PKCS 8, not encrypted."""
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def new_authority(now: datetime, lifetime: timedelta) -> Pair:
    """An authority that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _common_name(serial))])
    builder = _builder(name, name, key.public_key(), now, now + lifetime).serial_number(serial)
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Pair(certificate, key)


def issue(authority: Pair, names: Sequence[str], now: datetime, lifetime: timedelta) -> Pair:
    """A serving certificate for DNS names and IP addresses; it ends before its authority does."""
    key = ec.generate_private_key(ec.SECP256R1())
    # The common name is not looked at.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:_MAX_COMMON_NAME])])
    until = min(now + lifetime, authority.certificate.not_valid_after_utc)
    issuer = authority.certificate.subject
    certificate = (
        _builder(subject, issuer, key.public_key(), now, until)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Pair(certificate, key)


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether it is the issuer by name and signature."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def is_ours(certificate: x509.Certificate) -> bool:
    """Whether it is named as an authority that new_authority made."""
    found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return len(found) == 1 and found[0].value == _common_name(certificate.serial_number)


def issued_at(certificate: x509.Certificate) -> datetime:
    """When it was made."""
    return certificate.not_valid_before_utc + BACKDATED


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """DNS names and IP addresses that it is good for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return frozenset([*found.get_values_for_type(x509.DNSName), *addresses])


def fingerprint(certificate: x509.Certificate) -> bytes:
    """The same only for the same certificate."""
    return certificate.fingerprint(hashes.SHA256())


def to_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    """One after the other."""
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)


def read_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """All in a PEM text, 16 at most; () for an empty one. Raises ValueError."""
    if not pem.strip():
        return ()
    try:
        found = tuple(x509.load_pem_x509_certificates(pem)[:_MAX_CERTIFICATES])
        for one in found:
            # Parts are only read when they are asked for; what cannot be is to be found out here.
            _ = one.subject, one.issuer, one.not_valid_before_utc, one.not_valid_after_utc, one.extensions
            one.public_key()
    except Exception as error:  # ValueError, UnsupportedAlgorithm, DuplicateExtension, ...
        raise ValueError("no PEM text of certificates") from error
    return found


def read_pair(certificate: bytes, key: bytes) -> Pair:
    """Raises ValueError: not PEM, another kind of key than ours, or that of another certificate."""
    found = read_certificates(certificate)
    if len(found) != 1:
        raise ValueError(f"{len(found)} certificates where one is expected")
    try:
        loaded = serialization.load_pem_private_key(key, password=None)
    except Exception as error:  # ValueError, TypeError, UnsupportedAlgorithm: whatever stands there, it is no key
        raise ValueError("the key cannot be read") from error
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one of an elliptic curve")
    if found[0].public_key() != loaded.public_key():
        raise ValueError("the key is that of another certificate")
    return Pair(found[0], loaded)


def _common_name(serial: int) -> str:
    """Of an authority. Two of one name would be tried one for the other."""
    return f"{_COMMON_NAME} {serial:x}"[:_MAX_COMMON_NAME]


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .not_valid_before(now - BACKDATED)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
