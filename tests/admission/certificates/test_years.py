"""Years of certificates, whatever happens meanwhile: whoever is shown a certificate trusts it."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import example, given, settings
from hypothesis import strategies as st

from admission.certificates.authority import fingerprint
from admission.certificates.certificate_secret import held_from
from tests.admission.certificates.certificate_world import OPTIONS, START, World

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def authorities(world: World) -> set[bytes]:
    return {fingerprint(one) for one in x509.load_pem_x509_certificates(world.store.bundle())}


def signer(world: World) -> bytes:
    assert world.store.secret is not None
    return fingerprint(held_from(world.store.secret).authority.certificate)


def test_three_years_of_two_replicas(tmp_path: Path) -> None:
    with World(tmp_path, replicas=2) as world:
        shown, signers, sizes = Counter[bytes](), dict[bytes, int](), Counter[int]()
        world.look_twice(0)
        world.look_twice(1)
        trusted_at = dict[bytes, datetime]()
        signs_at = {signer(world): START}

        def all_are_trusted() -> None:
            """Also between any two requests to the API server."""
            assert world.is_trusted(0) and world.is_trusted(1), world.now
            for one in authorities(world):
                trusted_at.setdefault(one, world.now)

        world.store.before_call = all_are_trusted
        for day in range(0, 3 * 365, 2):
            for number in (0, 1):
                world.look(number)
                all_are_trusted()
            world.wait(OPTIONS.lifetimes.settle)
            world.look(0)
            all_are_trusted()
            signs_at.setdefault(signer(world), world.now)
            shown[fingerprint(world.certificate(0))] += 1
            signers.setdefault(signer(world), day)
            sizes[len(authorities(world))] += 1
            world.wait(2 * DAY - OPTIONS.lifetimes.settle)
        # 20 days each, and one more whenever a new authority begins to sign.
        assert 1095 // 22 <= len(shown) <= 1095 // 20 + 6
        # Two thirds of 365 days after the one before was made, and the day ahead.
        assert list(signers.values()) == pytest.approx([0, *(1 + n * 365 * 2 / 3 for n in range(1, 5))], abs=12)
        assert set(sizes) == {1, 2}
        assert all(signs_at[one] - trusted_at[one] >= DAY for one in list(signs_at)[1:])


EVENTS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([10 / 3600, 1 / 60, 1, 24, 24 * 6, 24 * 19])),
    st.tuples(st.just("look"), st.integers(0, 1)),
    st.tuples(st.just("interleaved"), st.integers(0, 6)),
    st.tuples(st.just("down"), st.booleans()),
    st.tuples(st.just("lost"), st.integers(1, 12)),
    st.tuples(st.just("backup"), st.none()),
    st.tuples(
        st.just("secret"),
        st.sampled_from(
            ["deleted", "exchanged", "restored", "ca.crt", "ca.key", "tls.crt", "next.crt", "previous.crt"]
        ),
    ),
)


@settings(deadline=None, max_examples=300 if settings.get_current_profile_name() == "long" else 20)
@given(st.lists(EVENTS, max_size=60), st.booleans())
@example([("lost", 9), ("backup", None), ("lost", 1), ("secret", "restored")], False)
def test_nobody_is_ever_shown_a_certificate_that_is_not_trusted(
    events: list[tuple[str, float | bool | str | None]], configuration_later: bool
) -> None:
    """Secrets lost, parts of them broken, the API server away for weeks, two replicas between each other's requests.

    The example: a backup that trusts as many as may be, and not who signed what is in use.

    Only a certificate that has ended is not trusted, which takes an API server that is away for ten days.
    """
    with tempfile.TemporaryDirectory() as directory, World(Path(directory), replicas=2) as world:
        store = world.store
        configuration = store.configuration
        if configuration_later:
            store.configuration = None
        for number in (0, 1):
            world.look_twice(number)
        store.configuration = configuration
        for number in (0, 1):
            world.look_twice(number)

        def check() -> None:
            for number in (0, 1):
                ended = world.now >= world.certificate(number).not_valid_after_utc
                assert ended or world.is_trusted(number), (world.now, number, events)

        check()
        backup = store.secret
        with World(Path(directory), start=world.now) as elsewhere:
            elsewhere.look()
            foreign = elsewhere.store.secret
        for kind, value in events:
            match kind:
                case "wait":
                    world.wait(timedelta(hours=float(value or 0)))
                case "look":
                    world.look(int(value or 0))
                case "interleaved":
                    calls = iter(range(20))

                    def between(at: int = int(value or 0), calls: object = calls) -> None:
                        if next(calls, None) == at:  # type: ignore[call-overload]
                            store.before_call = lambda: None
                            world.look(1)

                    store.before_call = between
                    world.look(0)
                    store.before_call = lambda: None
                case "down":
                    store.is_down = bool(value)
                case "lost":  # again and again within a year: more authorities are good than may be trusted
                    store.is_down = False
                    for _ in range(int(value or 0)):
                        store.put_secret(None)
                        for number in (0, 1):
                            world.look_twice(number)
                        check()
                        world.wait(DAY)
                case "backup":
                    backup = store.secret or backup
                case "secret" if value == "deleted":
                    store.put_secret(None)
                case "secret" if value in ("exchanged", "restored"):  # a backup, perhaps of long ago
                    store.is_down = False
                    for number in (
                        0,
                        1,
                        0,
                        1,
                    ):  # not while the two are of different authorities: see certificate_keeper.py
                        world.look_twice(number)
                    store.put_secret(foreign if value == "exchanged" else backup)
                case "secret":
                    if store.secret and value in store.secret:
                        store.put_secret({**store.secret, str(value): b"broken"})
            check()
        # And all is well again within two looks of each, whatever it was.
        store.is_down = False
        for number in (0, 1, 0):
            world.look_twice(number)
            world.keepers[number].look()  # raises nothing
        assert world.is_trusted(0) and world.is_trusted(1)
        assert world.certificate(0) == world.certificate(1)
        assert world.certificate(0).not_valid_after_utc - world.now > 9 * DAY
        assert len(authorities(world)) <= 8


def test_a_clock_that_was_wrong_is_forgiven(tmp_path: Path) -> None:
    with World(tmp_path, start=START + timedelta(days=900)) as world:
        world.look_twice()
        world.now = START
        world.look_twice()
        assert world.is_trusted()
        assert world.certificate().not_valid_after_utc < START + 31 * DAY
