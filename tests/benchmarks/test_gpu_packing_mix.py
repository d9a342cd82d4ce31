from __future__ import annotations

import pytest

from benchmarks.gpu_packing_trace import mix_of
from profiles.gpu.fragmentation.pod_shapes import PodShape

SMALL, BIG, RARE = PodShape(1000, 0, 1, 250), PodShape(8000, 0, 1, 1000), PodShape(2000, 0, 8, 1000)


def test_the_mix_of_pods_is_sorted_by_how_many_there_are() -> None:
    mix = mix_of([SMALL, BIG, BIG, RARE])
    assert mix.shapes == (BIG, RARE, SMALL)  # of equally many, what asks for more first
    assert mix.weight.tolist() == [0.5, 0.25, 0.25]


def test_what_is_rare_is_cut_off_and_the_rest_sums_to_one() -> None:
    mix = mix_of({SMALL: 6.0, BIG: 3.0, RARE: 1.0}, coverage=0.9)
    assert mix.shapes == (SMALL, BIG)
    assert mix.weight == pytest.approx([2 / 3, 1 / 3])
