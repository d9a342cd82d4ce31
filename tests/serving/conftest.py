"""The scorer's application stands for every service here."""

from __future__ import annotations

from tests.scorer.service.conftest import client, scorer

__all__ = ["client", "scorer"]
