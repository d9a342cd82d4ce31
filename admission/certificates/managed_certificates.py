"""Managed certificates as a server needs them: files that are there before it listens and are followed by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kubernetes import client

from admission.certificates.certificate_keeper import CertificateKeeper
from admission.certificates.certificate_store import ApiCertificateStore, Conflict, StoreRefused, Unreachable
from admission.certificates.metrics import CertificateCollector
from admission.certificates.options import CertificateOptions
from admission.certificates.served_certificate_file import ShownCertificate
from base.errors import InputError
from base.periodic_task import PeriodicTask
from serving.certificates import CertificateFiles

_START_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
_TICK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ManagedCertificates:
    """files: for the server, which reads them again when they change; collector: for /metrics."""

    files: CertificateFiles
    collector: CertificateCollector


@contextmanager
def open_certificates(
    options: CertificateOptions,
    api: client.ApiClient,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[ManagedCertificates]:
    """A certificate that is trusted already, renewed while the context lasts.

    clock     : unix seconds
    monotonic : seconds, for how long things take

    Raises InputError where the API server refuses, Unreachable where it does not answer for a minute.
    """
    with ShownCertificate() as shown:
        keeper = CertificateKeeper(ApiCertificateStore(api, options), shown, options, clock=clock, monotonic=monotonic)
        _first_look(keeper, sleep, monotonic)
        every = PeriodicTask("webhook-certificates", min(_TICK_SECONDS, options.every), keeper.look_if_due)
        every.start()
        try:
            files = CertificateFiles(shown.path)
            yield ManagedCertificates(files, CertificateCollector(files, keeper))
        finally:
            every.stop()


def _first_look(keeper: CertificateKeeper, sleep: Callable[[float], None], monotonic: Callable[[], float]) -> None:
    """Until it succeeds: without a certificate there is nothing to serve."""
    # Requests without an answer take time, too.
    until = monotonic() + _START_SECONDS
    while True:
        try:
            keeper.look()
            return
        except StoreRefused as error:
            raise InputError(str(error)) from error
        except (Unreachable, Conflict):
            if monotonic() >= until:
                raise
            sleep(_PAUSE_SECONDS)
