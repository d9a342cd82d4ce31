"""Whatever dies, no pod is held for longer than gate_timeout and 5 s, with the rights and policies that are shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from advisor.advice_settings import AdviseOptions
from testing.clusters.advised_site import pod_of
from testing.processes.gate_deaths import ALLOWED_MORE, DEATHS, advised, held_through
from testing.waiting import eventually

LIMIT = AdviseOptions().gate_timeout + ALLOWED_MORE
_CASES = [
    (name, drain, rate)
    for name in DEATHS
    for drain in (("5s", "0s") if "SIGTERM" in name else ("5s",))
    for rate in (20, 200)
]


@pytest.mark.parametrize(("name", "drain", "rate"), _CASES)
def test_no_pod_is_held_too_long(name: str, drain: str, rate: int, tmp_path: Path) -> None:
    """Failed before: of 60 pods of a burst whose only advisor was killed, 46 were held for ever."""
    held = held_through(DEATHS[name], tmp_path, rate=rate, limit=LIMIT, advise={"serving": {"drain": drain}})
    assert held.n_pods, "no pod was held"
    assert held.n_over == 0, (held, *held.logs)


ABSURD: dict[str, dict[str, Any]] = {
    "full": {"metadata": {"annotations": {"x": "y" * (256 * 1024 - 1)}}},
    "huge": {"spec": {"containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1e18"}}}]}},
    "many": {"metadata": {"annotations": {f"forecast-scheduler.io/{n}": "1e308" for n in range(3000)}}},
    "words": {"metadata": {"annotations": {"forecast-scheduler.io/virtual-request": "cpu=1e308,memory=-0,x=nan"}}},
}
"""By name: what of a pod is not as it is with others."""


def test_pods_that_say_absurd_things_are_released_and_hold_nobody(tmp_path: Path) -> None:
    """Failed before: a pod whose annotations were full stayed held for ever, its advice refused again and again."""
    with advised(tmp_path, {}) as of:
        for number, (name, said) in enumerate(ABSURD.items()):
            made = pod_of(f"absurd-{name}", of.site.sets[number % len(of.site.sets)])
            for part, fields in said.items():
                made[part] = {**made[part], **fields}
            of.site.writer.create(made)
        of.create("honest", 20, 2)
        assert eventually(lambda: of.times.n_held() == 0, 4 * LIMIT), [one.log[-2000:] for one in of.advisors]
        assert len(of.times.all()) >= len(ABSURD)
