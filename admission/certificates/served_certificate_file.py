"""The certificate that is shown, as a file that the server follows: one PEM with its key, replaced in one step."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Self

from cryptography import x509

from admission.certificates.authority import Pair, to_pem


class ShownCertificate:
    """Context manager: a directory that only this user may enter, removed at the end."""

    def __init__(self, parent: Path | None = None) -> None:
        """parent: None = where temporary files go."""
        self._directory = tempfile.TemporaryDirectory(prefix="forecast-webhook-", dir=parent)  # mode 0700
        self.path = Path(self._directory.name) / "tls.pem"
        self.certificate: x509.Certificate | None = None
        """What stands in the file; None = there is none yet."""
        self.signer: x509.Certificate | None = None
        """Who signed it."""

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
