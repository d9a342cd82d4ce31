"""One world for all that looks at it: keep such tests in one file, since files are shared out between workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dashboards.world import World


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("world")) as world:
        yield world
