"""The link from the scorer's page to the report, with and without a token, in a real browser."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.server_settings import ServingOptions
from tests.browser.chromium import Browser, Page
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served

LINK_SHOWN = "document.body.dataset.ready === 'true' && !document.querySelector('#report-line').hidden"

# What a report could do at worst: it tells in its title what it got hold of.
NOSY = """<!doctype html><title>Report</title><p id="said">as written</p><script>
(async () => {
  const found = [];
  try { found.push("storage " + sessionStorage.getItem("token")); } catch { found.push("no storage"); }
  try { found.push("opener " + window.opener.sessionStorage.token); } catch { found.push("no opener"); }
  try { await fetch("ADDRESS/v1/status"); found.push("an answer"); } catch { found.push("no answer"); }
  document.getElementById("said").textContent = found.join(", ");
})();
</script>"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "report.html"


@pytest.fixture
def token(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("secret")
    return tmp_path / "token"


@pytest.fixture(params=[False, True], ids=["open", "token"])
def url(request: pytest.FixtureRequest, report: Path, token: Path) -> Iterator[str]:
    tokens = (token,) if request.param else ()
    with served(
        create_app(
            FakeScorer(3),
            ScorerServiceOptions(serving=ServingOptions(token_files=tokens), report=report),
            hot=HOT_SHARE,
        )
    ) as url:
        yield url


def opened(browser: Browser, path: str) -> Page:
    """The window that the page opened."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with urllib.request.urlopen(f"http://127.0.0.1:{browser.port}/json/list", timeout=30) as answer:
            for target in json.load(answer):
                if target["type"] == "page" and target["url"].endswith(path):
                    return Page(target["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise AssertionError(f"no window with {path} was opened")


def test_the_link_opens_the_report_which_gets_at_nothing_of_the_page(
    browser: Browser, url: str, report: Path, request: pytest.FixtureRequest
) -> None:
    report.write_text(NOSY.replace("ADDRESS", url))
    with browser.page(url) as page:
        if "token" in request.node.callspec.id:
            page.wait_for("!document.querySelector('#token-form').hidden")
            page.run("document.querySelector('#token').focus()")
            page.type("secret")
            page.press("Enter")
        page.wait_for(LINK_SHOWN)
        assert "written" in page.text("#report-line")
        page.run("document.querySelector('#report').scrollIntoView()")
        box = page.run(
            "(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector('#report').getBoundingClientRect())"
        )
        page.click(*box)
        path = "/report-view" if "token" in request.node.callspec.id else "/report"
        with opened(browser, path) as view:
            view.wait_for("document.getElementById('said').textContent.includes('answer')")
            assert view.text("#said") == "no storage, no opener, no answer"
            assert view.run("origin") == "null"


# A window that never loads; timers of the page go off a hundred times as soon.
SILENT_WINDOW = """(() => {
  sessionStorage.setItem("token", "any");
  const later = setTimeout;
  window.setTimeout = (what, milliseconds) => later(what, milliseconds / 100);
  window.open = () => (window.opened = { closed: false, close() { this.closed = true; } });
  document.querySelector("#report").click();
})()"""
LISTENERS = "(getEventListeners(window).message ?? []).length"


def test_a_window_that_does_not_load_is_told_and_no_longer_listened_to(browser: Browser, report: Path) -> None:
    report.write_text(NOSY)
    with (
        served(create_app(FakeScorer(3), ScorerServiceOptions(report=report), hot=HOT_SHARE)) as url,
        browser.page(url) as page,
    ):
        page.wait_for(LINK_SHOWN)
        page.run(SILENT_WINDOW)
        page.wait_for("opened.closed && document.querySelector('#banner').innerText.includes('did not load')")
        left = page.command("Runtime.evaluate", expression=LISTENERS, includeCommandLineAPI=True)
        assert left["result"]["value"] == 0


def test_without_a_report_there_is_no_link(browser: Browser) -> None:
    with served(create_app(FakeScorer(3), hot=HOT_SHARE)) as url, browser.page(url) as page:
        page.wait_for("document.body.dataset.ready === 'true'")
        assert page.run("document.querySelector('#report-line').hidden") is True
        assert page.problems == []


def test_a_window_that_nobody_opened_says_where_the_report_is(browser: Browser) -> None:
    with served(create_app(FakeScorer(3), hot=HOT_SHARE)) as url, browser.page(f"{url}/report-view") as page:
        page.wait_for("document.readyState === 'complete'")
        assert page.text("#said") == "Open the report from the scorer's page."
