"""The connection to an API server: the official client loads configuration, authentication and TLS.

Only raw bodies are read through it (see kubernetes_watcher.py): the client's typed models cost several times the time
and memory of the fields that matter.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from base.errors import ForecastError, InputError
from kube.client.api_answer import ApiAnswer, answered, read_answer, unanswered
from kube.client.kubeconfig import kubectls_own, load_context
from kube.client.kubernetes_steps import Request, list_request
from kube.decoding.decoding import SCORED_KINDS, WATCHED, Kind

_CONNECT_SECONDS = 10.0

# As client-go asks for: an idle watch is probed after 30 s and given up after 3 unanswered probes.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 30, "TCP_KEEPCNT": 3}


class UnreachableApiServer(ForecastError):
    """The API server does not answer; it may later."""


def api_client(
    kubeconfig: Path | None = None, context: str | None = None, *, connections: int | None = None
) -> client.ApiClient:
    """A client for a cluster, see ClusterAccess for the first two.

    connections : to one server, kept open for the next request; None = a few

    Tokens are read again as they rotate. Nothing is sent yet. Raises InputError.
    """
    configuration = client.Configuration()
    found: str | Path | None = kubeconfig
    if found is None and context is None:
        try:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except ConfigException as error:
            found = kubectls_own(f"this process does not run in a Kubernetes cluster ({error}), ")
    elif found is None:
        found = kubectls_own()
    if found is not None:
        load_context(found, context, configuration)
    if connections is not None:
        configuration.connection_pool_maxsize = connections
    configuration.socket_options = [*urllib3.connection.HTTPConnection.default_socket_options, *_keep_alive_options()]
    return client.ApiClient(configuration)


def runs_in_cluster() -> bool:
    """Whether api_client() is for the cluster in which this process runs."""
    try:
        config.load_incluster_config(client_configuration=client.Configuration())  # type: ignore[no-untyped-call]
    except ConfigException:
        return False
    return True


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


def _keep_alive_options() -> list[tuple[int, int, int]]:
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    # Not every platform names all of them.
    return options + [
        (socket.IPPROTO_TCP, getattr(socket, name), seconds)
        for name, seconds in _KEEP_ALIVE.items()
        if hasattr(socket, name)
    ]
