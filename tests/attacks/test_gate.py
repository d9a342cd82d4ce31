"""Whatever dies, no pod is held for longer than gate_timeout and 5 s, with the rights and policies that are shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.options import AdviseOptions
from testing.processes.gate_deaths import ALLOWED_MORE, DEATHS, held_through

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
    held = held_through(DEATHS[name], tmp_path, rate=rate, limit=LIMIT, advise={"drain": drain})
    assert held.n_pods, "no pod was held"
    assert held.n_over == 0, (held, *held.logs)
