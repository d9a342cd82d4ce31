from __future__ import annotations

import json
from typing import Any

import pytest

from kube.leader_election.record import LeaseRecord, lease_body, read_lease


def lease(**spec: Any) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "7"}, "spec": spec}).encode()


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"{}", b'{"metadata":{},"spec":{"leaseTransitions":"x"}}'])
def test_what_is_no_lease_is_told(body: bytes) -> None:
    assert read_lease(body) is None


def test_a_lease_is_taken_renewed_and_given_back() -> None:
    def written(holder: str, now: float, before: LeaseRecord | None) -> tuple[dict[str, Any], LeaseRecord]:
        body = json.loads(lease_body("ns", "l", holder=holder, seconds=15, now=now, before=before))
        stored = read_lease(json.dumps(body | {"metadata": {"resourceVersion": f"{now:g}"}}).encode())
        assert stored is not None
        return body, stored

    made, first = written("a", 0.0, None)
    assert "resourceVersion" not in made["metadata"] and made["spec"]["leaseTransitions"] == 0
    assert made["spec"]["renewTime"] == "1970-01-01T00:00:00.000000Z"
    renewed, second = written("a", 2.0, first)
    assert renewed["metadata"]["resourceVersion"] == "0"
    assert (renewed["spec"]["acquireTime"], renewed["spec"]["leaseTransitions"]) == ("1970-01-01T00:00:00.000000Z", 0)
    assert renewed["spec"]["renewTime"] == "1970-01-01T00:00:02.000000Z"
    taken, third = written("b", 30.0, second)
    assert (taken["spec"]["acquireTime"], taken["spec"]["leaseTransitions"]) == ("1970-01-01T00:00:30.000000Z", 1)
    back, _ = written("", 31.0, third)
    assert (back["spec"]["holderIdentity"], back["spec"]["leaseDurationSeconds"]) == ("", 1)
    assert back["spec"]["leaseTransitions"] == 1


def test_what_client_go_writes_is_read_and_lasts_no_longer_than_it_may() -> None:
    written = lease(
        holderIdentity="a",
        leaseDurationSeconds=15,
        acquireTime="2026-01-01T00:00:00.000000Z",
        renewTime="2026-01-01T00:00:10.000000Z",
        leaseTransitions=3,
    )
    times = ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:10.000000Z")
    assert read_lease(written) == LeaseRecord("a", 15.0, *times, 3, "7")
    far = read_lease(lease(holderIdentity="a", leaseDurationSeconds=2**31 - 1))
    assert far is not None and far.seconds == 3600.0
    odd = read_lease(lease(leaseDurationSeconds=-5, leaseTransitions=-2))
    assert odd == LeaseRecord("", 0.0, "", "", 0, "7")
    assert read_lease(b'{"metadata":{"resourceVersion":"7"}}') == odd
    one = LeaseRecord("a", 15.0, "x", "y", 0, "1")
    assert one.is_same(LeaseRecord("a", 15.0, "x", "y", 0, "2"))
    assert not one.is_same(LeaseRecord("a", 15.0, "x", "z", 0, "2"))
