"""The caBundle of a MutatingWebhookConfiguration: which of its webhooks lead to us, whom they trust, how to mend that.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#contacting-the-webhook
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from admission.certificates.authority import fingerprint, read_certificates, to_pem
from admission.certificates.options import CertificateOptions, canonical


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
