"""Shows a managed Prometheus who we are, with the identity that the cloud gives the pod: no key is written anywhere.

    aws      SigV4 (https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-APIReference-QueryMetrics.html)
    google   an access token of the application default credentials
    azure    an access token of the workload identity

Each cloud's own library finds the credentials (environment, token file of the service account, metadata server) and
renews them. It is imported only if the setting names its cloud.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

import requests
from requests.auth import AuthBase

from base.errors import InputError
from base.redaction import redacted
from trainer.prometheus.http_answer import Transient
from trainer.prometheus.prometheus_settings import Cloud, ConnectionOptions

_MONITORING_READ: Final = "https://www.googleapis.com/auth/monitoring.read"
_AZURE_MONITOR: Final = "https://prometheus.monitor.azure.com/.default"
_RENEWED_BEFORE: Final = 300
"""Seconds before its end from which an Azure token is replaced; the other libraries see to that themselves."""
_AWS_SERVICE: Final = "aps"
_SHOWN: Final = 300
_PASSING: Final = frozenset({"Throttling", "ThrottlingException", "RequestLimitExceeded", "IDPCommunicationError"})
"""What AWS' token service says of requests that may be answered a moment later."""


def cloud_credentials(options: ConnectionOptions) -> AuthBase:
    """Signs each request, or puts a token on it. Raises InputError if the library is missing or has no credentials."""
    try:
        match options.cloud:
            case Cloud.AWS:
                return _SigV4(options.aws_region)
            case Cloud.GOOGLE:
                return _BearerToken(_google())
            case Cloud.AZURE:
                return _BearerToken(_azure())
    except ImportError as error:
        raise InputError(
            f"prometheus.cloud is {options.cloud.value}, and a library for it is not installed ({error}): "
            f"pip install 'forecast-scheduler[{options.cloud.value}]', or build the image with that extra"
        ) from error
    raise AssertionError(options.cloud)


class _SigV4(AuthBase):
    def __init__(self, region: str) -> None:
        import botocore.auth
        import botocore.awsrequest
        import botocore.exceptions
        import botocore.session

        session = botocore.session.get_session()
        self._botocore, self._error = botocore, botocore.exceptions
        self._region: str = region or session.get_config_variable("region") or ""
        if not self._region:
            raise InputError(
                "no AWS region: set prometheus.aws_region or AWS_DEFAULT_REGION to the region of the workspace"
            )
        session.set_config_variable("region", self._region)  # of the token service, too
        try:
            self._credentials = session.get_credentials()
        except botocore.exceptions.BotoCoreError as error:
            raise _unusable("AWS", error) from error
        if self._credentials is None:
            raise InputError(
                "no AWS credentials were found: give the service account an IAM role "
                "(docs/operate/deployment.md) or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        # AWS reads a + in a query as itself, and signs a space as %20. requests writes + for a space, %2B for a plus.
        path, mark, query = str(request.url).partition("?")
        request.url = path + mark + query.replace("+", "%20")
        body = request.body.encode() if isinstance(request.body, str) else request.body
        # Only what no proxy changes is signed.
        headers = {name: value for name in ("Content-Type",) if (value := request.headers.get(name))}
        signed = self._botocore.awsrequest.AWSRequest(
            method=request.method, url=request.url, data=body or b"", headers=headers
        )
        signer = self._botocore.auth.SigV4Auth(self._current(), _AWS_SERVICE, self._region)
        signer.add_auth(signed)
        request.headers.update(dict(signed.headers.items()))
        return request

    def _current(self) -> Any:
        try:
            return self._credentials.get_frozen_credentials()
        except self._error.ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
            if code in _PASSING or status >= 500:
                raise _away("AWS", error) from error
            raise _unusable("AWS", error) from error
        except (self._error.HTTPClientError, self._error.MetadataRetrievalError) as error:
            raise _away("AWS", error) from error
        except (self._error.BotoCoreError, OSError) as error:
            raise _unusable("AWS", error) from error


class _BearerToken(AuthBase):
    """token: the one to send now; threads ask one after the other, so that one of them renews it."""

    def __init__(self, token: Callable[[], str]) -> None:
        self._token, self._lock = token, threading.Lock()

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        with self._lock:
            request.headers["Authorization"] = f"Bearer {self._token()}"
        return request


def _google() -> Callable[[], str]:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
    from google.auth.transport.requests import Request

    try:
        credentials, _ = google.auth.default(scopes=[_MONITORING_READ])
    except (DefaultCredentialsError, OSError) as error:
        raise _unusable("Google", error) from error

    def token() -> str:
        if not credentials.valid:
            try:
                credentials.refresh(Request())  # type: ignore[no-untyped-call]
            except TransportError as error:
                raise _away("Google", error) from error
            except (GoogleAuthError, OSError) as error:
                raise (_away if getattr(error, "retryable", False) else _unusable)("Google", error) from error
        return str(credentials.token)

    return token


def _azure() -> Callable[[], str]:
    from azure.core.exceptions import AzureError, ServiceRequestError
    from azure.identity import WorkloadIdentityCredential

    try:
        # Else the library asks a server on the internet whether the authority that the pod was given is one.
        credential = WorkloadIdentityCredential(disable_instance_discovery=True)
    except ValueError as error:
        raise _unusable("Azure", error) from error
    held: list[Any] = []

    def token() -> str:
        if not held or held[0].expires_on - time.time() < _RENEWED_BEFORE:
            try:
                held[:] = [credential.get_token(_AZURE_MONITOR)]
            except ServiceRequestError as error:
                raise _away("Azure", error) from error
            except (AzureError, ValueError, OSError) as error:
                raise _unusable("Azure", error) from error
        return str(held[0].token)

    return token


def _unusable(cloud: str, error: Exception) -> InputError:
    return InputError(
        f"{cloud} gives no credentials for Prometheus ({_said(error)}): renew them, or correct the identity of the "
        "service account (docs/operate/deployment.md)"
    )


def _away(cloud: str, error: Exception) -> Transient:
    return Transient(
        f"{cloud}'s token service gives no answer ({_said(error)})", "may the pod reach it? See NetworkPolicies"
    )


def _said(error: Exception) -> str:
    return redacted(" ".join(str(error).split()))[:_SHOWN].rstrip()
