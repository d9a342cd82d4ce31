"""Steps of a rolling update, as the played Deployment controller takes them."""

from __future__ import annotations

import pytest

from testing.soak.deployments import plan, template_hash


@pytest.mark.parametrize(
    ("replicas", "new", "n_old", "made", "deleted"),
    [
        (4, [], 0, 4, 0),  # its first release
        (4, [True] * 4, 0, 0, 0),
        (4, [], 4, 1, 0),  # a release: a quarter more
        (4, [False], 4, 0, 0),  # nobody goes before a new one runs
        (4, [True], 4, 0, 1),
        (4, [True], 3, 1, 0),
        (4, [True] * 4, 1, 0, 1),
        (6, [True] * 4, 0, 2, 0),  # scaled up
        (2, [True] * 4, 0, 0, 2),  # and down
        (2, [False] * 4, 0, 0, 2),
    ],
)
def test_a_step(replicas: int, new: list[bool], n_old: int, made: int, deleted: int) -> None:
    assert plan(replicas, new, n_old) == (made, deleted)


def test_hashes_differ() -> None:
    assert len({template_hash(revision) for revision in range(1000)}) == 1000
