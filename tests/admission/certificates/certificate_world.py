"""A Secret and a MutatingWebhookConfiguration in memory, replicas that keep them, and a clock that a test moves."""

from __future__ import annotations

import copy
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.x509 import verification

from admission.certificates.certificate_keeper import CertificateKeeper, ShownCertificate
from admission.certificates.certificate_store import Conflict, StoredSecret, StoreUnreachable
from admission.webhook_settings import CertificateOptions, Named

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAME = "hook.shop.svc"
OPTIONS = CertificateOptions(
    secret=Named("shop", "hook-certificates"),
    webhook_configuration="hook",
    service=Named("shop", "hook"),
    names=("127.0.0.1", "localhost"),
)


def webhook(name: str = "one.hook.example", *, service: str = "hook", bundle: str = "") -> dict[str, Any]:
    called: dict[str, Any] = {"service": {"namespace": "shop", "name": service, "path": "/mutate", "port": 443}}
    if bundle:
        called["caBundle"] = bundle
    return {"name": name, "clientConfig": called, "failurePolicy": "Fail"}


class FakeStore:
    """Implements CertificateStore as an API server does: a stale resourceVersion is a conflict."""

    def __init__(self, *webhooks: dict[str, Any]) -> None:
        self.secret: dict[str, bytes] | None = None
        self.secret_version = 0
        self.is_marked = True
        self.configuration: dict[str, Any] | None = {
            "metadata": {"name": "hook", "resourceVersion": "1"},
            "webhooks": list(webhooks) or [webhook()],
        }
        self.is_down = False
        self.writes: list[str] = []
        self.before_call: Callable[[], None] = lambda: None

    def edit_bundle(self, text: str, number: int = 0) -> None:
        assert self.configuration is not None
        self.configuration["webhooks"][number]["clientConfig"]["caBundle"] = text
        self._next_version()

    def bundle(self, number: int = 0) -> bytes:
        assert self.configuration is not None
        return b64decode(self.configuration["webhooks"][number]["clientConfig"].get("caBundle", ""))

    def put_secret(self, data: dict[str, bytes] | None, *, is_marked: bool = True) -> None:
        self.secret, self.is_marked = data, is_marked
        self.secret_version += 1

    def read_secret(self) -> StoredSecret | None:
        self._call()
        if self.secret is None:
            return None
        return StoredSecret(str(self.secret_version), dict(self.secret), self.is_marked)

    def write_secret(self, data: Mapping[str, bytes | None], before: StoredSecret | None) -> None:
        self._call()
        if (before is None) != (self.secret is None):
            raise Conflict("made or gone meanwhile")
        if before is not None and before.resource_version != str(self.secret_version):
            raise Conflict("changed meanwhile")
        merged: dict[str, bytes | None] = {**(self.secret or {}), **data}
        self.put_secret({key: value for key, value in merged.items() if value is not None})
        self.writes.append("secret")

    def read_configuration(self) -> Mapping[str, Any] | None:
        self._call()
        return copy.deepcopy(self.configuration)

    def patch_configuration(self, patch: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        self._call()
        if self.configuration is None or patch[0]["value"] != self.configuration["metadata"]["resourceVersion"]:
            raise Conflict("changed meanwhile")
        for operation in patch[1:]:
            _, _, number, called, key = operation["path"].split("/")
            self.configuration["webhooks"][int(number)][called][key] = operation["value"]
        self._next_version()
        self.writes.append("bundle")
        return copy.deepcopy(self.configuration)

    def _next_version(self) -> None:
        assert self.configuration is not None
        metadata = self.configuration["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)

    def _call(self) -> None:
        self.before_call()
        if self.is_down:
            raise StoreUnreachable("the API server does not answer")


class World:
    """Context manager. `directory` is a test's own; `now` is what the clocks of all replicas say."""

    def __init__(
        self,
        directory: Path,
        *,
        replicas: int = 1,
        options: CertificateOptions = OPTIONS,
        store: FakeStore | None = None,
        start: datetime = START,
    ) -> None:
        self.now, self.store, self.options = start, store or FakeStore(), options
        self.shown = [ShownCertificate(directory) for _ in range(replicas)]
        self.keepers = [
            CertificateKeeper(self.store, shown, options, clock=lambda: self.now.timestamp()) for shown in self.shown
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for shown in self.shown:
            shown.__exit__()

    def wait(self, span: timedelta) -> None:
        self.now += span

    def look(self, number: int = 0) -> None:
        self.keepers[number].look_safely()

    def look_twice(self, number: int = 0) -> None:
        """With time enough in between for whatever was published to count."""
        self.look(number)
        self.wait(self.options.lifetimes.settle)
        self.look(number)

    def certificate(self, number: int = 0) -> x509.Certificate:
        found = self.shown[number].certificate
        assert found is not None
        return found

    def is_trusted(self, number: int = 0) -> bool:
        """Whether the API server would speak to this replica now."""
        return trusts(self.store.bundle(), self.certificate(number), self.now)


def trusts(bundle: bytes, certificate: x509.Certificate, now: datetime, name: str = NAME) -> bool:
    """Path validation as a TLS client does it, at any time."""
    if not bundle:
        return False
    store = verification.Store(x509.load_pem_x509_certificates(bundle))
    verifier = verification.PolicyBuilder().store(store).time(now).build_server_verifier(x509.DNSName(name))
    try:
        verifier.verify(certificate, [])
    except verification.VerificationError:
        return False
    return True
