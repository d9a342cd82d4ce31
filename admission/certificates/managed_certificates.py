"""Managed certificates as a server needs them: files that are there before it listens and are followed by it; and
metrics of when the certificate ends and how its upkeep goes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kubernetes import client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.certificates.authority import read_certificates
from admission.certificates.certificate_keeper import CertificateKeeper, ShownCertificate
from admission.certificates.certificate_store import ApiCertificateStore, Conflict, StoreRefused, StoreUnreachable
from admission.webhook_settings import CertificateOptions
from base.errors import InputError
from base.periodic_task import PeriodicTask
from serving.tls import CertificateFiles

_START_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
_TICK_SECONDS = 5.0


class CertificateCollector(Collector):
    """Reads the file at each scrape. keeper: None = another component keeps the files."""

    def __init__(self, files: CertificateFiles, keeper: CertificateKeeper | None = None) -> None:
        self._files, self._keeper = files, keeper

    def collect(self) -> Iterator[Metric]:
        """The expiry is missing where the file cannot be read."""
        expiry = GaugeMetricFamily(
            "forecast_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate in use ends, unix time; a managed one is renewed after two thirds of its lifetime.",
        )
        try:
            found = read_certificates(self._files.certificate.read_bytes())
        except (OSError, ValueError):
            found = ()
        if found:
            expiry.add_metric([], found[0].not_valid_after_utc.timestamp())
        yield expiry
        if self._keeper is None:
            return
        figures = self._keeper.figures
        yield CounterMetricFamily(
            "forecast_webhook_certificate_failures",
            "Looks at Secret and caBundle that did not succeed; the certificate in use stays.",
            value=figures.failed,
        )
        yield CounterMetricFamily(
            "forecast_webhook_certificate_secret_writes",
            "Times this replica has written the Secret with authority and certificate.",
            value=figures.written,
        )
        yield CounterMetricFamily(
            "forecast_webhook_ca_bundle_writes",
            "Times this replica has written the caBundle: at rotations, and where somebody else had changed it.",
            value=figures.mended,
        )


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
        except (StoreUnreachable, Conflict):
            if monotonic() >= until:
                raise
            sleep(_PAUSE_SECONDS)
