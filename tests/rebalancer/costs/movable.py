"""A pod that may be moved, and what is known of it, for tests that change one thing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from forecast.service_key import Owner, ServiceKey
from kube.objects.objects import PodInfo
from rebalancer.costs.move_cost import MoveCost, move_cost
from rebalancer.costs.move_facts import MoveFacts, Occasion
from rebalancer.rebalance_settings import CostOptions
from testing.constants import with_constants
from testing.objects import pod_info

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = datetime(2026, 11, 24, 2, tzinfo=UTC)
"""03:00 in Berlin, a Tuesday."""

OCCASION = Occasion(NIGHT, NIGHT + timedelta(hours=2), NIGHT + timedelta(hours=17), BERLIN)
CART = ServiceKey("shop", "Deployment", "cart")
LONG_AGO = NIGHT.timestamp() - 10 * 86_400

_FACTS = MoveFacts(CART, replicas=6, ready_replicas=6)


def pod(**fields: Any) -> PodInfo:
    """A ready replica of a Deployment, ten days old, unless it is said otherwise."""
    defaults: dict[str, Any] = {
        "node": "n1",
        "owner": Owner("ReplicaSet", "cart-7d9f"),
        "created": LONG_AGO,
        "started": LONG_AGO + 5,
        "scheduled": LONG_AGO + 1,
        "ready": LONG_AGO + 31,
    }
    return pod_info("cart-7d9f-x2x4z", **(defaults | fields))


def facts(**fields: Any) -> MoveFacts:
    """Six replicas, all ready, unless it is said otherwise."""
    defaults = {name: getattr(_FACTS, name) for name in MoveFacts.__dataclass_fields__}
    return MoveFacts(**(defaults | fields))


def cost(
    of: PodInfo | None = None, about: MoveFacts | None = None, *, occasion: Occasion = OCCASION, **options: Any
) -> MoveCost:
    """What the move costs with these options."""
    return move_cost(of or pod(), about or facts(), occasion, with_constants(CostOptions(), **options))
