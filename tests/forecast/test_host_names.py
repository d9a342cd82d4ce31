"""Names of one machine meet although one has a domain, and names of two machines do not."""

from __future__ import annotations

import pytest

from base.host_names import is_address, without_domain


@pytest.mark.parametrize(
    ("names", "known", "meant"),
    [
        (["node-1.prod.example.org"], ["node-1", "node-2"], {"node-1.prod.example.org": "node-1"}),
        (["NODE-1"], ["node-1.eu"], {"NODE-1": "node-1.eu"}),
        (["node-1.eu", "node-1.us"], ["node-1"], {}),
        (["node-1"], ["node-1.eu", "node-1.us"], {}),
        (["10.0.0.1", "10.1.0.1"], ["10.0.0.2"], {}),
        ([], ["node-1"], {}),
    ],
)
def test_names_are_compared_by_their_first_label(names: list[str], known: list[str], meant: dict[str, str]) -> None:
    assert without_domain(names, known) == meant


def test_addresses_are_told_from_names() -> None:
    assert all(map(is_address, ("10.0.0.1", "fd00::1", "::ffff:10.0.0.1")))
    assert not any(map(is_address, ("node-1", "10.example.org", "ip-10-0-0-1", "")))
