"""Bind plugin DryRun: takes every pod as bound and sends nothing."""

from __future__ import annotations

import logging

from kube.objects.objects import PodInfo
from placement.status import SUCCESS, Status

logger = logging.getLogger(__name__)


class DryRun:
    """Implements Bind."""

    name = "DryRun"

    async def bind(self, pod: PodInfo, node: str) -> Status:
        logger.info("would be bound", extra={"pod": f"{pod.namespace}/{pod.name}", "node": node})
        return SUCCESS
