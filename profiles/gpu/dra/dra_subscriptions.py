"""Which resources are followed for claims, slices and classes, and how claims are read anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.client.kubernetes_contract import Subscription
from kube.client.kubernetes_source import ResourceSource
from profiles.gpu.dra.claim_table import DraTable
from profiles.gpu.dra.dra_decoding import WATCHED_CLAIMS, WATCHED_CLASSES, WATCHED_SLICES, WATCHED_TAINT_RULES


def dra_subscriptions(table: DraTable) -> tuple[Subscription[Any], ...]:
    """Claims, slices, classes and taints of devices, which the table reads."""
    return (
        Subscription(WATCHED_SLICES, table.slices),
        Subscription(WATCHED_CLASSES, table.classes),
        Subscription(WATCHED_TAINT_RULES, table.taint_rules),
        Subscription(WATCHED_CLAIMS, table.claims),
    )


def read_claims_again(source: ResourceSource) -> Callable[[], bool]:
    """List claims with this source of `dra_subscriptions`.

    Returns a function that says whether all claims are known that were allocated before this moment, or that none can
    be read. Pods with claims wait until then: no device is taken for free that is not. As long as no claim was ever
    listed they wait anyhow, and others need not wait with them.
    """
    plural = WATCHED_CLAIMS.plural
    is_listed = source.list_again({plural})

    def is_done() -> bool:
        status = source.statuses()[plural]
        return is_listed() or (not status.synced and bool(status.last_error))

    return is_done
