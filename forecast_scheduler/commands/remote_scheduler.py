"""What a running scheduler answers over HTTP, as a command shows and writes it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import msgspec

from forecast.errors import InputError
from serving.remote_service import RemoteAddress, RemoteService, ServiceUnavailable


def asked_server(
    remote: RemoteAddress, path: str, query: Mapping[str, str], body: type[msgspec.Struct], *, profile: str
) -> dict[str, Any]:
    """Return what the path answers. Raises InputError, also if no server answers: the user has to name another one.

    body    : what the answer is decoded as
    profile : that has the path
    """
    with closing(RemoteService(remote, "scheduler")) as service:
        try:
            answer = service.request("GET", f"{path}?{urlencode(query)}")
            said = msgspec.json.decode(answer, type=body)
        except ServiceUnavailable as error:
            raise InputError(
                f"{error}; name a running `forecast-scheduler schedule --profile {profile}` with --server URL"
            ) from error
        except msgspec.DecodeError as error:
            raise InputError(
                f"{remote.url} does not answer with a plan ({error}): name a scheduler of this version"
            ) from error
    found: dict[str, Any] = msgspec.to_builtins(said)
    return found
