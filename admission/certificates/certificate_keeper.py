"""Keeps certificates: looks at Secret and caBundle, does what rotation.py says, and replaces the file that the server
shows, one PEM with its key, in one step.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509

from admission.certificates.authority import Pair, fingerprint, is_ours, to_pem
from admission.certificates.certificate_secret import KEYS, SecretContent, held_from, secret_data
from admission.certificates.certificate_store import (
    CertificateStore,
    Conflict,
    Published,
    StoredSecret,
    StoreRefused,
    patch_of,
    published_in,
)
from admission.certificates.rotation import RotationStep, advanced, may_serve, next_step
from admission.webhook_settings import CertificateOptions
from base.errors import ForecastError

logger = logging.getLogger(__name__)

_ATTEMPTS = 10
"""Steps and conflicts in one look; three steps can be due at once."""


class ShownCertificate:
    """Context manager: a directory that only this user may enter, removed at the end."""

    def __init__(self, parent: Path | None = None) -> None:
        """parent: None = where temporary files go."""
        self._directory = tempfile.TemporaryDirectory(prefix="forecast-webhook-", dir=parent)  # mode 0700
        self.path = Path(self._directory.name) / "tls.pem"
        self.certificate: x509.Certificate | None = None
        """What stands in the file; None = there is none yet."""
        self.signer: x509.Certificate | None = None
        """The authority that signed what stands there; None = there is none yet."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._directory.cleanup()

    def show(self, pair: Pair, signer: x509.Certificate) -> None:
        """Put it in place. Raises OSError."""
        unfinished = self.path.with_suffix(".new")
        # Certificate and key in one file: of two, the server could read one of each.
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(to_pem([pair.certificate]) + pair.key_pem)
        unfinished.replace(self.path)
        self.certificate, self.signer = pair.certificate, signer


@dataclass(frozen=True, slots=True)
class KeeperFigures:
    """Since the start. failed: looks; written: Secrets; mended: caBundles."""

    failed: int = 0
    written: int = 0
    mended: int = 0


class CertificateKeeper:
    """One replica's. `look` is for one thread at a time; the rest for any."""

    def __init__(
        self,
        store: CertificateStore,
        shown: ShownCertificate,
        options: CertificateOptions,
        *,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """clock: unix seconds; monotonic: seconds, for the pauses between looks."""
        self._store, self._shown, self._options, self._clock = store, shown, options, clock
        self._monotonic = monotonic
        self._trusted_since: dict[bytes, datetime] = {}
        self._failed = self._written = self._mended = 0
        self._trouble, self._uncalled, self._waits = "", False, True
        self._due_at = 0.0
        self._lock = threading.Lock()

    @property
    def figures(self) -> KeeperFigures:
        return KeeperFigures(self._failed, self._written, self._mended)

    def look_if_due(self) -> None:
        """To be called every few seconds: look as often as the options say, and each time while something waits.

        That is a new certificate for its authority to be trusted, a configuration that is not there yet, or trouble.
        """
        now = self._monotonic()
        if self._waits or self._trouble or now >= self._due_at:
            self._due_at = now + self._options.every
            self.look_safely()

    def look_safely(self) -> None:
        """As `look`, but trouble is logged: what is shown stays, and the next look is another try."""
        try:
            self.look()
        except (ForecastError, OSError) as error:
            self._failed += 1
            # Words about a server that is away differ each time. Once, until it works again or is something else.
            trouble = str(error) if isinstance(error, StoreRefused) else type(error).__name__
            if self._trouble != trouble:
                self._trouble = trouble
                logger.warning("certificates of the webhook cannot be looked after: %s", error)
        else:
            if self._trouble:
                self._trouble = ""
                logger.info("certificates of the webhook are looked after again")

    def look(self) -> None:
        """Do what is due. Raises Unreachable, StoreRefused, Conflict after many tries, and OSError."""
        with self._lock:
            conflict: Conflict | None = None
            for _ in range(_ATTEMPTS):
                try:
                    if self._look_once():
                        return
                except Conflict as error:
                    conflict = error
            raise conflict or Conflict(f"Secret {self._options.secret} changes each time it is looked at")

    def _look_once(self) -> bool:
        """Whether all is done; False = a step was done, look again."""
        now, options = datetime.fromtimestamp(self._clock(), UTC), self._options
        configuration = self._store.read_configuration()
        published = None if configuration is None else published_in(configuration, options)
        self._tell_if_uncalled(published)
        secret = self._store.read_secret()
        held = self._held(secret)
        trusted = published.trusted if published is not None and published.webhooks else None
        step = next_step(held, trusted, options.all_names, options.lifetimes, now, signer=self._shown.signer)
        if step is not RotationStep.KEEP:
            authorities = () if published is None else published.authorities
            after = advanced(
                held, step, authorities, options.all_names, options.lifetimes, now, signer=self._shown.signer
            )
            self._store.write_secret(secret_data(after), secret)
            self._written += 1
            logger.info(
                "certificates of the webhook: %s", step.value, extra={"step": step.name, "secret": str(options.secret)}
            )
            return False
        assert held is not None
        if published is not None and published.webhooks:
            published = self._publish(published, held, now)
        self._show(held, published, now)
        return True

    def _held(self, secret: StoredSecret | None) -> SecretContent | None:
        """Return the usable content; None = none. Raises StoreRefused for a Secret of another owner."""
        if secret is None:
            return None
        # Backups may have lost their labels.
        may_be_foreign = bool(secret.data) and not secret.is_marked
        try:
            held = held_from(secret.data)
        except ValueError as error:
            if may_be_foreign:
                raise self._foreign(str(error)) from error
            if secret.data.keys() & set(KEYS):
                logger.warning("Secret %s cannot be used and is replaced: %s", self._options.secret, error)
            return None
        if may_be_foreign and not is_ours(held.authority.certificate):
            raise self._foreign(f"its authority is {held.authority.certificate.subject.rfc4514_string()[:200]}")
        if held.broken:
            logger.warning("Secret %s is mended: %s", self._options.secret, "; ".join(held.broken))
        return held

    def _foreign(self, why: str) -> StoreRefused:
        return StoreRefused(
            f"Secret {self._options.secret} is not one of the webhook's and is left alone ({why}): name another one in "
            "webhook.certificates.secret, or, if cert-manager keeps it, set webhook.certificates.managed to false"
        )

    def _publish(self, published: Published, held: SecretContent, now: datetime) -> Published:
        bundle = held.bundle(now)
        if published.is_exactly(bundle):
            return published
        answer = self._store.patch_configuration(patch_of(published, bundle))
        self._mended += 1
        logger.info(
            "caBundle written", extra={"configuration": self._options.webhook_configuration, "authorities": len(bundle)}
        )
        return published_in(answer, self._options)

    def _show(self, held: SecretContent, published: Published | None, now: datetime) -> None:
        assert held.serving is not None
        if published is None or not published.webhooks:
            self._trusted_since.clear()
            trusted_for: timedelta | None = self._options.lifetimes.settle  # no client asks this replica
        else:
            # A clock that is set back must not make any replica wait longer.
            self._trusted_since = {one: min(self._trusted_since.get(one, now), now) for one in published.trusted}
            since = self._trusted_since.get(fingerprint(held.authority.certificate))
            trusted_for = None if since is None else now - since
        if may_serve(held.serving, self._shown.certificate, trusted_for, self._options.lifetimes, now):
            self._shown.show(held.serving, held.authority.certificate)
            until = held.serving.certificate.not_valid_after_utc.isoformat()
            logger.info("a new certificate of the webhook is in use", extra={"until": until})
        self._waits = self._uncalled or self._shown.certificate != held.serving.certificate

    def _tell_if_uncalled(self, published: Published | None) -> None:
        uncalled = published is None or not published.webhooks
        if uncalled and not self._uncalled:
            what = "is not there" if published is None else "has no webhook for it"
            logger.warning(
                "the API server does not call service %s: MutatingWebhookConfiguration %s %s",
                self._options.service,
                self._options.webhook_configuration,
                what,
            )
        self._uncalled = uncalled
