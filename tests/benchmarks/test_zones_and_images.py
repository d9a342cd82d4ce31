"""What a placement left of zone spread and images at hand, in numbers that can be counted by hand."""

from __future__ import annotations

import numpy as np

from benchmarks.zones_and_images import images_on_nodes, protected


def test_the_measures_of_a_placement_can_be_counted_by_hand() -> None:
    images = np.array([[True, False, False, False], [False, True, True, False]])
    # Service 0 on nodes 0, 0, 3, which are all of zone 0; service 1 on nodes 1 and 2, of zones 1 and 2.
    kept = protected(np.array([0, 0, 3, 1, 2]), np.array([0, 0, 0, 1, 1]), images)
    assert kept.zone_skew == (3 + 1) / 2
    assert kept.beside_own == 1 / 5
    assert kept.with_image == 4 / 5


def test_a_third_of_the_nodes_has_each_image() -> None:
    images = images_on_nodes(4, 60, np.random.default_rng(0))
    assert images.sum(axis=1).tolist() == [20] * 4
