from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from autoscaling.autoscale_settings import CapacityOptions
from autoscaling.capacity.nodes_needed import capacity
from autoscaling.prices.price_settings import PriceOptions
from base.errors import InputError
from base.object_store import open_store
from forecast.resources import CPU, MEMORY
from forecast_scheduler.commands.promised_savings import promise_of, saving_since
from forecast_scheduler.settings.document import Settings
from tests.autoscaling.capacity.tiny_prepared import steady
from tests.trainer.run_report.test_saving import idle, promised
from trainer.promised_saving import keep_promise


def test_a_promise_is_held_against_the_days_after_it_by_the_prices_of_now(tmp_path: Path) -> None:
    store, history = open_store(str(tmp_path)), idle(5)
    history.capacity[:, CPU], history.capacity[:, MEMORY] = 4, 16 * 2.0**30
    history.node_usage[3:, :, 3:] = float("nan")
    settings = Settings(prices=PriceOptions(currency="EUR", per_hour={"4 cores, 16 GiB": 0.1, "a": 0.1}))
    assert saving_since(settings, store, history) is None
    keep_promise(store, promised(history, 2, group="4 cores, 16 GiB"))
    found = saving_since(settings, store, history)
    assert found is not None and found.per_month == pytest.approx(2 * 73.0)
    other = saving_since(Settings(prices=PriceOptions(per_hour={"4 cores, 16 GiB": 0.1})), store, history)
    assert other is not None and "no sum is known" in other.line()  # in another currency than promised
    wrong = Settings(prices=PriceOptions(file=tmp_path / "none.csv"))
    assert saving_since(wrong, store, history) is None


def test_without_prices_nothing_is_promised() -> None:
    found = capacity(steady([1.0] * 4, n_nodes=2), CapacityOptions(target=0.0), rules=("forecast",))
    with pytest.raises(InputError, match="--promise needs"):
        promise_of(found, datetime.now(UTC))
