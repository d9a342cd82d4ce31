"""A look at a cluster as `look --json` writes it, made up: one node is full, one is hot and one is not known."""

from __future__ import annotations

from typing import Any

from forecast_scheduler.commands.look.figures import LookFigures, NextStep


def made_look(cluster: str = "prod-east") -> dict[str, Any]:
    """The document of a cluster of this name."""
    return LookFigures(
        cluster=cluster,
        made_at="2026-11-30T14:05:00+01:00",
        store="https://10.0.0.1:6443/api/v1/namespaces/monitoring/services/http:prometheus-kube-prometheus-prometheus:9090/proxy",
        history={
            "days": 14,
            "first_day": "2026-11-16",
            "last_day": "2026-11-29",
            "time_zone": "Europe/Berlin",
            "services": 40,
            "nodes": 3,
            "is_cold_start": False,
            "forecast_from": "2026-11-30",
        },
        nodes={"n_nodes": 3, "n_pods": 1_234, "hot_share": 0.8, "hot_tonight": 2},
        tonight={"hours": "next 24 h", "nodes": [_node("node-1", 1.04), _node("node-2", 0.85), _node("node-3", None)]},
        week={"days": ["2026-12-01"], "nodes": [{"day": "2026-12-01", **_node("node-2", 0.7)}]},
        placing={
            "rules": {"native": {"hot_share": 0.0714}, "forecast": {"hot_share": 0.0123}},
            "gap_closed": {"hot_share": 0.87},
            "window": {"days": 7},
        },
        moves=_MOVES,
        requests=_REQUESTS,
        capacity=_CAPACITY,
        doctor={
            "findings": [
                {"finding": "short history", "what": "14 whole local days", "what_to_do": "run train each night"},
                {"finding": "no holidays", "what": "no calendar is set", "what_to_do": "set holiday_country"},
            ]
        },
        remarks=("memory of 1 node is assumed",),
        money={**_MONEY, "nodes": {}},
        not_computed={},
        next=(NextStep("to follow this nightly", "forecast-scheduler train --context prod-east"),),
    ).to_json()


def _node(name: str, share: float | None) -> dict[str, Any]:
    peak = None if share is None else _peak(share)
    services = [
        {"service": "shop-of-a-long-name/Deployment/checkout-with-payments", "pods": 3, "usage": 8.1, "share": 0.5},
        {"service": "shop/StatefulSet/search", "pods": 1, "usage": 4.0, "share": 0.25},
    ]
    return {"name": name, "pods": 12, "peak": peak, "services": services if peak else [], "besides_pods": 0.4}


def _peak(share: float) -> dict[str, Any]:
    return {
        "resource": "cpu",
        "unit": "cores",
        "expected": 16 * share,
        "bound": 16 * share * 1.2,
        "capacity": 16.0,
        "share": share,
        "at": "2026-11-30T20:00:00+01:00",
        "assumed": False,
    }


_WINDOW = {"begin": "2026-12-01T02:00:00+01:00", "end": "2026-12-01T05:00:00+01:00"}
_MOVES: dict[str, Any] = {
    "most": 7,
    "mode": "off",
    "made_at": "2026-11-30T14:05:00+01:00",
    "since": _WINDOW["begin"],
    "until": "2026-12-02T02:00:00+01:00",
    "missed": None,
    "window": _WINDOW,
    "windows": [_WINDOW],
    "windows_because": "the load is low",
    "hot_before": 9,
    "hot_after": 2,
    "at_risk_before": 12,
    "at_risk_after": 5,
    "heat_before": 1.5,
    "heat_after": 0.2,
    "most_gain": 8.0,
    "moves": [
        {
            "namespace": "shop",
            "pod": "search-0",
            "uid": "u",
            "service": "shop/StatefulSet/search",
            "source": "node-1",
            "target": "node-3",
            "gain": 4.0,
            "reason": "node-1 would be hot at 20:00",
            "partner": None,
            "by_surge": False,
        }
    ],
    "n_pods": 1_234,
    "kept": {},
    "curve": [{"moves": 1, "hot": 2}],
    "budget": {"moves": 4, "nights": 1, "per_night": 7, "limit": "most", "in_one": {}},
}
_MONEY: dict[str, Any] = {
    "per_month": 3_412.0,
    "currency": "EUR",
    "nodes_with_price": 3,
    "nodes_without_price": 0,
    "sources": {"settings": 3},
    "is_estimate": True,
    "notes": [],
}
_REQUESTS: dict[str, Any] = {
    "money": {**_MONEY, "freed_per_month": 300.0},
    "savings": {
        "cores_today": 48.0,
        "cores_recommended": 30.5,
        "bytes_today": 96 * 2**30,
        "bytes_recommended": 64 * 2**30,
    },
    "risk": None,
    "services": [
        {
            "service": "shop/StatefulSet/search",
            "pods": 3,
            "today": {"cpu": "4", "memory": "8Gi"},
            "recommended": {"cpu": "2", "memory": "6Gi"},
            "by_hour": {"07-22": "2", "22-07": "500m"},
            "saved_cores": 6.0,
        }
    ],
}
_RULE: dict[str, Any] = {
    "hot_share": 0.001,
    "pods_over_requests": 0,
    "nodes_with_reserve": None,
    "cost_per_month": None,
}
_CAPACITY: dict[str, Any] = {
    "nodes": {"native": 3, "forecast": 2},
    "target": 0.001,
    "recorded": 3,
    "groups": {"16 cores, 64 GiB": 3},
    "rules": {
        rule: {"nodes": nodes, "nodes_within_requests": 3, "mix": {"16 cores, 64 GiB": nodes}, **_RULE}
        for rule, nodes in (("native", 3), ("forecast", 2))
    },
    "reserve": None,
    "money": None,
    "window": {"days": 7, "first_day": "2026-11-23"},
}
