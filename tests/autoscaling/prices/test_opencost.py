from __future__ import annotations

import json
from typing import Any

import pytest

from autoscaling.prices.opencost import NotOpenCost, OpenCostPrices, prices_in
from tests.autoscaling.prices.priced_nodes import node


def asset(name: str, minutes: float = 1440, cost: float = 4.8, kind: str = "Node") -> dict[str, Any]:
    """As core/pkg/opencost/asset_json.go writes it; the keys that are read."""
    return {
        "type": kind,
        "properties": {"category": "Compute", "name": name, "providerID": f"i-{name}"},
        "labels": {},
        "minutes": minutes,
        "preemptible": 0.0,
        "discount": 0.3,
        "totalCost": cost,
    }


def answer(assets: list[dict[str, Any]]) -> bytes:
    return json.dumps({"code": 200, "data": {f"k{i}": one for i, one in enumerate(assets)}}).encode()


def test_a_node_has_the_price_of_an_hour_of_its_life() -> None:
    found = prices_in(answer([asset("one"), asset("two", minutes=60, cost=0.3), asset("disk", kind="Disk")]))
    assert found == {"one": pytest.approx(0.2), "two": pytest.approx(0.3)}
    prices = OpenCostPrices(found)
    price = prices.price_of(node("two"))
    assert price is not None and price.source == "OpenCost, last 24 h"
    assert prices.price_of(node("three")) is None


def test_a_node_that_costs_nothing_or_is_too_young_has_no_price() -> None:
    assert prices_in(answer([asset("free", cost=0), asset("new", minutes=5), asset("odd", cost=-1)])) == {}


def test_a_list_of_sets_is_read_like_one() -> None:
    assert prices_in(json.dumps({"code": 200, "data": [None, {"k": asset("one")}]}).encode()).keys() == {"one"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"data": null}',
        b'{"data": "x"}',
        b'{"data": {"k": 1}}',
        b'{"data": {"k": {"type": "Node"}}}',
        b'{"data": {"k": {"type": "Node", "minutes": [], "totalCost": 1}}}',
        b'{"data": {"k": {"type": "Node", "minutes": "long", "totalCost": 1}}}',
        b'{"data": [[1]]}',
    ],
)
def test_an_answer_of_something_else_is_refused(body: bytes) -> None:
    with pytest.raises(NotOpenCost, match="does not answer as OpenCost"):
        prices_in(body)
