"""The page in a real browser without a network: curves are there, selectors work, nothing is asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from forecast.hot_share import HOT_SHARE
from forecast.resources import RESOURCES
from forecast.service_key import ServiceKey
from forecast_scheduler.reports.peaks_report.peaks_page import peaks_page
from forecast_scheduler.reports.peaks_report.peaks_view import MOST_DAYS, MOST_DRAWN, DrawnCurves, PeaksView, peaks_view
from tests.browser.chromium import Browser, Page
from tests.forecast_scheduler.reports.peaks_report.nights import MADE, N_DAYS, history, registry_of

READY = "document.body.dataset.ready === 'true' && !!document.querySelector('#curves').dataset.ready"
HOSTILE = '</script><img src=x onerror="document.title=1">'
PHONE = {"width": 390, "height": 844, "phone": True}


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> PeaksView:
    registry = registry_of(tmp_path_factory.mktemp("store"), in_time=(N_DAYS - 3,))
    return peaks_view(history(), registry, made=MADE, days=5, adopted=history().days[6], hot=HOT_SHARE)


@pytest.fixture(scope="module")
def file(view: PeaksView, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "peaks.html"
    path.write_text(peaks_page(view))
    return path


def shown(browser: Browser, file: Path, **size: object) -> Page:
    page = browser.page(file.as_uri(), **size)  # type: ignore[arg-type]
    page.wait_for(READY, seconds=120)  # a busy machine takes its time to draw eight plots
    return page


def lines(page: Page, plot: str) -> list[str]:
    """Names of the lines of a plot that have a path drawn."""
    found = page.run(
        f"[...document.querySelector('#{plot}').querySelectorAll('.scatterlayer .trace')]"
        f".filter(t => (t.querySelector('path.js-line')?.getAttribute('d') ?? '').includes('L'))"
        f".map(t => document.querySelector('#{plot}')._fullData[t.__data__[0].trace.index].name)"
    )
    assert isinstance(found, list)
    return found


def choose(page: Page, selector: str, value: str) -> None:
    page.run(
        f"(e => {{ e.value = {json.dumps(value)}; e.dispatchEvent(new Event('change')); }})"
        f"(document.querySelector('{selector}'))"
    )


@pytest.mark.parametrize(
    "size", [{}, pytest.param(PHONE, marks=pytest.mark.long), {"dark": True}], ids=["desk", "phone", "dark"]
)
def test_the_curves_and_figures_are_drawn_and_nothing_is_asked_for(
    browser: Browser, file: Path, size: dict[str, object]
) -> None:
    with shown(browser, file, **size) as page:
        drawn = lines(page, "curves")
        assert {"expected, as issued", "up to the 0.95 bound", "actual", "expected, coming day"} <= set(drawn)
        for plot in ("error", "coverage", "loss", "service-coverage", "variation"):
            assert lines(page, plot) == [resource.name for resource in RESOURCES], plot
        assert page.run("document.querySelectorAll('#hot .bars path').length") == N_DAYS
        assert page.run("document.documentElement.scrollWidth <= innerWidth") is True
        assert page.requested == [file.as_uri()] and page.problems == []
        with browser.page("about:blank") as counter:
            assert counter.count_colours(page.screenshot()) > 50


def test_every_curve_is_the_one_that_was_chosen(browser: Browser, file: Path, view: PeaksView) -> None:
    with shown(browser, file) as page:
        first = view.history.nodes[view.nodes.chosen[0]]
        assert page.run("document.querySelector('#curves').dataset.ready") == f"node {first} cpu"
        choose(page, "#kind", "service")
        choose(page, "#name", "shop/Deployment/service-1")
        choose(page, "#resource", "2")
        assert page.run("document.querySelector('#curves').dataset.ready") == "service shop/Deployment/service-1 disk"
        row = [str(view.history.services[i]) for i in view.services.chosen].index("shop/Deployment/service-1")
        actual = view.services.actual[row, 2, :-1].ravel()
        got = page.run("document.querySelector('#curves').data.find(t => t.name === 'actual').y")
        unit = page.run("document.querySelector('#curves').layout.yaxis.title.text")
        assert unit == "B/s" and got == pytest.approx(actual.tolist(), abs=1e-3 * float(actual.max()))
        choose(page, "#span", "3")
        left = page.run("document.querySelector('#curves').layout.xaxis.range[0]")
        assert left == f"{view.days[2].isoformat()} 00:00"


def test_a_resource_of_another_unit_is_written_in_it_and_has_a_colour(
    browser: Browser, file: Path, tmp_path: Path
) -> None:
    """As if log were one that nothing in the page knows."""
    before, mark, facts = file.read_text().partition('<script type="application/json" id="peaks">')
    data, end, after = facts.partition("</script>")
    assert '["log","bytes/s"]' in data
    data = data.replace('["log","bytes/s"]', '["queries","queries/s"]').replace('"log"', '"queries"')
    path = tmp_path / "other.html"
    path.write_text("".join((before, mark, data, end, after)))
    with shown(browser, path) as page:
        choose(page, "#resource", "4")
        assert page.run("document.querySelector('#curves').layout.yaxis.title.text") == "queries/s"
        assert " queries/s" in page.text("#origin-note")
        colours = page.run("document.querySelector('#error').data.map(line => line.line.color)")
        assert len(colours) == len(set(colours)) == len(RESOURCES) and all(c.startswith("#") for c in colours)
        assert page.problems == []


def test_a_node_of_the_table_opens_its_curves(browser: Browser, file: Path, view: PeaksView) -> None:
    with shown(browser, file) as page:
        rows = page.run("[...document.querySelectorAll('#hottest tbody tr')].map(row => row.innerText)")
        assert len(rows) == len(view.hottest) and view.history.nodes[view.hottest[0].node] in rows[0]
        page.run("document.querySelectorAll('#hottest button')[1].click()")
        second = view.hottest[1]
        ready = f"node {view.history.nodes[second.node]} {RESOURCES[second.resource].name}"
        assert page.run("document.querySelector('#curves').dataset.ready") == ready


def test_a_name_that_is_not_there_is_told(browser: Browser, file: Path) -> None:
    with shown(browser, file) as page:
        choose(page, "#name", "node-77")
        assert "“node-77” are not in this file" in page.text("#said")


def renamed(view: PeaksView) -> PeaksView:
    known = view.history
    services = (ServiceKey("shop", "Deployment", HOSTILE.replace("/", "")), *known.services[1:])
    return replace(view, history=replace(known, nodes=(HOSTILE, *known.nodes[1:]), services=services))


def test_no_name_becomes_a_tag(browser: Browser, view: PeaksView, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(peaks_page(renamed(view)))
    with shown(browser, path) as page:
        choose(page, "#name", HOSTILE)
        assert page.run("document.querySelector('#curves').dataset.ready") == f"node {HOSTILE} cpu"
        assert page.run("document.images.length") == 0 and page.run("document.title") != "1"
        assert page.requested == [path.as_uri()] and page.problems == []


def test_the_page_itself_forbids_every_request(browser: Browser, file: Path) -> None:
    """Even were there a script in it that wanted to."""
    with shown(browser, file) as page:
        said = page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')")
        assert said == "refused" and any("Content Security Policy" in problem for problem in page.problems)


def crowd(view: PeaksView, n: int, n_days: int) -> PeaksView:
    """So many nodes and services with curves, as long as they may be, of noise: nothing packs worse."""
    rng = np.random.default_rng(0)
    shape = (n, len(RESOURCES), n_days + 1, 48)
    noise = rng.random(shape, dtype=np.float32)
    curves = DrawnCurves(np.arange(n), noise, noise, noise)
    known = replace(
        view.history,
        nodes=tuple(f"ip-10-0-{i // 256}-{i % 256}.eu-central-1.compute.internal" for i in range(5000)),
        services=tuple(ServiceKey("namespace", "Deployment", f"service-{i}") for i in range(5000)),
        capacity=np.full((5000, len(RESOURCES)), 40.0),
    )
    days = known.calendar.horizon(known.days[0], n_days)
    forecasts = tuple(replace(view.forecasts[-1], day=day) for day in (*days, view.coming))
    return replace(view, history=known, days=days, forecasts=forecasts, nodes=curves, services=curves)


def test_five_thousand_nodes_and_services_make_a_page_of_bounded_size(view: PeaksView) -> None:
    usual = peaks_page(crowd(view, 60, 14))
    assert len(usual) < 10e6
    assert "Curves of 60 nodes are here" in usual and "4,940 are left out" in usual
    assert len(peaks_page(crowd(view, MOST_DRAWN, MOST_DAYS))) < 64e6  # what the scorer serves at most
