"""One application over a made-up scorer, asked in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from testing.app_client import AppClient
from testing.constants import with_constants
from tests.scorer.service.fake_scorer import FakeScorer


@pytest.fixture
def scorer() -> FakeScorer:
    return FakeScorer()


@pytest.fixture
def client(scorer: FakeScorer) -> Iterator[AppClient]:
    with AppClient(create_app(scorer, with_constants(ScorerServiceOptions(), deadline=5), hot=HOT_SHARE)) as client:
        yield client
