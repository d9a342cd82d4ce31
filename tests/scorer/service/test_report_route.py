"""/report: the file as it is now, in an origin of its own; nothing where there is none."""

from __future__ import annotations

import asyncio
import os
import threading
from datetime import UTC, datetime
from pathlib import Path, PosixPath

import httpx
import pytest

from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.routes import page_and_report
from scorer.service.scorer_service_settings import ScorerServiceOptions
from testing.app_client import AppClient
from tests.scorer.service.fake_scorer import FakeScorer

PAGE = "<!doctype html><p>the report</p>"


def asked(report: Path | None) -> AppClient:
    return AppClient(create_app(FakeScorer(2), ScorerServiceOptions(report=report), hot=HOT_SHARE))


def test_the_report_is_served_sandboxed_and_read_anew(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    with asked(report) as client:
        missing = client.get("/report")
        assert missing.status_code == 404 and "report --html writes it" in missing.json()["error"]
        assert client.get("/v1/status").json()["report_written"] is None

        report.write_text(PAGE)
        answer = client.get("/report", headers={"Accept-Encoding": "identity"})
        assert (answer.status_code, answer.text) == (200, PAGE)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store" and answer.headers["x-frame-options"] == "DENY"
        policies = answer.headers.get_list("content-security-policy")
        assert len(policies) == 1 and policies[0].startswith("sandbox allow-scripts; default-src 'none'")
        assert "allow-same-origin" not in policies[0]
        written = datetime.fromisoformat(client.get("/v1/status").json()["report_written"])
        assert written == datetime.fromtimestamp(report.stat().st_mtime, UTC)

        report.write_text(PAGE + "<p>of the next night</p>")
        assert "next night" in client.get("/report").text


def test_without_a_report_it_says_how_to_have_one_and_refuses_what_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asked(None) as client:
        answer = client.get("/report")
        assert answer.status_code == 404 and "set scorer.report" in answer.json()["error"]
    monkeypatch.setattr(page_and_report, "MOST_BYTES", 1000)
    large = tmp_path / "large.html"
    large.write_bytes(b"x" * 1001)
    for report, sentence in ((tmp_path, "Is a directory"), (large, "larger than")):
        with asked(report) as client:
            answer = client.get("/report")
            assert answer.status_code == 404 and sentence in answer.json()["error"]


class HungPath(PosixPath):
    """On a network mount whose server does not answer."""

    looked_at = threading.Event()
    answers = threading.Event()
    has_answered = False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        self.looked_at.set()
        HungPath.has_answered = self.answers.wait(20)
        raise OSError("stale file handle")


def test_a_report_on_a_hung_mount_does_not_hold_up_probes() -> None:
    async def story() -> None:
        app = create_app(FakeScorer(2), ScorerServiceOptions(report=HungPath("/mount/report.html")), hot=HOT_SHARE)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://scorer") as client:
            status = asyncio.create_task(client.get("/v1/status"))
            assert await asyncio.to_thread(HungPath.looked_at.wait, 20)
            assert (await client.get("/healthz")).status_code == 200
            assert not status.done()
            HungPath.answers.set()
            assert (await status).json()["report_written"] is None
            assert HungPath.has_answered  # not before it was let

    asyncio.run(story())


def test_all_other_answers_keep_the_strict_policy(tmp_path: Path) -> None:
    with asked(None) as client:
        for path in ("/", "/page.js", "/v1/status", "/nowhere"):
            assert client.get(path).headers["content-security-policy"].startswith("default-src 'self'"), path
        assert client.get("/report-view").headers["content-security-policy"].startswith("sandbox allow-scripts;")
