"""Every HTML report on a phone, on a dark screen and on paper, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from forecast.hot_share import HOT_SHARE
from forecast_scheduler.commands.look.look_page import look_page
from forecast_scheduler.reports.decisions_figures import decisions_json
from forecast_scheduler.reports.decisions_report import decisions_page
from forecast_scheduler.reports.peaks_report.peaks_page import peaks_page
from forecast_scheduler.reports.peaks_report.peaks_view import peaks_view
from scorer.replay.replay import replay
from scorer.replay.replay_page import replay_page
from tests.browser.chromium import Browser, Page
from tests.forecast_scheduler.commands.look.made_look import made_look
from tests.forecast_scheduler.reports.peaks_report.nights import MADE, N_DAYS, history, registry_of
from tests.placement.decisions.made_up import decision
from tests.scorer.replay.simple_forecast import simple_forecast
from tests.scorer.replay.small_cluster import small_cluster
from tests.trainer.run_report.test_run_report import made_report
from trainer.run_report.run_page import run_page

CONTRAST = 4.5  # WCAG 2.1, 1.4.3: of text to what is behind it

_TEXTS = """
[...document.querySelectorAll('h1, h2, h3, p, td, th, small, b, dt, dd, footer, li, .main-svg text')]
  .filter((one) => one.getClientRects().length && one.textContent.trim())
  .map((one) => {
    const style = getComputedStyle(one);
    let behind = one, paint = '';
    while (behind && !paint) {
      const colour = getComputedStyle(behind).backgroundColor;
      if (!/rgba\\(.*, 0\\)|transparent/.test(colour)) paint = colour;
      behind = behind.parentElement;
    }
    return [one.textContent.trim().slice(0, 40), one instanceof SVGElement ? style.fill : style.color, paint];
  })
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    view = peaks_view(history(), registry_of(folder / "store", in_time=(N_DAYS - 3,)), made=MADE, days=5, hot=HOT_SHARE)
    recorded, pods = small_cluster()
    played = replay(recorded, pods, simple_forecast, at=datetime(2026, 1, 20, 4), days=2, hot=HOT_SHARE)
    pages: dict[str, Callable[[], str]] = {
        "peaks": lambda: peaks_page(view),
        "replay": lambda: replay_page(played, recorded),
        "run": lambda: run_page(made_report(folder)),
        "decisions": lambda: decisions_page(decisions_json([decision({"n1": 6, "n7": 3}, "n7")])),
        "look": lambda: look_page([made_look(), made_look("b"), {"cluster": "c", "error": "no metrics store"}]),
    }
    found = {}
    for name, made in pages.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(made())
    return found


@pytest.fixture(params=["peaks", "replay", "run", "decisions", "look"])
def file(request: pytest.FixtureRequest, files: dict[str, Path]) -> Path:
    return files[request.param]


def shown(browser: Browser, file: Path, **size: object) -> Page:
    page = browser.page(file.as_uri(), **size)  # type: ignore[arg-type]
    drawn = "[...document.querySelectorAll('.js-plotly-plot')].every((one) => one.querySelector('.main-svg'))"
    page.wait_for(f"document.readyState === 'complete' && {drawn}", seconds=120)
    return page


def test_a_desk_shows_all_without_scrolling_sideways(browser: Browser, file: Path) -> None:
    with shown(browser, file, width=1280) as page:
        assert page.run("document.documentElement.scrollWidth") <= 1280 and page.problems == []


def test_a_phone_shows_all_without_scrolling_sideways(browser: Browser, file: Path) -> None:
    with shown(browser, file, width=390, height=844, phone=True) as page:
        assert page.run("document.documentElement.scrollWidth") <= 390
        cut = page.run(
            "[...document.querySelectorAll('table, .js-plotly-plot')].filter((one) => one.getBoundingClientRect().right"
            " > 390 && !one.closest('.scroll, .js-plotly-plot')).length"
        )
        assert cut == 0 and page.problems == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_can_be_read(browser: Browser, file: Path, dark: bool) -> None:
    with shown(browser, file, dark=dark) as page:
        behind = page.run("getComputedStyle(document.body).backgroundColor")
        assert (_lightness(behind) < 0.2) is dark
        texts = page.run(_TEXTS)
        assert len(texts) > 3
        faint = [text for text in texts if _contrast(text[1], text[2]) < CONTRAST]
        assert not faint, faint[:5]


def test_paper_is_white_and_nothing_is_cut_off(browser: Browser, file: Path) -> None:
    with shown(browser, file, width=1020, dark=True) as page:
        page.command("Emulation.setEmulatedMedia", media="print")
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.run("document.documentElement.scrollWidth") <= 1020
        buttons = "[...document.querySelectorAll('button, input, select, .controls')]"
        assert page.run(f"{buttons}.filter((one) => one.getClientRects().length).length") == 0
        printed = page.command("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        assert len(printed["data"]) > 1000


def _lightness(colour: str) -> float:
    """Relative luminance of "rgb(1, 2, 3)" (WCAG 2.1)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_lightness(one), _lightness(other)))
    return (high + 0.05) / (low + 0.05)
