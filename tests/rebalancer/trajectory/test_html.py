"""What the page of trajectories says of what a forecast knew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalancer.trajectory.trajectories import PLACEMENT_AND_MOVES, UNTOUCHED, Trajectories
from rebalancer.trajectory.trajectory_page import trajectory_page
from tests.rebalancer.trajectory.played import played
from tests.scorer.replay.small_cluster import small_cluster


@pytest.fixture(scope="module")
def one_day() -> Trajectories:
    return played(days=1, rules=[UNTOUCHED, PLACEMENT_AND_MOVES])


@pytest.mark.parametrize(
    ("fit_nights", "said"),
    [
        (1, "Each day's forecast knows the whole days before it. The true future"),
        (14, "A model is fitted every 14 nights, on the whole days before, and used until the next. The true"),
    ],
)
def test_the_footer_says_what_forecasts_knew(one_day: Trajectories, fit_nights: int, said: str) -> None:
    options = replace(one_day.options, fit_nights=fit_nights)
    page = trajectory_page(replace(one_day, options=options), small_cluster()[0])
    footer = page[page.index("<footer>") : page.index("</footer>")]
    assert said in footer
