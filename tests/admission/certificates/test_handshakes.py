"""A TLS client between the steps of a rotation, with OpenSSL and today's time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from admission.certificates.authority import to_pem
from admission.certificates.certificate_keeper import CertificateKeeper
from admission.certificates.certificate_secret import held_from
from tests.admission.certificates.certificate_world import OPTIONS, World, shake_hands

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two replicas that were last looked after 19 days ago, with an authority that is 240 days old."""
    today = datetime.now(UTC)
    with World(tmp_path, replicas=2, start=today - 240 * DAY) as world:
        world.look_twice(0)
        world.now = today - 19 * DAY
        world.look_twice(0)
        world.look_twice(1)
        yield world


def test_every_step_of_a_rotation_is_trusted(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Asked between any two requests to the API server, by a client whose clock says today."""
    n_handshakes = 0

    def ask() -> None:
        nonlocal n_handshakes
        for shown in world.shown:
            assert shake_hands(shown.path, world.store.bundle()) == ""
            n_handshakes += 1

    # Two thirds of 340 days are 226, which pass on the way from 221 days to 240.
    world.options = OPTIONS.replace(authority_lifetime=340 * 86_400)
    world.keepers = [
        CertificateKeeper(world.store, shown, world.options, clock=lambda: world.now.timestamp())
        for shown in world.shown
    ]
    world.store.before_call = ask
    with caplog.at_level(logging.INFO):
        while world.now < datetime.now(UTC) - DAY:
            for number in (0, 1):
                world.look_twice(number)
            world.wait(12 * HOUR)
    steps = [vars(record)["step"] for record in caplog.records if "step" in vars(record)]
    assert steps == ["PREPARE", "NOTE", "PROMOTE"]
    assert n_handshakes > 100
    assert len(held_from(world.store.secret or {}).previous) == 1


def test_the_authority_before_is_needed_until_the_certificate_is_exchanged(tmp_path: Path) -> None:
    """The order matters: what the client would say if the bundle named the new authority alone."""
    today = datetime.now(UTC)
    with World(tmp_path, replicas=2, start=today - 250 * DAY) as world:
        for days_ago in (250, 6):
            world.now = today - days_ago * DAY
            world.look_twice(0)
            world.look_twice(1)
        early_bundle = world.store.bundle()
        world.wait(2 * DAY)
        world.look_twice(0)  # the next authority signs; replica 1 has not looked yet
        bundle = world.store.bundle()
        new_alone = to_pem([held_from(world.store.secret or {}).authority.certificate])
        assert new_alone != bundle
        first, second = (shown.path for shown in world.shown)
        assert shake_hands(first, bundle) == shake_hands(second, bundle) == ""
        assert shake_hands(first, early_bundle) == ""  # it knew the next authority beforehand
        assert shake_hands(first, new_alone) == ""
        assert shake_hands(second, new_alone) != ""
