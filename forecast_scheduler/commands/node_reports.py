"""Where `nodes` and `node` get their answers: a running scorer, or one made for the command from a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Protocol
from urllib.parse import quote

from autoscaling.prices.node_prices import NodePrices
from autoscaling.prices.price_settings import PriceOptions
from forecast_scheduler.commands.node_prices import read_price_sources
from forecast_scheduler.commands.policy.followed_policies import read_policies
from forecast_scheduler.commands.remote_server import Answer, AskedService, asked_server
from forecast_scheduler.commands.scorer.scorer_setup import Inputs, open_scorer
from forecast_scheduler.settings.document import Settings
from scorer.answers import NodeReport, Nodes
from scorer.scorer import Scorer

_SYNC_SECONDS = 120.0


class NodeReports(Protocol):
    """scorer.scorer.Scorer, as the commands see it, and prices."""

    def nodes(self, *, by_peak: bool, top: int | None, day: date | None) -> Nodes:
        """Return the nodes, the hottest first with `by_peak`. See ScorerApi."""

    def node_report(self, node: str, *, day: date | None, top: int) -> NodeReport:
        """Return what makes the peak of a node, and what helps. See ScorerApi."""

    def prices(self) -> NodePrices | None:
        """What all nodes cost, by the settings; None = a running scorer does not say what its nodes are."""


class RemoteNodeReports:
    """Asks a running scorer (docs/use/http-api.md). Implements NodeReports; raises InputError."""

    def __init__(self, connect: Callable[[], AskedService]) -> None:
        """connect: to the scorer, for one question"""
        self._connect = connect

    def nodes(self, *, by_peak: bool, top: int | None, day: date | None) -> Nodes:
        query = {"sort": "peak" if by_peak else "name"} | ({} if top is None else {"top": str(top)})
        return self._asked("/v1/nodes", query, day, Nodes)

    def node_report(self, node: str, *, day: date | None, top: int) -> NodeReport:
        return self._asked(f"/v1/nodes/{quote(node, safe='')}", {"top": str(top)}, day, NodeReport)

    def prices(self) -> None:
        return None

    def _asked(self, path: str, query: dict[str, str], day: date | None, body: type[Answer]) -> Answer:
        query |= {} if day is None else {"on": day.isoformat()}
        way_out = "name a running scorer with --scorer URL, or a cluster file with --cluster FILE"
        return asked_server(self._connect(), path, query, body, name="scorer", way_out=way_out)


class LocalNodeReports:
    """Implements NodeReports on a scorer of its own, `scorer`."""

    def __init__(self, scorer: Scorer, options: PriceOptions) -> None:
        self.scorer, self._options = scorer, options
        self.nodes, self.node_report = scorer.nodes, scorer.node_report

    def prices(self) -> NodePrices:
        return read_price_sources(self._options).price_cluster(self.scorer.tables)


@contextmanager
def local_node_reports(settings: Settings, inputs: Inputs) -> Iterator[NodeReports]:
    """A scorer over the cluster of the inputs, with the model in use and usage as it is measured now.

    Raises InputError: files that cannot be read, an API server that does not answer, contradicting inputs.
    """
    with open_scorer(settings, inputs, policies=read_policies(settings, inputs.access)) as (scorer, background):
        background.wait_synced(_SYNC_SECONDS)
        background.look_for_model()
        scorer.tables.measure()
        scorer.tables.tick()
        scorer.tables.refresh_overview()
        yield LocalNodeReports(scorer, settings.prices)
