"""Ed25519 signatures of manifests: who may publish a model that this cluster obeys.

The signature covers manifest.json, and manifest.json holds the digest of every array, so one signature covers all.
Keys are PEM files, as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write them. A file of public keys
may hold several, one after the other: a signature of any of them counts, so that a key can be replaced without a night
on which no model is accepted.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from base.errors import InputError

_BEGIN = b"-----BEGIN"


def sign(content: bytes, private_key: bytes) -> bytes:
    """Signature (64 bytes) by a PEM private key without password."""
    try:
        key = serialization.load_pem_private_key(private_key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(f"the signing key is not a PEM private key without password: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("the signing key is not an ed25519 key: make one with openssl genpkey -algorithm ed25519")
    return key.sign(content)


def is_valid(signature: bytes, content: bytes, public_keys: bytes) -> bool:
    """Whether the signature is that of the holder of one of the PEM public keys; two while keys are changed."""
    # All are read before any is tried: a second key that cannot be read is found on the day it is added.
    return any(_signed_by(key, signature, content) for key in _public_keys(public_keys))


def _public_keys(pem: bytes) -> list[Ed25519PublicKey]:
    """Raises InputError: something that is no key, or none at all."""
    pieces = [_BEGIN + piece for piece in pem.split(_BEGIN)[1:]] or [pem]
    found = []
    for number, piece in enumerate(pieces, 1):
        which = "the public key" if len(pieces) == 1 else f"public key {number} of {len(pieces)}"
        try:
            key = serialization.load_pem_public_key(piece)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise InputError(f"{which} is not in PEM format: {error}") from error
        if not isinstance(key, Ed25519PublicKey):
            raise InputError(f"{which} is not an ed25519 key: write it with openssl pkey -pubout")
        found.append(key)
    return found


def _signed_by(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def new_key_pair() -> tuple[bytes, bytes]:
    """A fresh (private, public) pair in PEM format."""
    key = Ed25519PrivateKey.generate()
    return (
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    )
