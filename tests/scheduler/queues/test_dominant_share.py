from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from scheduler.queues.dominant_share import dominant, pods_to_level

AMOUNTS = st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0, 10.0]), min_size=3, max_size=3).map(tuple)


def test_the_dominant_share_is_the_largest_one() -> None:
    # The example of the paper: 9 CPUs and 18 GB; A runs tasks of <1 CPU, 4 GB>, B of <3 CPUs, 1 GB>.
    assert dominant((3, 12), (9, 18)) == (12 / 18, 1)
    assert dominant((6, 2), (9, 18)) == (6 / 9, 0)
    assert dominant((), (9, 18)) == (0.0, 0)
    assert dominant((1, 0, 5), (9, 18, 0)) == (1 / 9, 0)  # nobody offers the third


def test_pods_that_bring_an_owner_level() -> None:
    assert pods_to_level((0, 0), (1, 4), (9, 18), 12 / 18) == 3
    assert pods_to_level((3, 12), (1, 4), (9, 18), 12 / 18) == 0
    assert pods_to_level((), (1, 4), (9, 18), 0.5) == 3
    assert pods_to_level((), (0, 0), (9, 18), 0.5) == math.inf


@given(used=AMOUNTS, demand=AMOUNTS, total=AMOUNTS, share=st.sampled_from([0.1, 0.5, 0.9]))
def test_it_is_as_if_pods_were_added_one_by_one(
    used: tuple[float, ...], demand: tuple[float, ...], total: tuple[float, ...], share: float
) -> None:
    fewest = pods_to_level(used, demand, total, share)
    if fewest == math.inf:
        assert not any(one > 0 and of_all > 0 for one, of_all in zip(demand, total, strict=True))
        return
    # Only what it asks for counts: of the rest it may have more than its share already.
    held = [one if asked > 0 else 0.0 for one, asked in zip(used, demand, strict=True)]
    n_pods = 0
    while dominant(held, total)[0] < share - 1e-6:
        held = [one + more for one, more in zip(held, demand, strict=True)]
        n_pods += 1
    assert fewest == n_pods
