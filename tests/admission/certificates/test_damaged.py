"""Bytes of Secret and caBundle changed at random: nothing is raised but what is meant to be, and all is well again."""

from __future__ import annotations

import copy
import tempfile
from base64 import b64encode
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.certificates.certificate_secret import KEYS, held_from
from tests.admission.certificates.certificate_world import FakeStore, World

DAMAGE = st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 255)), min_size=1, max_size=3)
DAY = timedelta(days=1)


def damaged(content: bytes, changes: list[tuple[int, int]], *, inside: bool) -> bytes:
    """With some bytes replaced; `inside`: of the certificates in it rather than of their text."""
    if inside and b"BEGIN CERTIFICATE" in content:
        return b"".join(
            b"-----BEGIN CERTIFICATE-----\n"
            + b64encode(damaged(one.public_bytes(serialization.Encoding.DER), changes, inside=False))
            + b"\n-----END CERTIFICATE-----\n"
            for one in x509.load_pem_x509_certificates(content)
        )
    changed = bytearray(content)
    for place, value in changes:
        if changed:
            changed[place % len(changed)] = value
    return bytes(changed)


@cache
def aged(days: int) -> tuple[FakeStore, datetime]:
    """A Secret and a configuration that have been kept for so long, and the time."""
    with tempfile.TemporaryDirectory() as directory, World(Path(directory)) as world:
        for _ in range(0, days, 4):
            world.look_twice()
            world.wait(4 * DAY)
        return world.store, world.now - 4 * DAY + world.options.lifetimes.settle


@settings(deadline=None, max_examples=150)
@given(
    key=st.sampled_from([*KEYS, "bundle"]),
    changes=DAMAGE,
    inside=st.booleans(),
    days=st.sampled_from([4, 248, 252]),  # alone, with the next authority, with the one before
)
def test_whatever_is_damaged_is_mended(key: str, changes: list[tuple[int, int]], inside: bool, days: int) -> None:
    store, now = aged(days)
    store = copy.deepcopy(store)
    with tempfile.TemporaryDirectory() as directory, World(Path(directory), store=store, start=now) as world:
        world.look_twice()
        secret = store.secret
        assert secret is not None
        if key == "bundle":
            store.edit_bundle(b64encode(damaged(store.bundle(), changes, inside=inside)).decode())
        else:
            store.put_secret({**secret, key: damaged(secret.get(key, b"x"), changes, inside=inside)})
        world.keepers[0].look()
        assert world.is_trusted()
        world.wait(world.options.lifetimes.settle)
        world.keepers[0].look()
        assert world.is_trusted()
        assert held_from(store.secret or {}).broken == ()
