"""The scorer's application stands for every service here."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.scorer.service.conftest import client, scorer

__all__ = ["client", "scorer"]


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    """What is freed is freed because nothing holds it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
