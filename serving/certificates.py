"""TLS of the service: certificate, key and client authority from files, taken over again when the files change."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

from base.errors import InputError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """PEM files. certificate: the chain; key may be in it; client_ca: who signs clients, who must then show one."""

    certificate: Path
    key: Path | None = None
    client_ca: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """Those that are set."""
        return tuple(path for path in (self.certificate, self.key, self.client_ca) if path is not None)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Raises InputError: unreadable, no certificate, or a key of another certificate."""
        try:
            context.load_cert_chain(self.certificate, self.key)
            if self.client_ca is not None:
                context.load_verify_locations(self.client_ca)
        except (OSError, ssl.SSLError) as error:
            names = ", ".join(map(str, self.paths))
            raise InputError(
                f"TLS files {names} cannot be used ({error.strerror or error}): certificate, key and client authority "
                "must be readable PEM files, and the key that of the certificate"
            ) from error


class ReloadedCertificates:
    """A server's SSLContext that follows its files.

    A new certificate counts for connections made from then on. A new client authority is trusted in addition to the old
    one: OpenSSL cannot forget one, so withdrawing an authority takes a restart.
    """

    def __init__(self, files: CertificateFiles) -> None:
        self.files = files
        self._seen = self._stamps()
        self.context = _new_context(files)

    def refresh(self) -> bool:
        """Take over changed files; True if so. What cannot be used is logged, and the old certificate stays."""
        try:
            stamps = self._stamps()
            if stamps == self._seen:
                return False
            self._seen = stamps
            # Tried elsewhere first: a key that does not fit would leave the live context with half of each.
            _new_context(self.files)
            self.files.load_into(self.context)
        except (InputError, OSError) as error:
            logger.warning("the TLS certificate stays as it was: %s", error)
            return False
        logger.info("TLS certificate read again from %s", self.files.certificate)
        return True

    def _stamps(self) -> tuple[tuple[int, int, int], ...]:
        try:
            found = [path.stat() for path in self.files.paths]
        except OSError as error:
            raise InputError(f"TLS file {error.filename} cannot be read ({error.strerror}): name a PEM file") from error
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)


def _new_context(files: CertificateFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    files.load_into(context)
    if files.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    return context
