"""A certificate authority for tests: certificates for 127.0.0.1, of servers and clients."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """`ca` is its own certificate as a PEM file."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._build(self._name, self._key, is_ca=True)
        self.ca = directory / f"{name}.pem"
        self.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, file: str | None = None, dns: Sequence[str] = ()) -> tuple[Path, Path]:
        """Files of a certificate and of its key; those of `file` are replaced if they exist. dns: further names"""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._build(subject, key, is_ca=False, dns=dns)
        paths = self._directory / f"{file or name}.crt", self._directory / f"{file or name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return paths

    def _build(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_ca: bool, dns: Sequence[str] = ()
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        address = x509.SubjectAlternativeName(
            [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *map(x509.DNSName, dns)]
        )
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=90))
            .add_extension(address, critical=False)
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
