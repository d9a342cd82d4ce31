"""Somebody who can write to the store and has no key: what they can make a reader do, and what not."""

from __future__ import annotations

import json
import os
import pickle
import struct
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from base.errors import ForecastError, InputError, StoreError
from forecast.artefact import UnsignedArtefact
from forecast.published_models import Registry
from forecast.signature import new_key_pair
from tests.forecast.artefacts import artefact_of, value_of

PRIVATE, PUBLIC = new_key_pair()
OTHER_PRIVATE, OTHER_PUBLIC = new_key_pair()
HUGE = 100 * 2**30


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """With two signed models, 1 and 2; 2 is in use."""
    registry = Registry(str(tmp_path), private_key=PRIVATE, public_key=PUBLIC)
    registry.publish(artefact_of(1))
    registry.publish(artefact_of(2))
    return registry


def _npy_of(header: str) -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def _sparse(path: Path) -> None:
    os.truncate(path, HUGE)  # takes no room on the disk, all of it in memory


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"usage": 1}))


def _claims_100_gigabytes(path: Path) -> None:
    path.write_bytes(_npy_of("{'descr': '<f4', 'fortran_order': False, 'shape': (26843545600,), }"))


def _nothing(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES = [_sparse, _pipe, _directory, _pickle, _claims_100_gigabytes, _nothing]
FILES = ["latest.json", "manifest.json", "manifest.sig", "usage.npy", "node_base.npy", "replicas.npy"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
def test_no_file_can_be_replaced_by_something_that_hurts(
    registry: Registry, tmp_path: Path, damage: Callable[[Path], None], name: str
) -> None:
    version = registry.latest()
    assert version is not None
    damage(tmp_path / name if name == "latest.json" else tmp_path / version / name)
    refused: list[BaseException] = []

    def load() -> None:
        try:
            registry.load()
        except ForecastError as error:
            refused.append(error)

    tracemalloc.start()
    try:
        reader = threading.Thread(target=load, daemon=True)
        reader.start()
        reader.join(20)
        assert not reader.is_alive(), "the reader waits for ever"
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(refused) == 1 and len(str(refused[0])) < 600, refused
    assert most < 256 * 2**20
    assert value_of(registry.load(registry.versions()[0])) == 1  # the one before is whole


def test_an_old_signed_model_can_be_put_back_but_not_made_young(registry: Registry, tmp_path: Path) -> None:
    """What bounds it is the age of the model, which is signed."""
    first = registry.versions()[0]
    made = registry.load(first).manifest.created
    latest = tmp_path / "latest.json"
    document = json.loads(latest.read_text())
    document |= document["before"][0]
    latest.write_text(json.dumps(document))
    loaded = registry.load()
    assert (loaded.version, value_of(loaded), loaded.manifest.created) == (first, 1, made)
    manifest = tmp_path / first / "manifest.json"
    manifest.write_text(manifest.read_text().replace(made.isoformat(), made.replace(year=2099).isoformat()))
    with pytest.raises(InputError):
        registry.load()
    with pytest.raises(UnsignedArtefact):
        registry.load(first)


# Replacing the key


def test_models_of_the_old_and_of_the_new_key_are_accepted_while_keys_are_replaced(tmp_path: Path) -> None:
    both = PUBLIC + OTHER_PUBLIC
    Registry(str(tmp_path), private_key=PRIVATE, public_key=PUBLIC).publish(artefact_of(1))
    assert value_of(Registry(str(tmp_path), public_key=both).load()) == 1
    Registry(str(tmp_path), private_key=OTHER_PRIVATE, public_key=both).publish(artefact_of(2))
    assert value_of(Registry(str(tmp_path), public_key=both).load()) == 2
    assert value_of(Registry(str(tmp_path), public_key=OTHER_PUBLIC).load()) == 2
    with pytest.raises(UnsignedArtefact):
        Registry(str(tmp_path), public_key=PUBLIC).load()
    with pytest.raises(UnsignedArtefact):
        Registry(str(tmp_path), public_key=OTHER_PUBLIC).rollback()


@pytest.mark.parametrize("second", [b"-----BEGIN PUBLIC KEY-----\nbm8ga2V5\n-----END PUBLIC KEY-----\n", PRIVATE])
def test_a_second_key_that_is_none_is_found_although_the_first_one_signed(tmp_path: Path, second: bytes) -> None:
    Registry(str(tmp_path), private_key=PRIVATE).publish(artefact_of(1))
    with pytest.raises(InputError, match="public key 2 of 2"):
        Registry(str(tmp_path), public_key=PUBLIC + second).load()


# Secrets


@pytest.mark.parametrize("url", ["https://alice:hunter2@127.0.0.1:9/models", "nosuch://alice:hunter2@store/models"])
def test_a_password_in_the_url_is_not_repeated(url: str) -> None:
    with pytest.raises((StoreError, InputError)) as raised:
        Registry(url).load()
    assert "hunter2" not in str(raised.value)
