"""Text without the secrets that users put into URLs, before it is shown.

A store or a proxy may be named https://user:password@host; libraries repeat that in their errors, and bearer tokens in
the headers they print. Secrets belong into files, which are never shown; this is for those that are not there.
"""

from __future__ import annotations

import re

_HIDDEN = "***"

# RFC 3986, 3.2.1: userinfo ends with the last @ before the path. A password may hold an unescaped @.
_USER_INFO = re.compile(r"(?<=://)[^/\s\"'<>]*@")
# Or a / (keys of S3 do): after a colon everything up to the last @ is taken for one. A port with an @ in the path is
# hidden, too: rather too much than a secret.
_USER_INFO_WITH_SLASH = re.compile(r"(?<=://)[^/:@\s\"'<>]*:[^\s\"'<>]{0,1024}@")
# A word that follows is a secret after "authorization", or if it looks like one: digits, capitals or long. Others are
# sentences ("basic scheduling").
_AUTHORIZATION = re.compile(
    r"((?i:authorization)\W{1,8})?\b((?i:bearer|basic)\s+)"
    r"(?(1)|(?=[a-z._~+/=-]*[0-9A-Z]|[a-z._~+/=-]{16}))[A-Za-z0-9._~+/=-]{8,}"
)
# Of presigned URLs (S3, GCS, Azure) and of what is passed as a parameter (api_key, client_secret, x-amz-signature). RFC
# 3986, 3.4: up to & or #.
_PARAMETER = re.compile(
    r"(?<=[?&])((?:[\w-]*[_-])?(?:signature|credential|sig|token|password|secret|key|apikey))=[^&#\s\"'<>]+",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """The text with ***@ for user and password in URLs, and *** for tokens in headers and parameters."""
    if "://" in text:
        text = _USER_INFO_WITH_SLASH.sub(f"{_HIDDEN}@", _USER_INFO.sub(f"{_HIDDEN}@", text))
    if "?" in text:
        text = _PARAMETER.sub(rf"\1={_HIDDEN}", text)
    return _AUTHORIZATION.sub(rf"\1\2{_HIDDEN}", text)
