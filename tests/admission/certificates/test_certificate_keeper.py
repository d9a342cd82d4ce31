from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from admission.certificates.authority import Pair, issue, names_of, to_pem
from admission.certificates.certificate_keeper import CertificateKeeper, ShownCertificate
from admission.certificates.certificate_secret import held_from
from admission.certificates.certificate_store import Conflict, StoreRefused
from admission.certificates.managed_certificates import CertificateCollector
from serving.tls import CertificateFiles, ReloadedCertificates
from tests.admission.certificates.certificate_world import OPTIONS, START, FakeStore, World

DAY = timedelta(days=1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, replicas=2) as world:
        yield world


def secret_of(world: World) -> dict[str, bytes]:
    assert world.store.secret is not None
    return world.store.secret


def authority_of_somebody_else() -> dict[str, bytes]:
    """Good in every way, and a certificate of it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "theirs")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, START - DAY, START + 365 * DAY)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    authority = Pair(builder.sign(key, hashes.SHA256()), key)
    serving = issue(authority, OPTIONS.all_names, START, 30 * DAY)
    return {
        "ca.crt": to_pem([authority.certificate]),
        "ca.key": authority.key_pem,
        "tls.crt": to_pem([serving.certificate]),
        "tls.key": serving.key_pem,
    }


def test_the_bundle_is_published_before_the_first_certificate_is_shown(world: World) -> None:
    def nothing_is_shown() -> None:
        assert not world.shown[0].path.exists()

    world.store.before_call = nothing_is_shown
    world.look()
    assert world.store.writes == ["secret", "bundle"]
    assert world.is_trusted()


def test_a_second_replica_shows_the_same_and_writes_nothing_where_nothing_is_due(world: World) -> None:
    world.look(0)
    written = list(world.store.writes)
    for _ in range(5):
        world.look(1)
        assert world.certificate(0) == world.certificate(1)
        world.wait(DAY)
        world.look(0)
    assert world.store.writes == written
    path = world.shown[0].path
    assert [os.stat(one).st_mode & 0o777 for one in (path, path.parent)] == [0o600, 0o700], "only the owner may read it"
    assert [entry.name for entry in path.parent.iterdir()] == ["tls.pem"]


def test_of_two_that_start_at_once_one_makes_the_secret(world: World) -> None:
    calls = iter(range(100))

    def other_first() -> None:
        if next(calls) == 2:  # the first one has read, and is about to write
            world.store.before_call = lambda: None
            world.look(1)

    world.store.before_call = other_first
    world.look(0)
    assert world.store.writes == ["secret", "bundle"]
    assert world.certificate(0) == world.certificate(1)
    assert [keeper.figures.written for keeper in world.keepers] == [0, 1]


def test_an_api_server_that_is_away_is_told_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.look()
    world.store.is_down = True
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            world.look()
        world.store.is_down = False
        world.look()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "cannot be looked after" in told[0] and "again" in told[1]
    assert world.keepers[0].figures.failed == 3


def test_an_unreadable_authority_is_replaced_and_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.look()
    before = world.certificate()
    world.store.put_secret({**secret_of(world), "ca.key": b"not a key"})
    world.look()
    assert "cannot be used and is replaced: the key cannot be read" in caplog.text
    assert world.certificate() == before and world.is_trusted()  # of an authority that stays trusted
    world.wait(timedelta(seconds=10))
    world.look()
    assert world.certificate() != before and world.is_trusted()


@pytest.mark.parametrize("key", ["tls.crt", "tls.key", "next.crt", "next.published", "previous.crt"])
def test_a_broken_part_is_mended_and_told(world: World, key: str, caplog: pytest.LogCaptureFixture) -> None:
    world.look_twice()
    world.wait(244 * DAY)
    world.look_twice()
    signer = held_from(secret_of(world)).authority.certificate
    world.store.put_secret({**secret_of(world), key: b"broken"})
    world.look_twice()
    assert "is mended: " in caplog.text
    held = held_from(secret_of(world))
    assert held.broken == () and held.authority.certificate == signer and held.upcoming is not None
    assert world.is_trusted()


def test_a_secret_of_somebody_else_is_left_alone_whether_it_can_be_read_or_not(world: World) -> None:
    world.store.put_secret({"tls.crt": b"x", "password": b"y"}, is_marked=False)
    with pytest.raises(StoreRefused, match="Secret shop/hook-certificates is not one of the webhook's"):
        world.keepers[0].look()
    assert world.store.writes == []
    world.store.put_secret({}, is_marked=False)  # an empty one is filled
    world.look()
    right, written = secret_of(world), list(world.store.writes)
    theirs = {**right, **authority_of_somebody_else(), "password": b"y"}
    world.store.put_secret(theirs, is_marked=False)
    with pytest.raises(StoreRefused, match=r"is not one of the webhook's and is left alone \(its authority is "):
        world.keepers[0].look()
    assert world.store.secret == theirs and world.store.writes == written and world.is_trusted()
    world.store.put_secret(theirs)  # labelled by somebody who means it
    world.look_twice()
    assert held_from(secret_of(world)).authority.certificate.subject.rfc4514_string() == "CN=theirs"


def test_without_a_configuration_certificates_are_served_all_the_same(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    configuration, world.store.configuration = world.store.configuration, None
    world.look()
    world.look()
    assert caplog.text.count("the API server does not call service shop/hook") == 1
    first = world.certificate()
    world.store.configuration = configuration
    world.look()
    assert world.certificate() == first and world.is_trusted()


def test_further_names_make_a_new_certificate_and_do_not_take_turns(world: World, tmp_path: Path) -> None:
    world.look()
    with World(tmp_path, store=world.store, options=OPTIONS.replace(names=("hook.example",))) as newer:
        for _ in range(5):
            newer.look_twice()
            world.now = newer.now
            world.look_twice()
            newer.now = world.now
        assert world.store.writes.count("secret") == 2
        assert {"hook.example", "localhost", "127.0.0.1"} <= names_of(world.certificate())
        newer.wait(21 * DAY)
        newer.look_twice()
        assert "localhost" not in names_of(newer.certificate())  # it is not asked for any more


def test_conflicts_without_end_are_an_error(world: World) -> None:
    def somebody_writes() -> None:
        world.store.put_secret({})

    world.store.before_call = somebody_writes
    with pytest.raises(Conflict):
        world.keepers[0].look()


def test_it_looks_every_minute_and_more_often_while_something_waits(tmp_path: Path) -> None:
    now, looks = 0.0, []
    with ShownCertificate(tmp_path) as shown:
        store = FakeStore()
        store.before_call = lambda: looks.append(now)
        keeper = CertificateKeeper(store, shown, OPTIONS, clock=lambda: START.timestamp() + now, monotonic=lambda: now)

        def looks_until(end: float) -> list[float]:
            nonlocal now
            looks.clear()
            while now < end:
                keeper.look_if_due()
                now += 5
            return sorted(set(looks))

        assert looks_until(120) == [0, 60]
        store.put_secret(None)  # seen at 120; what is made then waits for 10 seconds
        assert looks_until(180) == [120, 125, 130]
        configuration, store.configuration = store.configuration, None
        assert looks_until(215) == [190, 195, 200, 205, 210]
        store.configuration, store.is_down = configuration, True
        assert looks_until(225) == [215, 220]
        store.is_down = False
        assert looks_until(300) == [225, 285]


def test_metrics_tell_when_the_certificate_ends(world: World, tmp_path: Path) -> None:
    world.look()
    files = CertificateFiles(world.shown[0].path)
    families = [*CertificateCollector(files, world.keepers[0]).collect()]
    ends, end = "forecast_webhook_certificate_expiry_timestamp_seconds", (START + 30 * DAY).timestamp()
    assert {sample.name: sample.value for family in families for sample in family.samples} == {
        ends: end,
        "forecast_webhook_certificate_secret_writes_total": 1,
        "forecast_webhook_ca_bundle_writes_total": 1,
        "forecast_webhook_certificate_failures_total": 0,
    }
    [of_own_files] = CertificateCollector(files).collect()
    assert [sample.value for sample in of_own_files.samples] == [end]
    [missing] = CertificateCollector(CertificateFiles(tmp_path / "none")).collect()
    assert missing.samples == []


def test_the_server_follows_a_backup_that_lost_its_labels(world: World) -> None:
    world.look_twice()
    reloaded = ReloadedCertificates(CertificateFiles(world.shown[0].path))
    assert not reloaded.refresh()
    world.wait(20 * DAY)
    world.look_twice()
    assert reloaded.refresh()
    world.look()
    backup = secret_of(world)
    world.store.put_secret(None)
    world.look_twice()
    world.store.put_secret(backup, is_marked=False)
    world.look_twice()
    assert world.keepers[0].figures.failed == 0 and world.store.is_marked
    authority = held_from(backup).authority.certificate
    assert held_from(secret_of(world)).authority.certificate == authority and world.is_trusted()
