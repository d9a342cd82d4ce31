from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from autoscaling.prices.price_settings import PriceOptions
from base.errors import InputError
from forecast_scheduler.commands import node_prices
from forecast_scheduler.commands.node_prices import read_price_sources
from tests.autoscaling.prices.priced_nodes import node

NODES = [node("one", "m5.xlarge"), node("two", "m5.xlarge"), node("three", "own", 3, 3)]
ASSET = {"type": "Node", "properties": {"name": "two"}, "minutes": 60, "totalCost": 0.5}


@contextmanager
def opencost(body: bytes | None, status: int = 200) -> Iterator[str]:
    """A server that answers this to /assets; None = nothing, until the end."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if body is None:
                over.wait(30)
                return
            self.send_response(status if self.path == "/assets?window=24h" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_sources_are_asked_in_their_order(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("nodes,per_month,currency\n3 cores, 3 GiB,730,USD\n".replace("3 cores, 3 GiB", '"3 cores, 3 GiB"'))
    answer = json.dumps({"code": 200, "data": {"a": ASSET}}).encode()
    with opencost(answer) as url:
        found = read_price_sources(PriceOptions(file=file, opencost=url)).price(NODES)
        assert {name: (price.per_hour, price.source) for name, price in found.by_node.items()} == {
            "one": (0.192, "list price of AWS, us-east-1, 2026-07-20"),
            "two": (0.5, "OpenCost, last 24 h"),
            "three": (1.0, "file prices.csv"),
        }
        options = PriceOptions(file=file, opencost=url, per_hour={"m5.xlarge": 0.1})
        assert read_price_sources(options).price(NODES).by_node["two"].source == "settings"
        assert read_price_sources(options, given={"m5.xlarge": 0.2}).price(NODES).by_node["two"].source == "--price"
    assert found.notes == ()


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"<html>no</html>", 200, "does not answer as OpenCost"),
        (b'{"code": 200, "data": null}', 200, "does not answer as OpenCost"),
        (b"Error getting assets", 500, "answered 500: Error getting assets"),
        (b"", 404, "answered 404"),
        (None, 200, "does not answer"),
    ],
)
def test_an_opencost_that_fails_costs_its_prices_and_a_note(
    monkeypatch: pytest.MonkeyPatch, body: bytes | None, status: int, says: str
) -> None:
    monkeypatch.setattr(node_prices, "_OPENCOST_SECONDS", 0.3)
    with opencost(body, status) as url:
        found = read_price_sources(PriceOptions(opencost=url)).price(NODES)
    assert found.by_node.keys() == {"one", "two"}
    (note,) = found.notes
    assert note.startswith("prices: left out, ") and url in note and says in note


def test_an_opencost_that_is_dead_is_said_and_a_url_that_is_none_is_refused() -> None:
    with opencost(b"") as url:
        pass
    assert "does not answer" in read_price_sources(PriceOptions(opencost=url)).price(NODES).notes[0]
    with pytest.raises(InputError, match="is not a URL"):
        read_price_sources(PriceOptions(opencost="opencost:9003")).price(NODES)


def test_list_prices_are_not_mixed_into_another_currency() -> None:
    found = read_price_sources(PriceOptions(currency="EUR", per_hour={"own": 0.3})).price(NODES)
    assert found.by_node.keys() == {"three"} and found.currency == "EUR"
    assert found.notes == ("prices: list prices are in USD, the report is in EUR: not used",)
    assert read_price_sources(PriceOptions(currency="EUR", list_prices=False)).price(NODES).notes == ()


@pytest.mark.parametrize(
    "wrong", [{"currency": "Euro"}, {"currency": "eur"}, {"per_hour": {"a": -1}}, {"per_hour": {"a": float("nan")}}]
)
def test_settings_that_are_no_prices_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        PriceOptions(**wrong)  # type: ignore[arg-type]
