"""The store that a command asks: the one that is named, else the one that is found in the cluster."""

from __future__ import annotations

import logging

from base.errors import InputError
from forecast_scheduler.settings.document import Settings
from kube.client.cluster_access import ClusterAccess
from trainer.prometheus.metrics_store import MetricsStore

logger = logging.getLogger("forecast_scheduler.discovery")
"""The one whose INFO commands show, too (shell.py)."""


def named_store(settings: Settings, url: str | None) -> MetricsStore | None:
    """The store of `--prometheus` or of the settings; None = neither names one."""
    address = url or settings.prometheus.url
    return None if address is None else MetricsStore(address)


def named_store_of(settings: Settings, url: str | None, access: ClusterAccess) -> MetricsStore | None:
    """The same, narrowed to the cluster of the kubeconfig if it holds several. Raises InputError if it is not clear."""
    if (named := named_store(settings, url)) is None:
        return None
    from forecast_scheduler.discovery.cluster_store import of_this_cluster

    return of_this_cluster(named, settings.prometheus, access)


def found_address(settings: Settings, access: ClusterAccess) -> str:
    """Where pods of the cluster ask its own store; "" = there is none, as a line of the log says."""
    store = store_if_any(settings, None, access)
    return "" if store is None else store.address


def store_without_history(settings: Settings, access: ClusterAccess) -> MetricsStore:
    """The cluster's own store, for commands that otherwise read a history. Raises InputError."""
    from forecast_scheduler.discovery.cluster_store import NoStoreFound, find_store

    try:
        return find_store(settings.prometheus, access)
    except NoStoreFound as error:
        raise InputError(
            f"no history named: pass --history DIR, for instance --history data/sample; {error}"
        ) from error


def store_to_learn_from(settings: Settings, url: str | None, access: ClusterAccess) -> MetricsStore:
    """The store that is named, which is never given up for another, else the cluster's own.

    Raises NoStoreFound, and InputError if the one that is named measures another cluster.
    """
    from forecast_scheduler.discovery.cluster_store import check_measures, find_store

    if (named := named_store_of(settings, url, access)) is not None:
        check_measures(named, settings.prometheus, access)
        return named
    return find_store(settings.prometheus, access)


def store_if_any(settings: Settings, url: str | None, access: ClusterAccess) -> MetricsStore | None:
    """The store that is named, which is never given up for another, else the cluster's own; None = there is neither.

    For commands that work without one, too: why there is none is a line of the log. Raises InputError if
    several clusters are in the one that is named, and it is not clear which is ours.
    """
    if (named := named_store_of(settings, url, access)) is not None:
        return named
    # Not above: it brings the client of the API server.
    from forecast_scheduler.discovery.cluster_store import NoStoreFound, find_store

    try:
        return find_store(settings.prometheus, access)
    except NoStoreFound as error:
        logger.info("usage is not measured: %s", error)  # no fault: all works by the forecast alone
        return None
