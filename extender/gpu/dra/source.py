"""What follows claims, slices and classes on the API server."""

from __future__ import annotations

from kubernetes.client import ApiClient

from extender.gpu.dra.decoding import WATCHED_CLAIMS, WATCHED_CLASSES, WATCHED_SLICES
from extender.gpu.dra.table import DraTable
from scorer.cluster.kubernetes_source import ResourceSource
from scorer.cluster.kubernetes_watcher import ResourceWatcher

__all__ = ["dra_source"]


def dra_source(api: ApiClient, table: DraTable) -> ResourceSource:
    """Not started yet. Pods with claims wait until their claims have been listed: by then all that are allocated are
    known, and no device is taken for free that is not."""
    return ResourceSource(
        [
            ResourceWatcher(api, table.slices, WATCHED_SLICES),
            ResourceWatcher(api, table.classes, WATCHED_CLASSES),
            ResourceWatcher(api, table.claims, WATCHED_CLAIMS),
        ]
    )
