"""Sends requests to a Service through the API server's proxy, with the rights of a kubeconfig.

Authority, client certificate, tokens that rotate and proxies are those of the kubeconfig. The API server takes
Authorization out of what it passes on, so the Service never sees it. Source:
https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import requests
import urllib3
from kubernetes import client
from requests.adapters import HTTPAdapter

from forecast_scheduler.discovery.ranking import StoreCandidate
from kube.client.kubernetes_client import authorization

_PROXIED = re.compile(
    r"/api/v1/namespaces/(?P<namespace>[^/]+)/services/([a-z]+:)?(?P<name>[^/:]+):(?P<port>[^/]+)/proxy(?P<path>.*)"
)


class ApiServerTransport(HTTPAdapter):
    """Implements requests' adapter with the connections of a client of the API server."""

    def __init__(self, api: client.ApiClient) -> None:
        super().__init__()
        self._api = api

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """The answer with its body unread. Raises urllib3's HTTPError."""
        pool: urllib3.PoolManager = self._api.rest_client.pool_manager
        answer = pool.request(
            str(request.method),
            str(request.url),
            body=cast("bytes | str | None", request.body),  # of a query, never a stream
            headers={**cast("Mapping[str, str]", request.headers), **authorization(self._api)},
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
            timeout=urllib3.Timeout(connect=timeout, read=timeout),
        )
        return self.build_response(request, answer)


def proxied_url(host: str, candidate: StoreCandidate) -> str:
    """Where the API server at `host` passes requests on to a Service."""
    where = f"{candidate.scheme}:{candidate.service.name}:{candidate.port.number}"
    return f"{host}/api/v1/namespaces/{candidate.service.namespace}/services/{where}/proxy"


def store_words(url: str) -> str:
    """Where a store is, for people: the Service behind the API server's proxy, and other URLs as they are."""
    if (found := _PROXIED.search(url)) is None:
        return url
    return f"{found['namespace']}/{found['name']}:{found['port']}{found['path']}"
