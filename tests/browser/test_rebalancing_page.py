"""What the page of a rebalancer says of moves that would help, and that the page of a scorer says nothing of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from forecast.hot_share import HOT_SHARE
from rebalancer.night_grades import Trust
from rebalancer.plan_maker import MadePlan
from rebalancer.rebalance_settings import RebalanceMode
from rebalancer.rebalancing import RebalancingState
from rebalancer.standing import RebalanceBody, plan_router
from scorer.service.app import create_app
from tests.browser.chromium import Browser, Page
from tests.rebalancer.hot_cluster import hot_cluster, maker_of
from tests.scorer.service.fake_scorer import FakeScorer
from tests.serving.served import served

READY = "document.body.dataset.ready === 'true'"
HIDDEN = "document.querySelector('#rebalance').hidden"


@pytest.fixture(scope="module")
def made() -> MadePlan:
    found = maker_of(hot_cluster(size=8.0)).for_tonight()
    assert found is not None and len(found.moves) > 1
    return found


@contextmanager
def _page(browser: Browser, state: RebalancingState) -> Iterator[Page]:
    app = create_app(FakeScorer(), routers=[plan_router(lambda: state)], bodies=[RebalanceBody], hot=HOT_SHARE)
    with served(app) as url, browser.page(url) as page:
        page.wait_for(READY)
        yield page
        assert page.problems == []


def _rows(page: Page) -> list[list[str]]:
    found = page.run(
        "[...document.querySelectorAll('#rebalance-moves tbody tr')].map(row => [...row.cells].map(c => c.textContent))"
    )
    assert isinstance(found, list)
    return found


def test_moves_hot_half_hours_hours_and_mode_are_shown(browser: Browser, made: MadePlan) -> None:
    with _page(browser, RebalancingState(Trust(RebalanceMode.SHADOW), made)) as page:
        assert page.run(HIDDEN) is False
        assert page.text("#rebalance-title") == f"{len(made.moves)} moves would help tonight"
        about = page.text("#rebalance-about")
        assert f"{made.plan.hot_before} as things are, {made.plan.hot_after} after the moves" in about
        assert made.window is not None
        begin, end = (at.astimezone(made.made_at.tzinfo) for at in (made.window.begin, made.window.end))
        assert f"from {begin:%H:%M} to {end:%H:%M}" in about, "in the cluster's time zone"
        assert page.text("#rebalance-mode").startswith("Mode in force: shadow: ")
        assert _rows(page) == [
            [f"{move.namespace}/{move.pod}", move.source, move.target, move.reason] for move in made.moves
        ]
        assert page.run("document.documentElement.scrollWidth <= innerWidth") is True


def test_what_took_the_mode_away_and_the_first_of_many_moves_are_shown_as_text(
    browser: Browser, made: MadePlan
) -> None:
    trust = Trust(RebalanceMode.SHADOW, "stood down after 2 bad nights in a row, since 2026-05-19", 2)
    odd = replace(made.moves[0], pod="<img src=x onerror=alert(1)>", reason="<b>bold</b>")
    state = RebalancingState(trust, replace(made, moves=(odd,) * 60), trouble="403 no right to list")
    with _page(browser, state) as page:
        said = page.text("#rebalance-mode")
        assert "stood down after 2 bad nights in a row" in said and "held up: 403 no right to list" in said
        assert len(_rows(page)) == 50 and page.text("#rebalance-more") == "and 10 more: /v1/rebalance has all"
        assert _rows(page)[0][0].endswith("<img src=x onerror=alert(1)>")
        assert page.run("document.querySelectorAll('#rebalance img, #rebalance b').length") == 0


def test_one_move_none_and_no_forecast(browser: Browser, made: MadePlan) -> None:
    for state, title, n_rows in (
        (
            RebalancingState(Trust(RebalanceMode.ON), replace(made, moves=made.moves[:1])),
            "1 move would help tonight",
            1,
        ),
        (RebalancingState(Trust(RebalanceMode.OFF), replace(made, moves=())), "No move would help tonight", 0),
        (RebalancingState(Trust(RebalanceMode.OFF)), "Moves that would help are not known yet", 0),
    ):
        with _page(browser, state) as page:
            assert page.text("#rebalance-title") == title
            assert len(_rows(page)) == n_rows
            assert page.run("document.querySelector('#rebalance-moves').hidden") is (n_rows == 0)


def test_a_scorer_is_not_asked_and_shows_nothing(browser: Browser) -> None:
    with served(create_app(FakeScorer(), hot=HOT_SHARE)) as url, browser.page(url) as page:
        page.wait_for(READY)
        assert page.run(HIDDEN) is True
        assert page.problems == [] and not any("rebalance" in address.split("/", 3)[3] for address in page.requested
                                               if not address.endswith("rebalance.js"))  # fmt: skip
