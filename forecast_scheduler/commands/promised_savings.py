"""What a search for the fewest nodes promises to save, and what came of the last promise by the prices of now."""

from __future__ import annotations

import logging
from datetime import datetime

import numpy as np

from autoscaling.capacity.node_cost import GroupPrices
from autoscaling.capacity.nodes_needed import Capacity
from autoscaling.prices.node_prices import PricedNode, shape_name
from base.errors import InputError, StoreError
from base.object_store import ObjectStore
from forecast.history import History
from forecast.resources import CPU, MEMORY
from forecast_scheduler.commands.node_prices import read_price_sources
from forecast_scheduler.settings.document import Settings
from trainer.promised_saving import PromisedSaving, last_promise
from trainer.run_report.saving import RealisedSaving, realised_saving

logger = logging.getLogger(__name__)


def saving_since(settings: Settings, store: ObjectStore, history: History) -> RealisedSaving | None:
    """What came of the promise in the store, by the prices of now; None = there is none, or no prices can be read.

    The report of a run does without it rather than fail.
    """
    try:
        if (promise := last_promise(store)) is None:
            return None
        cores, memory = history.capacity[:, CPU], history.capacity[:, MEMORY]
        nodes = [
            PricedNode(name, {}, cores[row], memory[row], shape_name(cores[row], memory[row]))
            for row, name in enumerate(history.nodes)
        ]
        prices = GroupPrices.of(read_price_sources(settings.prices).price(nodes))
    except (InputError, StoreError) as error:
        logger.warning("what was saved is not reported", extra={"error": str(error)})
        return None
    nan = float("nan")
    before = prices.per_month(promise.groups) if settings.prices.currency == promise.currency else None
    return realised_saving(
        history,
        promise,
        np.array([nan if (price := prices.per_month({node.group: 1})) is None else price for node in nodes]),
        nan if before is None else before,
        settings.hot_share,
    )


def promise_of(found: Capacity, made_at: datetime) -> PromisedSaving:
    """What a search promises of the forecast. Raises InputError: it saves nothing, or there are no prices."""
    money, ours = found.to_json()["money"], found.rules.get("forecast")
    saved = None if money is None else money["saved_per_month"].get("forecast")
    if saved is None or ours is None or ours.nodes is None or ours.trial is None:
        raise InputError("--promise needs a number of nodes and their prices: set prices.per_hour, or give --price")
    return PromisedSaving(
        made_at=made_at,
        currency=money["currency"],
        groups=dict(found.recorded),
        nodes=ours.nodes,
        saved_per_month=saved,
        hot_share=ours.trial.hot_share,
        target=found.target,
        sources=money["sources"],
    )
