"""Finds the metrics store of a cluster if none is named: lists Services and nodes, and asks the best candidates.

From outside the cluster it is asked through the API server's proxy of Services, inside by its address. A search asks
for its rights, lists Services and nodes, and sends at most ten queries (store_search.py). What it found is one line of
the log, and so is each candidate that was asked in vain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final, TypeVar

import msgspec
from kubernetes import client

from base.errors import ForecastError, InputError
from forecast_scheduler.discovery.api_server_transport import ApiServerTransport
from forecast_scheduler.discovery.known_nodes import NODES_QUERY, KnownNodes, Labels, known_nodes
from forecast_scheduler.discovery.own_cluster import holds_several, own_cluster
from forecast_scheduler.discovery.ranking import StoreCandidate, rank_services
from forecast_scheduler.discovery.reaching import Reaching
from forecast_scheduler.discovery.services import ClusterNodes, nodes_of, services_of, together
from forecast_scheduler.discovery.store_search import PACE, search
from kube.client.access_review import ask_right
from kube.client.cluster_access import ClusterAccess
from kube.client.kubernetes_client import UnreachableApiServer, ask, required
from kube.client.kubernetes_steps import Request
from trainer.prometheus.clusters import NODES
from trainer.prometheus.http_answer import CredentialsRefused, NoPrometheusApi, Transient
from trainer.prometheus.metrics_store import MetricsStore
from trainer.prometheus.prometheus_settings import PrometheusOptions

logger = logging.getLogger(__name__)

Page = TypeVar("Page")

_PAGE: Final = "500"
_API_SECONDS: Final = 10.0
_CLOUDS: Final = {"aws": "aws", "gce": "google", "azure": "azure"}
"""Of prometheus.cloud, by the scheme of a node's providerID."""

_PROXY_RIGHT: Final = "services/proxy"


class NoStoreFound(InputError):
    """No store is named, and the search found none; the message says why, and the way out."""


def find_store(options: PrometheusOptions, access: ClusterAccess) -> MetricsStore:
    """Return the store that knows the cluster's nodes. Raises NoStoreFound."""
    try:
        api = access.client()
        _check_rights(api)
        services = [one for page in _pages(api, "services", services_of) for one in page]
        candidates = rank_services(services)
        nodes = together(list(_pages(api, "nodes", nodes_of))) if candidates else ClusterNodes({})
    except (InputError, UnreachableApiServer) as error:
        raise _none_found(f"the cluster cannot be searched for one: {error}") from error
    reaching, quick = Reaching(access, options), options.replace(timeout=PACE.in_all, patience=0)
    stores = dict[str, MetricsStore]()

    def probe(candidate: StoreCandidate, path: str) -> KnownNodes:
        store = reaching.store(candidate, path)
        try:
            known = _ask_nodes(store, quick, nodes)
        except CredentialsRefused:
            store = reaching.with_credentials(candidate, path)
            known = _ask_nodes(store, quick, nodes)
        stores[f"{candidate}{path}"] = store
        return known

    result = search(candidates, probe)
    for line in result.in_vain:
        logger.info(line)
    if result.found is None:
        tried = f", {len(result.in_vain)} of them asked" if result.in_vain else ""
        raise _none_found(f"none of {len(services)} Services is one{tried}", nodes)
    found = result.found
    store = replace(stores[f"{found.candidate}{found.path}"], address=found.candidate.address + found.path)
    if found.nodes.others or found.nodes.namesakes:
        try:
            store = _of_own_cluster(store, quick, nodes)
        except ForecastError as error:
            raise NoStoreFound(f"the metrics store {found.candidate} cannot be used: {error}") from error
    product = f" ({found.candidate.product})" if found.candidate.product else ""
    chosen = f", {_listed(store.cluster)} of several clusters" if store.cluster else ""
    known = KnownNodes(found.nodes.known, found.nodes.of, 0) if store.cluster else found.nodes
    logger.info("metrics store: %s%s, %s%s: %s", found.candidate, product, _how(store), chosen, known)
    return store


def of_this_cluster(store: MetricsStore, options: PrometheusOptions, access: ClusterAccess) -> MetricsStore:
    """A store that the user names, narrowed to the cluster of the kubeconfig if it holds several and none is chosen.

    Who cannot be asked, the store or the API server, leaves it as it is: what reads it says what is wrong.
    Raises InputError, with the values found, if it is not clear which cluster is ours.
    """
    if options.cluster or (series := _nodes_known(store, options)) is None or not holds_several(series):
        return store
    if (nodes := _nodes_here(access)) is None:
        return store
    own = own_cluster(nodes, series)
    if own:
        logger.info("metrics store: %s: %s of several clusters", store.url, _listed(own))
    return replace(store, cluster=own)


def check_measures(store: MetricsStore, options: PrometheusOptions, access: ClusterAccess) -> None:
    """Raise InputError if a store that the user names knows nodes, and none of the cluster of the kubeconfig.

    Who cannot be asked, the store or the API server, passes: what reads it says what is wrong.
    """
    series = _nodes_known(store, options)
    if not series or (nodes := _nodes_here(access)) is None or not nodes.addresses:
        return
    if known_nodes(nodes, series).known == 0:
        theirs = sorted({labels["node"] for labels in series})
        chosen = f" by prometheus.cluster ({_listed(options.cluster)})" if options.cluster else ""
        raise InputError(
            f"the metrics store {store.url} measures another cluster{chosen}: it knows {len(theirs):,} nodes such as "
            f"{theirs[0]}, and none of the {len(nodes.addresses):,} of {access.name()}; name the store of this "
            "cluster, or leave --prometheus, prometheus.url and prometheus.cluster out and it is looked for"
        )


def _nodes_known(store: MetricsStore, options: PrometheusOptions) -> Sequence[Labels] | None:
    """kube_node_info with all its labels; None = the store cannot be asked."""
    try:
        with closing(store.connect(options.replace(timeout=PACE.in_all, patience=0))) as connection:
            return connection.instant("nodes of all clusters", NODES).labels
    except ForecastError as error:
        logger.debug("the nodes of a store are not known: %s", error)
        return None


def _nodes_here(access: ClusterAccess) -> ClusterNodes | None:
    """The nodes of the API server; None = it cannot be asked."""
    try:
        return together(list(_pages(access.client(), "nodes", nodes_of)))
    except ForecastError as error:
        logger.debug("the nodes of the cluster are not known: %s", error)
        return None


def _listed(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value or 'none'}" for name, value in labels.items())


def _how(store: MetricsStore) -> str:
    if store.transport is None:
        return f"at {store.url}" + (", with the credentials of the settings" if store.is_named else "")
    return "through the API server" if isinstance(store.transport, ApiServerTransport) else f"at {store.url}"


def _of_own_cluster(store: MetricsStore, options: PrometheusOptions, nodes: ClusterNodes) -> MetricsStore:
    """The same, for this cluster alone where it holds several. Raises ForecastError."""
    with closing(store.connect(options)) as connection:
        return replace(store, cluster=own_cluster(nodes, connection.instant("nodes of all clusters", NODES).labels))


def _check_rights(api: client.ApiClient) -> None:
    """Ask first: our pods try nothing that their rights do not cover. Raises InputError."""
    for resource in ("services", "nodes"):
        verdict = ask_right(api, "list", resource)
        if verdict.is_allowed is None:
            return  # the list itself will say why the API server does not answer
        if not verdict.is_allowed:
            raise InputError(f"the API server forbids to list {resource}: grant list on them with a ClusterRole")


def _none_found(why: str, nodes: ClusterNodes | None = None) -> NoStoreFound:
    clouds = [_CLOUDS[one] for one in sorted(nodes.providers if nodes is not None else ()) if one in _CLOUDS]
    managed = f"; for a managed store also set prometheus.cloud: {clouds[0]}" if clouds else ""
    return NoStoreFound(
        f"no metrics store is named, and {why}; pass --prometheus URL, set prometheus.url, or record without one by "
        f"`look --record DIR` (docs/operate/prometheus.md){managed}"
    )


def _pages(api: client.ApiClient, resource: str, decode: Callable[[bytes], tuple[Page, str]]) -> Iterator[Page]:
    """All pages of a list in all namespaces. Raises InputError, UnreachableApiServer."""
    token = ""
    while True:
        query = {"limit": _PAGE} | ({"continue": token} if token else {})
        answer = ask(api, Request(f"/api/v1/{resource}", query=query), seconds=_API_SECONDS)
        body = required(answer, f"list {resource}", grant="list on them").body
        try:
            page, token = decode(body)
        except msgspec.DecodeError as error:
            raise UnreachableApiServer(f"the API server lists {resource} that cannot be read: {error}") from error
        yield page
        if not token:
            return


def _ask_nodes(store: MetricsStore, options: PrometheusOptions, nodes: ClusterNodes) -> KnownNodes:
    """Raises NoPrometheusApi, CredentialsRefused, ForecastError: one line without the URL, named by the caller."""
    connection = store.connect(options)
    try:
        return known_nodes(nodes, connection.instant("names of nodes", NODES_QUERY).labels)
    except NoPrometheusApi as error:
        raise NoPrometheusApi("it has no Prometheus API there") from error
    except ForecastError as error:
        cause = error.__cause__
        text = cause.found if isinstance(cause, Transient) else str(error)
        if _PROXY_RIGHT in text:
            raise ForecastError(f"the API server forbids to ask it: grant get on {_PROXY_RIGHT}") from error
        if isinstance(error, CredentialsRefused):
            raise
        raise ForecastError(text.replace(store.url, "it")) from error
    finally:
        connection.close()
