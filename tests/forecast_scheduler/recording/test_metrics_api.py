"""Answers of metrics.k8s.io, as metrics-server 0.7 gives them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forecast_scheduler.recording.metrics_api import read_metrics_api
from trainer.sampling.readings import NODE, Measured, UnreadableText

_AT = 1_764_500_000.0


def _list(*items: dict[str, Any]) -> bytes:
    return json.dumps({"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": items}).encode()


def _node(name: str, cpu: str = "156340404n", memory: str = "1120Ki") -> dict[str, Any]:
    when = {"timestamp": "2025-11-30T10:53:15Z", "window": "10.064s"}
    return {"metadata": {"name": name}, "usage": {"cpu": cpu, "memory": memory}} | when


def _pod(name: str, **containers: str) -> dict[str, Any]:
    usage = [{"name": one, "usage": {"cpu": cpu, "memory": "2Mi"}} for one, cpu in containers.items()]
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "timestamp": "2025-11-30T10:53:10Z",
        "window": "15s",
        "containers": usage,
    }


def test_pods_are_found_on_their_nodes() -> None:
    where = {("shop", "cart-0"): "n1", ("shop", "lost"): "n9"}
    found = read_metrics_api(
        _list(_node("n1"), _node("n2")),
        _list(_pod("cart-0", main="1m", side="2m"), _pod("lost", main="9m")),
        where,
        _AT,
    )
    assert set(found) == {"n1", "n2"}
    assert found["n1"].cores[NODE] == Measured(0.156340404, 1_764_499_995.0)
    assert found["n1"].memory[NODE].value == 1120 * 1024
    assert found["n1"].cores["shop", "cart-0", "side"] == Measured(0.002, 1_764_499_990.0)
    assert set(found["n2"].cores) == {NODE}


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"items": [{}]}', _list(_node("n1", cpu="many"))])
def test_what_is_no_list_of_metrics_is_refused(body: bytes) -> None:
    with pytest.raises(UnreadableText, match="cannot say"):
        read_metrics_api(body, _list(), {}, _AT)
