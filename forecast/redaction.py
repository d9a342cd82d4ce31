"""Text without the secrets that users put into URLs, before anybody is shown it.

A store or a proxy may be named https://user:password@host; libraries repeat that in their errors, and bearer tokens in
the headers they print. Secrets belong into files, which are never shown; this is for those that are not there.
"""

from __future__ import annotations

import re

__all__ = ["redacted"]

_HIDDEN = "***"

# RFC 3986, 3.2.1: userinfo ends with the last @ before the path. A password may hold an @ that nobody has escaped.
_USER_INFO = re.compile(r"(?<=://)[^/\s\"'<>]*@")
_AUTHORIZATION = re.compile(r"\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
# Of presigned URLs (S3, GCS, Azure) and of what is passed as a parameter. RFC 3986, 3.4: up to & or #.
_PARAMETER = re.compile(
    r"(?<=[?&])((?:x-amz-|x-goog-)?(?:signature|credential|security-token|sig|token|access_token|password|secret|key))"
    r"=[^&#\s\"'<>]+",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """The text with ***@ for user and password in URLs, and *** for tokens in headers and parameters."""
    if "://" in text:
        text = _USER_INFO.sub(f"{_HIDDEN}@", text)
    if "?" in text:
        text = _PARAMETER.sub(rf"\1={_HIDDEN}", text)
    return _AUTHORIZATION.sub(rf"\1\2{_HIDDEN}", text)
