"""Reads what nodes cost from all sources that the settings name: the one place of it with I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType

from autoscaling.capacity.node_cost import GroupPrices, recorded_nodes
from autoscaling.capacity.node_pool import chosen_group, node_groups
from autoscaling.prices.given_prices import GivenPrices
from autoscaling.prices.list_prices import LIST_CURRENCY, ListPrices, shipped_table
from autoscaling.prices.node_prices import NodePrices, PricedNode, PriceSource, price_nodes
from autoscaling.prices.opencost import ASSETS_PATH, NotOpenCost, OpenCostPrices, prices_in
from autoscaling.prices.price_file import read_price_file
from autoscaling.prices.price_settings import PriceOptions
from base.errors import InputError
from cluster.live_tables import LiveTables
from forecast.history import History
from forecast_scheduler.commands.remote_server import AskedService
from scorer.replay.recording import Recording
from serving.remote_service import RemoteAddress, RemoteService, ServiceUnavailable

_OPENCOST_SECONDS = 10.0
"""It asks Prometheus for the answer, one to three seconds for some hundred nodes."""


@dataclass(frozen=True, slots=True)
class PriceSources:
    """All that the settings and the command line say of prices, read once; `sources` in the order of being asked.

    given : prices of an hour by key, of the command line
    notes : what a reader should know of the sources, such as one that does not answer
    """

    currency: str
    sources: tuple[PriceSource, ...]
    given: Mapping[str, float]
    notes: tuple[str, ...]

    def price(self, nodes: Iterable[PricedNode]) -> NodePrices:
        """Price each node from the first source that knows it."""
        return price_nodes(nodes, self.sources, self.currency, self.notes)

    def price_cluster(self, tables: LiveTables) -> NodePrices:
        """Price the nodes of a cluster that was read."""
        with tables.reading() as cluster:
            nodes = [PricedNode.of(node) for node in cluster.state.nodes if node is not None]
        return self.price(sorted(nodes, key=lambda node: node.name))

    def price_groups(
        self,
        history: History,
        recording: Recording,
        labels: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> GroupPrices:
        """Price the nodes of a recording, which has no labels: by node group, or by OpenCost's names.

        labels : by node name, of a cluster that is there, too
        Raises InputError: a group of the command line that is not in the window, or one of several without a price.
        """
        groups = node_groups(recording)
        for name in self.given:
            chosen_group(groups, name)
        prices = GroupPrices.of(self.price(recorded_nodes(history.nodes, recording, labels)))
        if self.given and (unpriced := [one.name for one in groups if one.name not in prices.per_hour]):
            raise InputError(f"node group {unpriced[0]!r} has no price: give one to each group, or leave prices out")
        return prices


def read_price_sources(
    options: PriceOptions,
    *,
    given: Mapping[str, float] = MappingProxyType({}),
    connect: Callable[[str], AskedService] | None = None,
) -> PriceSources:
    """Read all sources, in their order: `given`, settings, file, OpenCost, list prices.

    given   : prices of an hour by key, as `prices.per_hour` has them: of the command line
    connect : to OpenCost at an address; None = over HTTP from here
    An OpenCost that fails costs its prices and a note. Raises InputError: settings or a file that cannot be used.
    """
    sources: list[PriceSource] = []
    notes: list[str] = []
    if given:
        sources.append(GivenPrices(given, "--price"))
    if options.per_hour:
        sources.append(GivenPrices(options.per_hour, "settings"))
    if options.file is not None:
        sources.append(read_price_file(options.file.expanduser(), options.currency))
    if options.opencost is not None:
        try:
            sources.append(_opencost((connect or _over_http)(options.opencost)))
        except ServiceUnavailable as error:
            notes.append(f"prices: left out, {error}")
        except NotOpenCost as error:
            notes.append(f"prices: left out, {options.opencost}: {error}")
    if options.list_prices and options.currency == LIST_CURRENCY:
        sources.append(ListPrices(shipped_table()))
    elif options.list_prices:
        notes.append(f"prices: list prices are in {LIST_CURRENCY}, the report is in {options.currency}: not used")
    return PriceSources(options.currency, tuple(sources), given, tuple(notes))


def _over_http(url: str) -> AskedService:
    return RemoteService(RemoteAddress(url, seconds=_OPENCOST_SECONDS), "opencost")


def _opencost(service: AskedService) -> OpenCostPrices:
    """Ask OpenCost for the prices of all nodes, once. Raises ServiceUnavailable, NotOpenCost."""
    with closing(service):
        return OpenCostPrices(prices_in(service.request("GET", ASSETS_PATH)))
