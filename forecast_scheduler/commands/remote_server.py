"""What a running service answers over HTTP, as a command shows and writes it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from base.errors import InputError
from forecast_scheduler.commands.remote_server_options import SERVER_SECONDS
from profiles.schedule_settings import ScheduleSettings
from serving.remote_service import NothingThere, RemoteAddress, RemoteService, ServiceRefused, ServiceUnavailable

Answer = TypeVar("Answer", bound=msgspec.Struct)


class AskedService(Protocol):
    """serving.remote_service.RemoteService, or one that is reached through the API server."""

    @property
    def address(self) -> str:
        """Where it is, for errors."""

    def request(self, method: str, path: str) -> bytes:
        """Return the body of an answer 200. Raises ServiceUnavailable, ServiceRefused."""

    def close(self) -> None:
        """Close its connections; nothing is asked any more."""


def asked_server(
    service: AskedService,
    path: str,
    query: Mapping[str, str],
    body: type[Answer],
    *,
    name: str,
    way_out: str,
    missing: str = "",
) -> Answer:
    """Return what the path answers. Raises InputError, also if no server answers: the user has to name another one.

    service : closed at the end
    body    : type that the answer is decoded as
    name    : of the service, for errors: "scorer"
    way_out : what to do if it does not answer
    missing : what it means that the service has no such path, and what to do; "" = what it answers says so
    """
    with closing(service):
        try:
            answer = service.request("GET", f"{path}?{urlencode(query)}" if query else path)
            return msgspec.json.decode(answer, type=body)
        except ServiceRefused as error:
            is_unserved = missing and isinstance(error, NothingThere)
            raise InputError(f"the {name} {service.address} {missing}" if is_unserved else str(error)) from error
        except ServiceUnavailable as error:
            raise InputError(f"{error}; {way_out}") from error
        except msgspec.DecodeError as error:
            raise InputError(
                f"{service.address} does not answer as a {name} of this version ({error}): name one of this version"
            ) from error


def asked_scheduler(
    settings: ScheduleSettings,
    server: str | None,
    files: tuple[Path | None, Path | None, Path | None, Path | None],
    path: str,
    query: Mapping[str, float | str | None],
    body: type[msgspec.Struct],
    *,
    profile: str = "",
    enabled_by: str = "",
) -> dict[str, Any]:
    """Return the plan that a running scheduler answers. Raises InputError.

    server  : its URL; None = a process with these settings on this machine
    files   : with a token, an authority, a certificate of the client and its key
    query   : None = not asked for
    profile : that has the path; "" = all have it
    enabled_by : setting without which the profile does not have it; "" = it always has
    """
    url = server or f"{'https' if settings.serving.tls_cert else 'http'}://127.0.0.1:{settings.serving.port}"
    service = RemoteService(RemoteAddress(url, *files, SERVER_SECONDS), "scheduler")
    given = {
        key: value if isinstance(value, str) else f"{value:g}" for key, value in query.items() if value is not None
    }
    started = f"forecast-scheduler schedule{profile and f' --profile {profile}'}"
    missing = (
        f"answered 404: it does not run the profile {profile}, or the URL is no scheduler's: start it with --profile "
        f"{profile}, or name it in schedule.profiles"
    )
    if enabled_by:
        missing = (
            f"answered 404: it does not run the profile {profile}, or {enabled_by} is not set there: set it, and start "
            f"it with --profile {profile}"
        )
    way_out, missing = f"name a running `{started}` with --server URL", missing if profile else ""
    plan = asked_server(service, path, given, body, name="scheduler", way_out=way_out, missing=missing)
    found: dict[str, Any] = msgspec.to_builtins(plan)
    return found
