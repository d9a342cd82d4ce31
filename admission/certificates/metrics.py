"""Metrics of the webhook's certificate: when it ends, and how its upkeep goes."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from admission.certificates.authority import read_certificates
from admission.certificates.certificate_keeper import CertificateKeeper
from serving.certificates import CertificateFiles


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
