"""Checks SigV4 as AWS does: the signature is computed anew from what came in, with the secret of the key it names.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/(\w+)/aws4_request, SignedHeaders=([\w;-]+), Signature=(\w+)"
)
_SKEW_SECONDS: Final = 300
EXPIRED: Final = "The security token included in the request is expired"


class SignatureCheck:
    """A `Refusal` of BadProxy. keys: secret and session token by access key; expired: access keys that have ended."""

    def __init__(self, keys: Mapping[str, tuple[str, str]], *, region: str) -> None:
        self.keys, self._region = dict(keys), region
        self.expired: set[str] = set()
        self.seen: list[str] = []
        """Access keys of the requests that were let through."""

    def __call__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> str:
        found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
        if found is None:
            return "Missing Authentication Token"
        key, day, region, service, signed, signature = found.groups()
        if key in self.expired:
            return EXPIRED
        if key not in self.keys or (region, service) != (self._region, "aps"):
            return "The security token included in the request is invalid"
        secret, token = self.keys[key]
        when = headers["x-amz-date"]
        age = datetime.now(UTC) - datetime.strptime(when, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(age.total_seconds()) > _SKEW_SECONDS or not when.startswith(day):
            return "Signature not yet current or expired"
        if token != headers.get("x-amz-security-token", "") or (token and "x-amz-security-token" not in signed):
            return "The security token included in the request is invalid"
        if not {"host", "x-amz-date"} <= set(signed.split(";")):
            return "'Host' must be a 'SignedHeader' in the AWS Authorization"
        place, _, query = path.partition("?")
        # A + is a plus here, as AWS reads it, whatever the server behind makes of it.
        pairs = [pair.partition("=")[::2] for pair in query.split("&")] if query else []
        asked = AWSRequest(
            method=method,
            url=f"http://{headers['host']}{place}",
            params=[(unquote(name), unquote(value)) for name, value in pairs],
            data=body,
            headers={name: headers[name] for name in signed.split(";")},
        )
        asked.context["timestamp"] = when
        signer = SigV4Auth(Credentials(key, secret, token or None), service, region)
        if signer.signature(signer.string_to_sign(asked, signer.canonical_request(asked)), asked) != signature:
            return "The request signature we calculated does not match the signature you provided"
        self.seen.append(key)
        return ""
