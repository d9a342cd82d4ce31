from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from base.errors import InputError
from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.security import PAGE_FILES, BearerTokens
from serving.server_settings import ServingOptions
from testing.app_client import AppClient
from testing.settable_clock import SettableClock
from tests.scorer.service.fake_scorer import FakeScorer


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text("first\n\n  second \n")
    return path


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_data_needs_a_token_and_probes_and_the_page_do_not(scorer: FakeScorer, token_file: Path) -> None:
    app = create_app(scorer, ScorerServiceOptions(serving=ServingOptions(token_files=(token_file,))), hot=HOT_SHARE)
    with AppClient(app) as client:
        for path in app.openapi()["paths"]:
            is_open = path in ("/healthz", "/readyz")
            for method in app.openapi()["paths"][path]:
                answer = client.request(method, path)
                assert (answer.status_code == 401) != is_open, path
                if not is_open:
                    assert answer.headers["www-authenticate"].startswith("Bearer")
        assert client.get("/openapi.json").status_code == 401
        assert client.get("/v1/gone").status_code == 401  # nor is it told which paths there are
        for path in PAGE_FILES:
            assert client.get(path).status_code == 200
        for token in ("first", "second"):
            assert client.get("/v1/nodes", headers=_bearer(token)).status_code == 200


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer ", "Bearer wrong", "Bearer firs", "Bearer first2", "Basic first", "first", "Bearer é"]
)
def test_a_wrong_token_is_told_apart_from_none(scorer: FakeScorer, token_file: Path, value: str) -> None:
    with AppClient(
        create_app(scorer, ScorerServiceOptions(serving=ServingOptions(token_files=(token_file,))), hot=HOT_SHARE)
    ) as client:
        answer = client.get("/v1/nodes", headers={"Authorization": value.encode("latin-1")})
        assert answer.status_code == 401 and "not valid" in answer.json()["error"]
        assert "a token is needed" in client.get("/v1/nodes").json()["error"]


def test_metrics_can_be_opened(scorer: FakeScorer, token_file: Path) -> None:
    with AppClient(
        create_app(
            scorer,
            ScorerServiceOptions(serving=ServingOptions(token_files=(token_file,), metrics_open=True)),
            hot=HOT_SHARE,
        )
    ) as client:
        assert client.get("/metrics").status_code == 200
        assert client.get("/v1/nodes").status_code == 401


def test_a_changed_or_swapped_secret_counts_after_a_second(token_file: Path, tmp_path: Path) -> None:
    clock = SettableClock(0.0)
    tokens = BearerTokens([token_file], clock)
    token_file.write_text("third")
    assert tokens.accepts(b"Bearer first")
    clock.now = 1.5
    assert tokens.accepts(b"Bearer third") and not tokens.accepts(b"Bearer first")
    # As the kubelet updates a mounted secret.
    for name, token in (("old", "first"), ("new", "other")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(token)
        os.utime(tmp_path / name / "token", (1, 1))
    (tmp_path / "data").symlink_to("old")
    clock = SettableClock(0.0)
    tokens = BearerTokens([tmp_path / "data" / "token"], clock)
    (tmp_path / "data.new").symlink_to("new")
    (tmp_path / "data.new").rename(tmp_path / "data")
    clock.now = 2.0
    assert tokens.accepts(b"Bearer other") and not tokens.accepts(b"Bearer first")


@pytest.mark.parametrize("content", [None, "", " \n\n"])
def test_a_file_that_vanishes_keeps_its_tokens(
    token_file: Path, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SettableClock(0.0)
    tokens = BearerTokens([token_file], clock)
    token_file.unlink()
    if content is not None:
        token_file.write_text(content)
    clock.now = 2.0
    with caplog.at_level(logging.WARNING):
        assert tokens.accepts(b"Bearer first") and not tokens.accepts(b"Bearer ")
    assert "stay as they were" in caplog.text


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_no_token_at_the_start_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "tokens"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=str(path)):
        create_app(FakeScorer(), ScorerServiceOptions(serving=ServingOptions(token_files=(path,))), hot=HOT_SHARE)
