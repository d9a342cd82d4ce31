"""Asks a service of ours in the cluster through the API server's proxy of Services, with the rights of a kubeconfig.

    kubeconfig --create serviceaccounts/token--> API server: a token of the viewer account, for ten minutes
               --get services/proxy------------> API server --that token--> service

The API server takes Authorization out of what it passes on, so the token travels in PROXIED_AUTHORIZATION. Source:
https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/
"""

from __future__ import annotations

import json
from typing import Final

from kubernetes import client

from kube.client.kubernetes_client import send
from serving.remote_service import ServiceUnavailable, error_words, refusal
from serving.security import PROXIED_AUTHORIZATION

_NAMESPACE: Final = "forecast-scheduler"
_ACCOUNT: Final = "forecast-scheduler-viewer"
_TOKEN_SECONDS: Final = 600  # the shortest that the API server gives
_BIND_THE_ROLE: Final = ": bind the Role forecast-scheduler-reports (docs/operate/security.md)"
_WAYS_OUT: Final = {
    (403, "GET"): _BIND_THE_ROLE,
    (403, "POST"): _BIND_THE_ROLE,
    (404, "POST"): ": add the component reports-through-api-server (docs/operate/deployment.md)",
}
"""By status and method: POST asks for the token."""


class ProxiedService:
    """A service of ours behind the API server's proxy, asked with the kubeconfig's credentials; an AskedService."""

    def __init__(self, api: client.ApiClient, name: str, *, seconds: float) -> None:
        """name: of the part, such as scorer. seconds: within which an answer comes"""
        self._api, self._name, self._seconds = api, name, seconds
        self._service = f"http:forecast-scheduler-{name}:http"
        self._token = ""
        self.address: Final = f"{self._api.configuration.host} (services/proxy of {self._service})"

    def request(self, method: str, path: str) -> bytes:
        """Return the body of an answer 200. Raises ServiceUnavailable, ServiceRefused."""
        self._token = self._token or self._viewer_token()
        url = f"/api/v1/namespaces/{_NAMESPACE}/services/{self._service}/proxy{path}"
        headers = {PROXIED_AUTHORIZATION: f"Bearer {self._token}"}
        return self._send(f"the {self._name} behind {self.address}", method, url, headers=headers)

    def close(self) -> None:
        self._api.rest_client.pool_manager.clear()

    def _viewer_token(self) -> str:
        url = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/{_ACCOUNT}/token"
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        wish = kind | {"spec": {"expirationSeconds": _TOKEN_SECONDS}}
        who = f"the API server, asked for a token of the account {_ACCOUNT},"
        answer = json.loads(self._send(who, "POST", url, json.dumps(wish).encode()))
        return str(answer["status"]["token"])

    def _send(
        self, who: str, method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> bytes:
        """Return the body of an answer 200 or 201. who: is asked, for errors."""
        answer = send(self._api, method, url, body, seconds=self._seconds, headers=headers)
        if answer.why_none:
            raise ServiceUnavailable(
                f"the API server {self._api.configuration.host} does not answer: {answer.why_none}"
            )
        if answer.status in (200, 201):
            return answer.body
        kind = refusal(answer.status)
        way_out = _WAYS_OUT.get((answer.status, method), "")
        raise kind(f"{who} answered {answer.status}: {error_words(answer.body)}{way_out}")
