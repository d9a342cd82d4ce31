"""The report is one file that needs nothing else, and says what the figures say."""

from __future__ import annotations

import re
from datetime import datetime

from scorer.replay.html import replay_page
from scorer.replay.replay import replay
from tests.scorer.replay.simple_forecast import simple_forecast
from tests.scorer.replay.small_cluster import small_cluster


def test_the_page_is_self_contained_and_complete() -> None:
    history, pods = small_cluster()
    played = replay(history, pods, simple_forecast, at=datetime(2026, 1, 20, 4), days=2)
    page = replay_page(played, history)
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)
    assert page.count("plotly.js v") == 1
    assert f"{played.figures['native'].hot_share:.1%}" in page
    for label in ("kube-scheduler (requests)", "true future", "fresh model, fresh metrics", "service-"):
        assert label in page
    assert "$" not in page[page.index("<body>") : page.index("<h2>")]
