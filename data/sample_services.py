"""The services of the bundled sample: believable names in front of real curves.

Names, namespaces and which service is heavy on what are invented; the curves behind them are not (README.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SampleService:
    """One service of the sample.

    machine     : SMD machine whose CPU, memory, disk and network it has; None = an ASD server's metrics
    shift_hours : moved this far from the evening, as another region's users or a nightly batch would be
    disk, network, log : how heavy it is on them, as a factor on an otherwise random level
    """

    namespace: str
    name: str
    kind: str = "Deployment"
    autoscaled: bool = False
    machine: str | None = None
    shift_hours: int = 0
    disk: float = 1.0
    network: float = 1.0
    log: float = 1.0


_S = SampleService

SERVICES: tuple[SampleService, ...] = (
    # Entry: everything comes through here, and every request leaves an access log line.
    _S("edge", "ingress-nginx-controller", autoscaled=True, network=4, log=6),
    _S("edge", "api-gateway", autoscaled=True, network=3, log=5),
    _S("edge", "auth-proxy", network=2, log=4),
    _S("edge", "rate-limiter"),
    _S("shop", "storefront", autoscaled=True, network=2),
    _S("shop", "cart", autoscaled=True),
    _S("shop", "checkout", autoscaled=True, log=3),
    _S("shop", "catalog", machine="smd-machine-1-4"),
    _S("shop", "search", autoscaled=True, network=2),
    _S("shop", "suggest"),
    _S("shop", "recommendations", machine="smd-machine-2-8"),
    _S("shop", "pricing"),
    _S("shop", "promotions"),
    _S("shop", "reviews"),
    _S("shop", "wishlist"),
    _S("shop", "session-redis", kind="StatefulSet", network=2),
    _S("payments", "gateway", autoscaled=True, log=3),
    _S("payments", "fraud-check", log=4),
    _S("payments", "ledger", disk=3),
    _S("payments", "refunds"),
    _S("payments", "ledger-postgres", kind="StatefulSet", disk=8, machine="smd-machine-3-2"),
    _S("accounts", "login", autoscaled=True, log=2),
    _S("accounts", "profile"),
    _S("accounts", "sessions"),
    _S("accounts", "notifications", network=2),
    _S("accounts", "mailer"),
    _S("accounts", "profile-postgres", kind="StatefulSet", disk=6),
    _S("media", "image-resizer", autoscaled=True, network=3),
    _S("media", "thumbnails", machine="smd-machine-2-3", network=2),
    _S("media", "video-origin", network=6, disk=2),
    _S("media", "chat", network=2),
    _S("orders", "order-service", disk=2),
    _S("orders", "shipping"),
    _S("orders", "tracking", machine="smd-machine-3-5"),
    _S("orders", "stock"),
    _S("orders", "orders-postgres", kind="StatefulSet", disk=8),
    _S("messaging", "kafka", kind="StatefulSet", disk=8, network=5),
    _S("messaging", "events-collector", autoscaled=True, network=2, log=6),
    # A quarter of the services does not peak in the evening: other regions and batch.
    _S("apac", "storefront", shift_hours=8),
    _S("apac", "checkout", shift_hours=8, log=2),
    _S("apac", "search", shift_hours=8, network=2),
    _S("apac", "catalog", shift_hours=8, machine="smd-machine-1-5"),
    _S("analytics", "clickstream-loader", shift_hours=12, disk=4, network=2),
    _S("analytics", "report-builder", shift_hours=12, disk=2),
    _S("analytics", "feature-builder", shift_hours=12, machine="smd-machine-2-1", disk=2),
    _S("analytics", "warehouse-sync", shift_hours=12, disk=5),
    _S("search-index", "indexer", shift_hours=12, machine="smd-machine-2-7", disk=4),
    _S("search-index", "crawler", machine="smd-machine-1-6", network=3),
)
