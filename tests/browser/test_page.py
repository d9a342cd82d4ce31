"""The scorer's page in a real browser, over a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.degradation import Level
from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.server_settings import ServingOptions
from tests.browser.chromium import Browser, Page
from tests.scorer.service.fake_scorer import RESOURCES, FakeScorer
from tests.serving.served import served

READY = "document.body.dataset.ready === 'true'"
PHONE = {"width": 390, "height": 844, "phone": True}


@pytest.fixture
def scorer() -> FakeScorer:
    return FakeScorer()


@pytest.fixture
def url(scorer: FakeScorer) -> Iterator[str]:
    with served(create_app(scorer, hot=HOT_SHARE)) as url:
        yield url


def _shown(browser: Browser, url: str, **size: object) -> Page:
    page = browser.page(url, **size)  # type: ignore[arg-type]
    page.wait_for(READY)
    return page


def _box(page: Page, selector: str) -> dict[str, float]:
    """Where an element is on the whole page."""
    found = page.run(
        f"(b => ({{x: b.x + scrollX, y: b.y + scrollY, width: b.width, height: b.height}}))"
        f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
    )
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("size", [{}, PHONE, {"dark": True}], ids=["desk", "phone", "dark"])
def test_the_page_shows_state_hottest_nodes_heat_map_and_curves(
    browser: Browser, url: str, size: dict[str, object]
) -> None:
    with _shown(browser, url, **size) as page:
        assert "Fresh" in page.text("#state") and "20260311-0200" in page.text("#state")
        assert "As of Wed 11 Mar, 14:10" in page.text("#as-of")
        rows = page.run("[...document.querySelectorAll('#hottest tbody tr')].map(row => row.innerText)")
        assert len(rows) == 10
        assert "node-01" in rows[0] and "104 %" in rows[0] and "33.3 of 32 cores" in rows[0]
        assert page.run("document.querySelector('#heat').dataset.cells") == str(40 * 168)
        assert [c for c in RESOURCES if page.run(f"!!document.querySelector('[data-resource={c}] path.expected')")] == [
            *RESOURCES
        ]
        assert "node-01" in page.text("#curves-title")
        title = page.text("#causes-title")
        assert "expected peak of node-01 in the next 24 h, and what helps: 104 % of cpu at" in title
        assert "shop/Deployment/cart\t2\t1.5 cores\t75 %" in page.text("#causes-services")
        helps = page.text("#causes-pods")
        assert (
            "shop/cart-1\t1 cores\tnode-" in helps and "\t104 % → 101 %" in helps and "no other node has room" in helps
        )
        cpu = page.text("[data-resource=cpu]")
        assert "Wed 11 Mar 21:" in cpu and "cores, upper bound (95 %)" in cpu and "now" in cpu
        assert page.run("document.querySelector('#banner').hidden") is True
        # Nothing hangs out of the window sideways, nothing is asked for elsewhere, and the console stays empty.
        assert page.run("document.documentElement.scrollWidth <= innerWidth") is True
        assert {address.split("/")[2] for address in page.requested} == {url.split("/")[2]}
        assert page.problems == []
        with browser.page("about:blank") as counter:
            for selector, least in (("#heat", 100), ("[data-resource=cpu] svg", 20), ("#hottest", 20)):
                assert counter.count_colours(page.screenshot(_box(page, selector))) > least, selector
            assert counter.count_colours(counter.screenshot()) == 1  # so a blank page would have been noticed


def test_a_cell_of_the_heat_map_tells_node_hour_and_share_and_opens_the_node(browser: Browser, url: str) -> None:
    with _shown(browser, url) as page:
        box = page.run("(b => [b.x, b.y, b.width])(document.querySelector('#heat').getBoundingClientRect())")
        page.run("document.querySelector('#heat').scrollIntoView({block: 'start'})")
        top = page.run("document.querySelector('#heat').getBoundingClientRect().y")
        page.click(box[0] + box[2] - 3, top + 20 + 15 * 2 + 7)
        assert page.text("#heat-cell").startswith("node-03, Tue 17 Mar 23:00: ")
        page.wait_for("document.querySelector('#charts').dataset.ready === 'node-03'")
        assert page.run("location.hash") == "#node=node-03"
        assert page.problems == []


def test_the_heat_map_obeys_the_keyboard(browser: Browser, url: str) -> None:
    with _shown(browser, url) as page:
        page.run("document.querySelector('#heat').focus()")
        page.press("ArrowDown")
        assert page.text("#heat-cell").startswith("node-01, Wed 11 Mar 14:00: ")
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            page.press(key)
        assert page.text("#heat-cell").startswith("node-02, Wed 11 Mar 16:00: ")
        page.press("Enter")
        page.wait_for("document.querySelector('#charts').dataset.ready === 'node-02'")


def test_a_finger_points_first_and_opens_with_the_button(browser: Browser, url: str) -> None:
    with _shown(browser, url, **PHONE) as page:
        page.run("document.querySelector('#heat').scrollIntoView({block: 'start'})")
        box = page.run("(b => [b.x, b.y, b.width])(document.querySelector('#heat').getBoundingClientRect())")
        page.tap(box[0] + box[2] - 1, box[1] + 20 + 15 + 7)
        page.wait_for("document.querySelector('#heat-cell').innerText.startsWith('node-02, Tue 17 Mar 23:00: ')")
        assert page.run("document.querySelector('#charts').dataset.ready") == "node-01"
        page.run("document.querySelector('#heat-open').click()")
        page.wait_for("document.querySelector('#charts').dataset.ready === 'node-02'")


def test_everything_to_operate_is_reached_by_tab_and_has_a_name(browser: Browser, url: str) -> None:
    with _shown(browser, url) as page:
        reached = []
        for _ in range(40):
            page.press("Tab")
            reached.append(page.run("document.activeElement.id || document.activeElement.className"))
        assert {"link", "heat-resource", "heat-top", "heat", "choice"} <= set(reached)
        nameless = page.run(
            "[...document.querySelectorAll('input,select,button,canvas[tabindex],svg[role]')].filter(e => "
            "!e.getAttribute('aria-label') && !e.labels?.length && !e.textContent.trim()).map(e => e.outerHTML)"
        )
        assert nameless == []


def test_a_service_is_chosen_by_name_and_a_resource_for_the_heat_map(browser: Browser, url: str) -> None:
    with _shown(browser, url) as page:
        options = page.run("[...document.querySelectorAll('#choices option')].map(o => o.value)")
        assert "shop/Deployment/cart" in options and "node-50" in options
        page.run("document.querySelector('#choice').value = ''; document.querySelector('#choice').focus()")
        page.type("shop/Deployment/cart")
        page.press("Enter")
        page.wait_for("document.querySelector('#charts').dataset.ready === 'shop/Deployment/cart'")
        assert "no capacity" in page.text("[data-resource=cpu]")
        assert "policy batch (rule 2: reports)" in page.text("#curves-about")
        before = page.run("document.querySelector('#heat').dataset.colours")
        page.run(
            "(s => { s.value = 'memory'; s.dispatchEvent(new Event('change')); })"
            "(document.querySelector('#heat-resource'))"
        )
        page.wait_for(f"document.querySelector('#heat').dataset.colours !== '{before}'")
        page.run(
            "document.querySelector('#choice').value = 'nobody'; document.querySelector('#choose').requestSubmit()"
        )
        page.wait_for("document.querySelector('#banner').innerText.includes(\"node 'nobody' is not known\")")


def test_names_are_never_taken_for_markup(browser: Browser) -> None:
    odd = "<img src=x onerror=document.title='broken'>"
    scorer = FakeScorer(3, node_name=odd, odd_name=f"shop/Deployment/{odd}")
    with served(create_app(scorer, hot=HOT_SHARE)) as url, _shown(browser, url) as page:
        assert odd in page.text("#hottest")
        assert page.run("document.querySelectorAll('img').length") == 0
        assert page.run("document.title") == "forecast-scheduler"
        page.run(f"location.hash = 'service=' + encodeURIComponent('shop/Deployment/' + {json.dumps(odd)})")
        page.wait_for("document.querySelector('#charts').dataset.ready.startsWith('shop')")
        assert odd in page.text("#curves-title")
        assert page.run("document.querySelectorAll('img').length") == 0


def test_degradation_and_old_usage_are_said_at_the_top(browser: Browser, url: str, scorer: FakeScorer) -> None:
    scorer.level, scorer.reasons, scorer.metrics_age = Level.REQUESTS, ("the model is 20 days old",), None
    scorer.with_model = False
    with _shown(browser, url) as page:
        assert page.text("#banner") == "Requests: the model is 20 days old."
        assert "none" in page.text("#state") and "never" in page.text("#state")
        assert "there is no usable model" in page.text("#hottest")
    scorer.level, scorer.reasons, scorer.with_model, scorer.metrics_age = Level.FRESH, (), True, 3000.0
    with _shown(browser, f"{url}/#service=shop%2FStatefulSet%2Fdb") as page:
        assert page.text("#banner") == "Usage was last measured 50 min ago."
        assert "shop/StatefulSet/db" in page.text("#curves-title")
        assert page.run("document.querySelector('#causes').hidden") is True


def test_a_scorer_that_is_not_ready_says_so_and_fills_the_page_later(
    browser: Browser, url: str, scorer: FakeScorer
) -> None:
    scorer.ready = False
    with browser.page(f"{url}/?refresh=1") as page:
        page.wait_for("document.querySelector('#banner').innerText.includes('pods have not been listed yet')")
        scorer.ready = True
        page.wait_for(READY)
        assert page.run("document.querySelector('#banner').hidden") is True


def test_the_last_picture_stays_when_the_scorer_is_gone(browser: Browser, scorer: FakeScorer) -> None:
    with served(create_app(scorer, hot=HOT_SHARE)) as url:
        page = _shown(browser, f"{url}/?refresh=1")
    with page:
        page.wait_for("document.querySelector('#banner').innerText.includes('cannot be reached')")
        assert "This is the picture of Wed 11 Mar, 14:10" in page.text("#banner")
        assert "node-01" in page.text("#hottest")
        assert page.run("document.querySelector('[data-resource=cpu] path.expected') !== null")


def test_a_token_is_asked_for_and_kept_in_the_tab(browser: Browser, scorer: FakeScorer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    app = create_app(
        scorer, ScorerServiceOptions(serving=ServingOptions(token_files=(tmp_path / "token",))), hot=HOT_SHARE
    )
    with served(app) as url, browser.page(url) as page:
        page.wait_for("!document.querySelector('#token-form').hidden")
        assert "node-01" not in page.text("body")
        for token, then in (
            ("wrong", "document.querySelector('#banner').innerText === 'The token was not accepted.'"),
            ("secret", READY),
        ):
            page.run("document.querySelector('#token').focus()")
            page.type(token)
            page.press("Enter")
            page.wait_for(then)
        assert page.run("document.querySelector('#token-form').hidden") is True
        assert page.run("[sessionStorage.token, localStorage.length, document.cookie]") == ["secret", 0, ""]
        assert "secret" not in page.run("location.href") and "secret" not in page.run("document.body.outerHTML")
        page.command("Page.reload")
        page.wait_for(READY)


def test_a_dark_page_is_printed_on_light_paper(browser: Browser, url: str) -> None:
    with _shown(browser, url, dark=True) as page:
        page.wait_for("document.querySelector('#heat').height > 50")
        corner = "[...document.querySelector('#legend').getContext('2d').getImageData(0, 0, 1, 1).data]"
        dark = page.run(corner)
        page.run("dispatchEvent(new Event('beforeprint'))")
        assert page.run("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()") == "#1f2937"
        assert sum(page.run(corner)[:3]) > 700 > sum(dark[:3])  # an idle node: nearly white, nearly black
        page.run("dispatchEvent(new Event('afterprint'))")
        assert page.run(corner) == dark
