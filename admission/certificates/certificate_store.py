"""Where certificates are kept: one Secret, and the MutatingWebhookConfiguration that names who is trusted; which of
its webhooks lead to us, and how to mend its caBundle.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec
from cryptography import x509
from kubernetes import client

from admission.certificates.authority import fingerprint, read_certificates, to_pem
from admission.webhook_settings import CertificateOptions, canonical
from base.errors import ForecastError
from kube.client.api_answer import ApiAnswer
from kube.client.kubernetes_client import send

LABELS: Final = {
    "app.kubernetes.io/name": "forecast-scheduler",
    "app.kubernetes.io/component": "webhook-certificates",
    "app.kubernetes.io/managed-by": "forecast-scheduler",
}

_COMPONENT: Final = "app.kubernetes.io/component"
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_MERGE, _JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"


class StoreUnreachable(ForecastError):
    """The API server does not answer, or not now; it may later."""


class StoreRefused(ForecastError):
    """The API server refuses; an operator has to act."""


class Conflict(ForecastError):
    """Another client has written meanwhile: read again."""


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """data: decoded; a value that is not base64 is missing. is_marked: it has the label of those written by us."""

    resource_version: str
    data: Mapping[str, bytes]
    is_marked: bool


class CertificateStore(Protocol):
    """All methods raise Unreachable, StoreRefused and, those that write, Conflict."""

    def read_secret(self) -> StoredSecret | None:
        """None = there is none."""

    def write_secret(self, data: Mapping[str, bytes | None], before: StoredSecret | None) -> None:
        """Make it (before = None) or change it; None as a value = to be removed."""

    def read_configuration(self) -> Mapping[str, Any] | None:
        """The MutatingWebhookConfiguration as JSON; None = there is none."""

    def patch_configuration(self, patch: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Apply a JSON patch; returns what came of it."""


class ApiCertificateStore:
    """Implements CertificateStore.

    Needs get and patch on this Secret and this MutatingWebhookConfiguration, and create on secrets in the namespace.
    """

    def __init__(self, api: client.ApiClient, options: CertificateOptions, *, seconds: float = 10.0) -> None:
        """seconds: for one request."""
        self._api, self._options, self._seconds = api, options, seconds
        self._secrets = f"/api/v1/namespaces/{options.secret.namespace}/secrets"
        self._secret = f"{self._secrets}/{options.secret.name}"
        self._configuration = f"{_CONFIGURATIONS}/{options.webhook_configuration}"

    def read_secret(self) -> StoredSecret | None:
        body = self._send("GET", self._secret)
        if body is None:
            return None
        metadata = body.get("metadata") or {}
        component = (metadata.get("labels") or {}).get(_COMPONENT)
        return StoredSecret(
            str(metadata.get("resourceVersion")), _decoded(body.get("data") or {}), component == LABELS[_COMPONENT]
        )

    def write_secret(self, data: Mapping[str, bytes | None], before: StoredSecret | None) -> None:
        encoded = {key: None if value is None else b64encode(value).decode() for key, value in data.items()}
        if before is not None:
            metadata = {"resourceVersion": before.resource_version, "labels": LABELS}
            if self._send("PATCH", self._secret, {"metadata": metadata, "data": encoded}, _MERGE) is None:
                raise Conflict(f"Secret {self._options.secret} is gone")
            return
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._options.secret.name, "labels": LABELS},
            "type": "kubernetes.io/tls",
            "data": {key: value for key, value in encoded.items() if value is not None},
        }
        if self._send("POST", self._secrets, secret, "application/json") is None:
            raise StoreRefused(
                f"there is no namespace {self._options.secret.namespace} for Secret {self._options.secret}: make it, "
                "or set webhook.certificates.secret"
            )

    def read_configuration(self) -> Mapping[str, Any] | None:
        return self._send("GET", self._configuration)

    def patch_configuration(self, patch: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        body = self._send("PATCH", self._configuration, list(patch), _JSON_PATCH)
        if body is None:
            raise Conflict(f"MutatingWebhookConfiguration {self._options.webhook_configuration} is gone")
        return body

    def _send(self, method: str, path: str, content: Any = None, content_type: str = "") -> dict[str, Any] | None:
        """The object that comes back; None = 404."""
        body = None if content is None else msgspec.json.encode(content)
        answer = send(self._api, method, path, body, content_type=content_type, seconds=self._seconds)
        if answer.why_none:
            raise StoreUnreachable(f"the API server does not answer: {answer.why_none}")
        if answer.is_success:
            try:
                return msgspec.json.decode(answer.body, type=dict[str, Any])
            except msgspec.DecodeError as error:
                raise StoreUnreachable(f"the API server's answer to {method} {path} cannot be read: {error}") from error
        if answer.status == 404:
            return None
        raise _refusal(f"{method} {path}", answer)


def _refusal(request: str, answer: ApiAnswer) -> ForecastError:
    status = answer.status
    told = f"the API server refused {request}: {answer.text}"
    if status == 409:
        return Conflict(told)
    if status in (401, 403):
        return StoreRefused(f"{told}; deploy/base/webhook/rbac-certificates.yaml has the rights that are needed")
    if status in (408, 429) or status >= 500:
        return StoreUnreachable(told)
    return StoreRefused(told)


def _decoded(data: Mapping[str, Any]) -> dict[str, bytes]:
    found = {}
    for key, value in data.items():
        try:
            found[key] = b64decode(value)
        except (ValueError, TypeError):
            continue
    return found


# The caBundle of a MutatingWebhookConfiguration: which of its webhooks lead to us, whom they trust, how to mend that.
#
# https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#contacting-the-webhook


@dataclass(frozen=True, slots=True)
class Published:
    """What a configuration says of the webhooks that lead to us.

    resource_version : of the configuration
    webhooks         : index of each
    bundles          : whom each trusts; () where that cannot be read or nothing is said
    """

    resource_version: str
    webhooks: tuple[int, ...] = ()
    bundles: tuple[tuple[x509.Certificate, ...], ...] = ()

    @property
    def authorities(self) -> tuple[x509.Certificate, ...]:
        """Trusted by any of them."""
        return tuple(one for bundle in self.bundles for one in bundle)

    @property
    def trusted(self) -> frozenset[bytes]:
        """Fingerprints of those that all trust."""
        sets = [frozenset(map(fingerprint, bundle)) for bundle in self.bundles]
        return frozenset.intersection(*sets) if sets else frozenset()

    def is_exactly(self, bundle: Sequence[x509.Certificate]) -> bool:
        """Return whether each one trusts exactly these authorities."""
        wanted = frozenset(map(fingerprint, bundle))
        return all(frozenset(map(fingerprint, found)) == wanted for found in self.bundles)


def published_in(configuration: Mapping[str, Any], options: CertificateOptions) -> Published:
    """Read a MutatingWebhookConfiguration as JSON; what is not as it should be is no webhook of ours."""
    webhooks, bundles = [], []
    for number, webhook in enumerate(configuration.get("webhooks") or ()):
        called = webhook.get("clientConfig") or {}
        if _leads_to(called, options):
            webhooks.append(number)
            bundles.append(_bundle(called.get("caBundle") or ""))
    version = str((configuration.get("metadata") or {}).get("resourceVersion"))
    return Published(version, tuple(webhooks), tuple(bundles))


def patch_of(published: Published, bundle: Sequence[x509.Certificate]) -> list[dict[str, Any]]:
    """A JSON patch by which the webhooks that lead to us trust these. RFC 6902

    A merge patch would have to send the whole list of webhooks, those of others too. An index alone could hit another
    webhook after an edit: with the resource version in the patch, the API server answers 409 then.
    """
    text = b64encode(to_pem(bundle)).decode()
    patch: list[dict[str, Any]] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": published.resource_version}
    ]
    paths = [f"/webhooks/{number}/clientConfig/caBundle" for number in published.webhooks]
    return patch + [{"op": "add", "path": path, "value": text} for path in paths]


def _leads_to(called: Mapping[str, Any], options: CertificateOptions) -> bool:
    if service := called.get("service"):
        return (service.get("namespace"), service.get("name")) == (options.service.namespace, options.service.name)
    try:
        return canonical(urlsplit(str(called.get("url") or "")).hostname or "") in options.all_names
    except ValueError:
        return False


def _bundle(text: str) -> tuple[x509.Certificate, ...]:
    try:
        return read_certificates(b64decode(text))
    except ValueError:
        return ()
