"""How a Service that may be a store is asked, and who we are there.

    from outside         through the API server's proxy of Services, with the rights of the kubeconfig; it takes every
                         Authorization out, so a store that wants one cannot be asked in this way
    inside               by its address
    OpenShift's querier  with the token of the kubeconfig or of our service account (openshift.py)

Credentials of the settings go to a Service only inside the cluster, only if it refused to answer without, and only to
a known product in a namespace of PLATFORM_NAMESPACES.
"""

from __future__ import annotations

from base.errors import ForecastError
from forecast_scheduler.discovery.api_server_transport import ApiServerTransport, proxied_url
from forecast_scheduler.discovery.known_stores import PLATFORM_NAMESPACES
from forecast_scheduler.discovery.openshift import is_querier, querier_inside, querier_outside
from forecast_scheduler.discovery.ranking import StoreCandidate
from kube.client.cluster_access import ClusterAccess
from trainer.prometheus.metrics_store import MetricsStore
from trainer.prometheus.prometheus_settings import PrometheusOptions


class Reaching:
    """Makes the stores of one search. is_inside: whether this process runs in the cluster that is searched."""

    def __init__(self, access: ClusterAccess, options: PrometheusOptions) -> None:
        self._api, self.is_inside = access.client(), access.runs_here()
        self._transport = None if self.is_inside else ApiServerTransport(self._api)
        self._has_credentials = bool(options.bearer_token_file or options.username)

    def store(self, candidate: StoreCandidate, path: str) -> MetricsStore:
        """The store that the candidate would be, without credentials of the settings. Raises ForecastError."""
        if is_querier(candidate.service):
            own = querier_inside(candidate.address) if self.is_inside else querier_outside(self._api)
            if own is not None:
                return own
        if self._transport is None:
            return MetricsStore(candidate.address + path, is_named=False)
        return MetricsStore(
            proxied_url(self._api.configuration.host, candidate) + path, self._transport, is_named=False
        )

    def with_credentials(self, candidate: StoreCandidate, path: str) -> MetricsStore:
        """The same with those of the settings, after it asked for some. Raises ForecastError, which says what to do."""
        if is_querier(candidate.service):
            raise ForecastError("it refuses the token: bind the ClusterRole cluster-monitoring-view to its user")
        if not self.is_inside:
            raise ForecastError(
                "it asks for credentials, which do not pass the API server: set prometheus.bearer_token_file (or "
                "username and password_file) and pass --prometheus with the URL of its Ingress, Route or port-forward"
            )
        if not self._has_credentials:
            raise ForecastError(
                "it asks for credentials: set prometheus.bearer_token_file, or username and password_file"
            )
        if not candidate.product or candidate.service.namespace not in PLATFORM_NAMESPACES:
            raise ForecastError(
                "it asks for credentials, and those of the settings go to no Service that is found by its name alone: "
                "set prometheus.url"
            )
        return MetricsStore(candidate.address + path)
