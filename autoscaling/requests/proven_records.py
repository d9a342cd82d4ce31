"""Which records of original requests are ours, although whoever may write a pod can write its annotations.

    proof = HMAC-SHA256(key, UID of the pod, record)

The key is in a Secret of our namespace, which no tenant reads. A record that was copied from another pod, changed or
made up has no proof that fits, and neither have those of versions that wrote none: nothing is done by them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import msgspec

from base.errors import ForecastError
from kube.client.api_answer import ApiAnswer
from kube.session.session_calls import Requests

SECRET: Final = "forecast-scheduler-autoscaler-records"
_KEY: Final = "key"
_KEY_BYTES: Final = 32
_SECONDS: Final = 10.0
_MISSING, _CONFLICT = 404, 409


@dataclass(frozen=True, slots=True)
class RecordKey:
    """key: b'' = there is none, so no record is ours"""

    key: bytes = b""

    def proof(self, uid: str, record: str) -> str:
        """Return what is written beside the record of a pod."""
        # A UID has no line break, so no other pair makes the same message.
        return hmac.new(self.key, f"{uid}\n{record}".encode(), hashlib.sha256).hexdigest()

    def is_ours(self, uid: str, record: str, proof: str) -> bool:
        """Whether a record is as we wrote it into this very pod."""
        return bool(self.key) and hmac.compare_digest(self.proof(uid, record).encode(), proof.encode())


async def read_key(session: Requests, namespace: str, *, create: bool) -> RecordKey:
    """Read the key from its Secret. Raises ForecastError.

    create : make it where there is none; else there is no record of ours, either
    """
    place = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets"
    answer = await session.request("GET", f"{place}/{SECRET}", None, seconds=_SECONDS)
    if answer.status == _MISSING and create:
        made = await session.request("POST", place, _new_secret(), seconds=_SECONDS)
        if made.status != _CONFLICT:  # else another replica was quicker
            return _key_of(made, "create", namespace)
        answer = await session.request("GET", f"{place}/{SECRET}", None, seconds=_SECONDS)
    if answer.status == _MISSING:
        return RecordKey()
    return _key_of(answer, "get", namespace)


class _Secret(msgspec.Struct):
    data: dict[str, str] | None = None


def _new_secret() -> bytes:
    key = base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
    # A key that changes makes all records foreign.
    secret = {"metadata": {"name": SECRET}, "type": "Opaque", "immutable": True, "data": {_KEY: key}}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Secret", **secret})


def _key_of(answer: ApiAnswer, verb: str, namespace: str) -> RecordKey:
    if not answer.is_success:
        raise ForecastError(f"pods are not resized: {answer.text}; it needs {verb} on secrets, {namespace}/{SECRET}")
    try:
        found = (msgspec.json.decode(answer.body, type=_Secret).data or {}).get(_KEY, "")
        key = base64.b64decode(found, validate=True)
    except (msgspec.DecodeError, binascii.Error, ValueError):
        key = b""
    if len(key) < _KEY_BYTES:
        raise ForecastError(
            f"pods are not resized: the Secret {namespace}/{SECRET} has no {_KEY} of {_KEY_BYTES} bytes: delete it, "
            "and a new one is made; records of the old one are then left alone"
        )
    return RecordKey(key)
