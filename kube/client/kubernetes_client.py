"""The connection to an API server: the official client loads configuration, authentication and TLS.

Only raw bodies are read through it (see kubernetes_watcher.py): the client's typed models cost several times the time
and memory of the fields that matter.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION

from base.errors import ForecastError, InputError
from kube.client.api_answer import ApiAnswer, answered, read_answer, unanswered
from kube.client.kubernetes_steps import Request, list_request
from kube.decoding.decoding import SCORED_KINDS, WATCHED, Kind

_CONNECT_SECONDS = 10.0

# As client-go asks for: an idle watch is probed after 30 s and given up after 3 unanswered probes.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 30, "TCP_KEEPCNT": 3}


class UnreachableApiServer(ForecastError):
    """The API server does not answer; it may later."""


def api_client(kubeconfig: Path | None = None, *, connections: int | None = None) -> client.ApiClient:
    """A client for the current context of a kubeconfig file; None = for the cluster this process runs in, else for what
    kubectl would talk to: $KUBECONFIG or ~/.kube/config.

    connections : to one server, kept open for the next request; None = a few

    Tokens are read again as they rotate. Nothing is sent yet. Raises InputError.
    """
    configuration = client.Configuration()
    found: str | Path | None = kubeconfig
    if found is None:
        try:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except ConfigException as error:
            found = _kubectls_own()
            if found is None:
                raise InputError(
                    f"this process does not run in a Kubernetes cluster ({error}), there is no $KUBECONFIG and no "
                    "~/.kube/config: name a kubeconfig with --kubeconfig, or give the cluster as a file with --cluster"
                ) from error
    if found is not None:
        _load(found, configuration)
    if connections is not None:
        configuration.connection_pool_maxsize = connections
    configuration.socket_options = [*urllib3.connection.HTTPConnection.default_socket_options, *_keep_alive_options()]
    return client.ApiClient(configuration)


def runs_in_cluster(kubeconfig: Path | None) -> bool:
    """Whether api_client(kubeconfig) is for the cluster in which this process runs."""
    if kubeconfig is not None:
        return False
    try:
        config.load_incluster_config(client_configuration=client.Configuration())  # type: ignore[no-untyped-call]
    except ConfigException:
        return False
    return True


def _load(kubeconfig: str | Path, configuration: client.Configuration) -> None:
    """kubeconfig: several files are separated as in $KUBECONFIG. Raises InputError."""
    try:
        if isinstance(kubeconfig, Path):
            _require_file(kubeconfig)
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig), client_configuration=configuration, persist_config=False
        )
    except ConfigException as error:
        raise InputError(
            f"kubeconfig {kubeconfig} cannot be used ({_one_line(error)}): `kubectl --kubeconfig {kubeconfig} config "
            "get-contexts` shows what it has, `kubectl config use-context` sets the current one"
        ) from error
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        # The client's loader lets through whatever its YAML library and its own look-ups raise.
        raise InputError(f"kubeconfig {kubeconfig} cannot be read: {_one_line(error)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "yaml":
            raise
        raise InputError(f"kubeconfig {kubeconfig} is not YAML: {_one_line(error)}") from error


def _kubectls_own() -> str | None:
    """Return the kubeconfig that kubectl reads without arguments, if there is one."""
    files = KUBE_CONFIG_DEFAULT_LOCATION.split(os.pathsep)
    return KUBE_CONFIG_DEFAULT_LOCATION if any(Path(file).expanduser().is_file() for file in files) else None


def open_request(
    api: client.ApiClient, request: Request, *, read_seconds: float, connect_seconds: float = _CONNECT_SECONDS
) -> urllib3.BaseHTTPResponse:
    """Send a GET and return the answer with its body unread, whatever its status.

    No retries and no redirects: what follows a failure is decided in kubernetes_steps.py. Raises urllib3's HTTPError
    and OSError.
    """
    headers = {"Accept": request.accept, "User-Agent": "forecast-scheduler"} | authorization(api)
    pool: urllib3.PoolManager = api.rest_client.pool_manager
    return pool.request(
        "GET",
        api.configuration.host + request.path,
        fields=dict(request.query),
        headers=headers,
        preload_content=False,
        retries=False,
        redirect=False,
        timeout=urllib3.Timeout(connect=connect_seconds, read=read_seconds),
    )


def send(
    api: client.ApiClient,
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    content_type: str = "application/json",
    seconds: float,
    headers: Mapping[str, str] | None = None,
) -> ApiAnswer:
    """Send one request and return its whole answer, whatever the status; never raises for a failure.

    seconds : timeout; headers: further ones. An answer that is too large counts as none

    No retries and no redirects: the writer must know what became of the request.
    """
    sent = {"Accept": "application/json", "User-Agent": "forecast-scheduler", **(headers or {})} | authorization(api)
    pool: urllib3.PoolManager = api.rest_client.pool_manager
    try:
        answer = pool.request(
            method,
            api.configuration.host + path,
            body=body,
            headers=sent if body is None else sent | {"Content-Type": content_type},
            retries=False,
            redirect=False,
            preload_content=False,
            timeout=urllib3.Timeout(total=seconds),
        )
        return answered(answer.status, read_answer(answer, seconds=seconds), answer.headers.get("Retry-After", ""))
    except (urllib3.exceptions.HTTPError, OSError) as error:
        return unanswered(error)


def ask(api: client.ApiClient, request: Request, *, seconds: float = _CONNECT_SECONDS) -> ApiAnswer:
    """Send a GET and return its answer, whatever the status. Raises UnreachableApiServer if none comes."""
    path = f"{request.path}?{urlencode(request.query)}" if request.query else request.path
    answer = send(api, "GET", path, seconds=seconds, headers={"Accept": request.accept})
    if answer.why_none:
        raise UnreachableApiServer(f"the API server {api.configuration.host} does not answer: {answer.why_none}")
    return answer


def authorization(api: client.ApiClient) -> dict[str, str]:
    """The header that says who asks; none where a client certificate does.

    Asking for the settings runs the client's refresh hook: rotated tokens are picked up here.
    """
    bearer = api.configuration.auth_settings().get("BearerToken")
    return {"Authorization": bearer["value"]} if bearer and bearer["value"] else {}


def check_access(api: client.ApiClient, kinds: Iterable[Kind] = SCORED_KINDS) -> None:
    """Ask for one object of each kind, so that a wrong token or missing right is reported before anything starts.

    Raises InputError when the server refuses, UnreachableApiServer when it does not answer.
    """
    for kind in kinds:
        answer = ask(api, list_request(WATCHED[kind], limit=1))
        required(answer, f"list {kind.value} in all namespaces", grant="get, list and watch on them")


def required(answer: ApiAnswer, what: str, *, grant: str = "it") -> ApiAnswer:
    """Return the answer if it is a success. what: was asked for, for errors: "read pods"; grant: the right to that.

    Raises InputError for the statuses that no waiting will mend, UnreachableApiServer for others.
    """
    if answer.status == 401:
        raise InputError(
            "the API server does not accept these credentials (401): the token or certificate is wrong or has expired; "
            "renew it in the kubeconfig, or use a service account"
        )
    if answer.status == 403:
        raise InputError(f"the API server forbids to {what} (403): grant {grant} with a Role or ClusterRole")
    if not answer.is_success:
        raise UnreachableApiServer(f"the API server, asked to {what}, answered {answer.text}")
    return answer


def _require_file(kubeconfig: Path) -> None:
    if not kubeconfig.is_file():
        raise InputError(
            f"there is no kubeconfig {kubeconfig}: name another one, or leave --kubeconfig out inside a cluster"
        )


def _keep_alive_options() -> list[tuple[int, int, int]]:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    # Not every platform names all of them.
    return options + [
        (socket.IPPROTO_TCP, getattr(socket, name), seconds)
        for name, seconds in _KEEP_ALIVE.items()
        if hasattr(socket, name)
    ]


def _one_line(error: Any) -> str:
    return " ".join(str(error).split())[:300]
