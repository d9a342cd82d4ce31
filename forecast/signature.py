"""Ed25519 signatures of manifests: who may publish a model that this cluster obeys.

The signature covers manifest.json, and manifest.json holds the digest of every array, so one signature covers all.
Keys are PEM files, as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write them.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from forecast.errors import InputError

__all__ = ["is_valid", "new_key_pair", "sign"]


def sign(content: bytes, private_key: bytes) -> bytes:
    """Signature (64 bytes) by a PEM private key without password."""
    try:
        key = serialization.load_pem_private_key(private_key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(f"the signing key is not a PEM private key without password: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("the signing key is not an ed25519 key: make one with openssl genpkey -algorithm ed25519")
    return key.sign(content)


def is_valid(signature: bytes, content: bytes, public_key: bytes) -> bool:
    """Whether the signature is that of the holder of a PEM public key."""
    try:
        key = serialization.load_pem_public_key(public_key)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(f"the public key is not in PEM format: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InputError("the public key is not an ed25519 key: write it with openssl pkey -pubout")
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
