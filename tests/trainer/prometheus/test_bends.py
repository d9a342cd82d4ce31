"""Every way in which a scrape may differ from the healthy one: the figures are right, or a sentence says what is wrong.

The bends are in testing/scrapes/bends.py, each read by the trainer from a real Prometheus.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from testing.scrapes.bends import BENDS
from testing.scrapes.cluster import STEP_SECONDS, healthy_cluster
from testing.scrapes.judging import Reading, read


@pytest.mark.parametrize("name", BENDS)
def test_a_bent_scrape_is_read_right_or_explicitly_not(name: str, tmp_path: Path) -> None:
    bend = BENDS[name]
    cluster = healthy_cluster(int(time.time()) // STEP_SECONDS * STEP_SECONDS, bend.domain)
    assert bend.verdict(read(cluster, bend.change(cluster.series), tmp_path)) in ("right", "explicit")


def test_a_healthy_scrape_is_read_without_a_word(tmp_path: Path) -> None:
    cluster = healthy_cluster(int(time.time()) // STEP_SECONDS * STEP_SECONDS)
    assert read(cluster, cluster.series, tmp_path) == Reading()
