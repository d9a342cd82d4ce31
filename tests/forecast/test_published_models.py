from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from base.errors import ForecastError, InputError, PublishError, StoreError
from base.object_store import TEMPORARY, LocalStore
from forecast.artefact import CorruptArtefact, ForeignArtefact, NoModel, UnsignedArtefact
from forecast.published_models import Registry
from forecast.signature import new_key_pair
from tests.forecast.artefacts import artefact_of, value_of

PRIVATE, PUBLIC = new_key_pair()
NOW = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)


@pytest.fixture(params=["directory", "file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same tests run on a directory, on a file:// URL and on an fsspec filesystem."""
    return {
        "directory": str(tmp_path / "models"),
        "file": f"file://{tmp_path}/models",
        "memory": f"memory://{uuid.uuid4()}/models",
    }[request.param]


def test_what_was_published_is_loaded(url: str) -> None:
    version = Registry(url).publish(artefact_of(7))
    loaded = Registry(url).load()
    assert value_of(loaded) == 7
    assert loaded.version == version == Registry(url).latest()
    assert loaded.manifest.services == artefact_of(7).manifest.services


def test_nothing_published_is_said_so(url: str) -> None:
    registry = Registry(url)
    assert registry.latest() is None
    assert registry.versions() == []
    with pytest.raises(NoModel, match="no model has been published"):
        registry.load()


def test_versions_sort_even_if_the_clock_goes_back(url: str) -> None:
    times = iter([NOW, NOW, NOW - timedelta(days=2), NOW - timedelta(days=2)])
    registry = Registry(url, clock=lambda: next(times))
    first, second = registry.publish(artefact_of(1)), registry.publish(artefact_of(2))
    assert first < second
    assert value_of(registry.load()) == 2


def test_rollback_goes_back_one_step_at_a_time(url: str) -> None:
    registry = Registry(url)
    published = [registry.publish(artefact_of(value)) for value in range(3)]
    assert registry.rollback() == published[1]
    assert registry.rollback() == published[0]
    assert value_of(registry.load()) == 0
    with pytest.raises(NoModel, match="no model was in use before"):
        registry.rollback()


def test_a_model_that_was_rolled_back_is_not_what_the_next_rollback_returns_to(url: str) -> None:
    registry = Registry(url)
    good = registry.publish(artefact_of(1))
    registry.publish(artefact_of(2))
    registry.rollback()
    registry.publish(artefact_of(3))
    assert registry.rollback() == good


def test_rollback_to_a_named_version(url: str) -> None:
    registry = Registry(url)
    published = [registry.publish(artefact_of(value)) for value in range(3)]
    registry.rollback(published[0])
    assert value_of(registry.load()) == 0
    registry.rollback(published[2])
    assert value_of(registry.load()) == 2


@pytest.mark.parametrize("version", ["", "..", "../models", "20261121T040000000000Z-0123456789abcdef", "/etc"])
def test_an_unknown_version_is_refused(url: str, version: str) -> None:
    registry = Registry(url)
    registry.publish(artefact_of(1))
    with pytest.raises(NoModel, match="no model version"):
        registry.load(version)
    with pytest.raises(NoModel):
        registry.rollback(version)
    assert value_of(registry.load()) == 1


def test_only_the_newest_versions_are_kept(url: str) -> None:
    registry = Registry(url, keep=3)
    published = [registry.publish(artefact_of(value)) for value in range(6)]
    assert registry.versions() == published[-3:]
    assert registry.rollback() == published[-2]


def test_a_rollback_target_outlives_pruning(url: str) -> None:
    registry = Registry(url, keep=2)
    old = registry.publish(artefact_of(0))
    registry.publish(artefact_of(1))
    registry.rollback(old)
    for value in range(2, 4):
        registry.publish(artefact_of(value))
        registry.rollback(old)
    assert value_of(registry.load()) == 0


def test_the_model_in_use_is_never_pruned_for_a_wrong_clock(url: str) -> None:
    Registry(url, clock=lambda: NOW).publish(artefact_of(1))
    Registry(url, clock=lambda: NOW + timedelta(days=3650)).prune()
    assert value_of(Registry(url).load()) == 1


def test_a_reader_that_loses_a_race_against_pruning_reads_the_newer_model(url: str) -> None:
    reader, writer = Registry(url), Registry(url, keep=2)
    writer.publish(artefact_of(0))
    get = reader._store.get

    def publish_in_between(name: str, at_most: int | None = None) -> bytes:
        content = get(name, at_most)
        reader._store.get = get  # type: ignore[method-assign]
        for value in range(1, 5):
            writer.publish(artefact_of(value))
        return content

    reader._store.get = publish_in_between  # type: ignore[method-assign]
    assert value_of(reader.load()) == 4


# Signatures


def test_an_unsigned_model_is_refused_where_a_key_is_set(url: str) -> None:
    Registry(url).publish(artefact_of(1))
    with pytest.raises(UnsignedArtefact, match="no signature"):
        Registry(url, public_key=PUBLIC).load()


def test_the_signature_of_another_version_is_refused(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path), private_key=PRIVATE, public_key=PUBLIC)
    first, second = registry.publish(artefact_of(1)), registry.publish(artefact_of(2))
    shutil.copy(tmp_path / first / "manifest.sig", tmp_path / second / "manifest.sig")
    with pytest.raises(UnsignedArtefact):
        registry.load()


def test_publishing_what_oneself_would_refuse_is_refused(url: str) -> None:
    Registry(url, private_key=PRIVATE, public_key=PUBLIC).publish(artefact_of(1))
    with pytest.raises(UnsignedArtefact, match="configure both"):
        Registry(url, public_key=PUBLIC).publish(artefact_of(2))
    with pytest.raises(UnsignedArtefact):
        Registry(url, public_key=PUBLIC, private_key=new_key_pair()[0]).publish(artefact_of(2))
    registry = Registry(url, public_key=PUBLIC)
    assert value_of(registry.load()) == 1
    assert len(registry.versions()) == 1


@pytest.mark.parametrize("key", [b"", b"no key", PUBLIC])
def test_a_bad_key_is_an_input_error(tmp_path: Path, key: bytes) -> None:
    with pytest.raises(InputError, match="key"):
        Registry(str(tmp_path), private_key=key).publish(artefact_of(1))
    Registry(str(tmp_path), private_key=PRIVATE).publish(artefact_of(1))
    if key != PUBLIC:
        with pytest.raises(InputError, match="key"):
            Registry(str(tmp_path), public_key=key).load()


# Damage


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two signed models, 1 and 2; tests that damage it put everything back."""
    root = tmp_path_factory.mktemp("store")
    registry = Registry(str(root), private_key=PRIVATE)
    registry.publish(artefact_of(1))
    registry.publish(artefact_of(2))
    return root


def files_of_latest(root: Path) -> list[Path]:
    version = json.loads((root / "latest.json").read_text())["version"]
    return sorted((root / version).iterdir())


def assert_refused_or_unharmed(root: Path, path: Path, content: bytes, public_key: bytes | None) -> None:
    """With `content` in the file the model is refused or, where the file is not needed for it, the right one."""
    original = path.read_bytes()
    path.write_bytes(content)
    try:
        value = value_of(Registry(str(root), public_key=public_key).load())
    except (CorruptArtefact, ForeignArtefact, UnsignedArtefact, NoModel):
        return
    finally:
        path.write_bytes(original)
    assert value == 2
    assert path.name == "latest.json" or (path.name == "manifest.sig" and public_key is None)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), public_key=st.sampled_from([None, PUBLIC]))
def test_no_flipped_bit_and_no_cut_or_padded_file_passes(
    store: Path, data: st.DataObject, public_key: bytes | None
) -> None:
    path = data.draw(st.sampled_from([*files_of_latest(store), store / "latest.json"]))
    content = path.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    flipped = content[:at] + bytes([content[at] ^ 1 << data.draw(st.integers(0, 7))]) + content[at + 1 :]
    padded = content + data.draw(st.binary(min_size=1, max_size=9))
    assert_refused_or_unharmed(store, path, data.draw(st.sampled_from([flipped, content[:at], padded])), public_key)


@pytest.mark.parametrize("name", ["usage.npy", "replicas.npy", "node_base.npy", "manifest.json", "manifest.sig"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    registry = Registry(str(tmp_path), private_key=PRIVATE, public_key=PUBLIC)
    version = registry.publish(artefact_of(1))
    (tmp_path / version / name).unlink()
    with pytest.raises(InputError, match=rf"{name}|no model version|no signature"):
        registry.load()


def test_a_version_directory_under_another_name_is_refused(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path))
    version = registry.publish(artefact_of(1))
    renamed = f"20301121T040000000000Z-{version[-16:]}"
    (tmp_path / version).rename(tmp_path / renamed)
    with pytest.raises(CorruptArtefact, match="another version"):
        registry.load(renamed)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"format": "other"}', b"[" * 9999]
)
def test_an_unreadable_latest_is_refused_and_healed_by_the_next_publish(tmp_path: Path, content: bytes) -> None:
    registry = Registry(str(tmp_path))
    first = registry.publish(artefact_of(1))
    (tmp_path / "latest.json").write_bytes(content)
    with pytest.raises(InputError, match=r"latest\.json"):
        registry.load()
    assert value_of(registry.load(first)) == 1
    registry.publish(artefact_of(2))
    assert value_of(registry.load()) == 2


def test_latest_cannot_point_outside_the_store(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "models"))
    version = registry.publish(artefact_of(1))
    shutil.copytree(tmp_path / "models" / version, tmp_path / version)
    latest = tmp_path / "models" / "latest.json"
    latest.write_text(latest.read_text().replace(version, f"../{version}"))
    with pytest.raises(CorruptArtefact, match=r"latest\.json"):
        registry.load()


def test_a_corrupt_model_can_be_rolled_back_from(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path))
    first, second = registry.publish(artefact_of(1)), registry.publish(artefact_of(2))
    (tmp_path / second / "usage.npy").write_bytes(b"")
    with pytest.raises(CorruptArtefact, match="roll back"):
        registry.load()
    assert registry.rollback() == first
    assert value_of(registry.load()) == 1


def test_a_corrupt_model_is_not_rolled_back_to(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path))
    first = registry.publish(artefact_of(1))
    registry.publish(artefact_of(2))
    (tmp_path / first / "usage.npy").write_bytes(b"")
    with pytest.raises(CorruptArtefact):
        registry.rollback()
    assert value_of(registry.load()) == 2


# Failing stores


def failing(call: Callable[[str, bytes], None], at: int, *, after: bool) -> Callable[[str, bytes], None]:
    """`put` that fails at its at-th call, before or after doing it."""
    calls = iter(range(1000))

    def put(name: str, content: bytes) -> None:
        fails = next(calls) == at
        if after or not fails:
            call(name, content)
        if fails:
            raise StoreError(f"{name}: connection lost")

    return put


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(6))
def test_a_store_that_fails_at_any_write_keeps_the_old_model(url: str, at: int, after: bool) -> None:
    registry = Registry(url, private_key=PRIVATE)
    old = registry.publish(artefact_of(1))
    registry._store.put = failing(registry._store.put, at, after=after)  # type: ignore[method-assign, assignment]
    if (at, after) == (5, True):
        # latest.json was written although the store said otherwise: the new model is in use and must not be removed.
        registry.publish(artefact_of(2))
        assert value_of(Registry(url, public_key=PUBLIC).load()) == 2
        return
    with pytest.raises(PublishError, match="connection lost"):
        registry.publish(artefact_of(2))
    assert value_of(Registry(url, public_key=PUBLIC).load()) == 1
    may_arrive = at == 5 and not isinstance(registry._store, LocalStore)
    assert len(Registry(url).versions()) == (2 if may_arrive else 1)
    assert Registry(url).versions()[0] == old


def test_a_store_that_loses_bytes_is_found_out_before_the_model_is_used(url: str) -> None:
    registry = Registry(url)
    registry.publish(artefact_of(1))
    put = registry._store.put

    def lossy(name: str, content: bytes) -> None:
        put(name, content[:-1] if "usage" in name else content)

    registry._store.put = lossy  # type: ignore[method-assign]
    with pytest.raises(PublishError, match="reads back differently"):
        registry.publish(artefact_of(2))
    assert value_of(registry.load()) == 1


def test_a_path_that_is_a_file_is_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "models"
    path.write_text("not a directory")
    with pytest.raises(PublishError, match="models"):
        Registry(str(path)).publish(artefact_of(1))
    with pytest.raises(ForecastError):
        Registry(str(path)).load()


def test_leftovers_are_removed_once_they_are_old(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path), clock=lambda: NOW)
    registry.publish(artefact_of(1))
    half = tmp_path / "20261119T040000000000Z-0123456789abcdef"
    young = tmp_path / "20261121T030000000000Z-0123456789abcdef"
    stranger = tmp_path / "notes"
    for directory in (half, young, stranger):
        directory.mkdir()
        (directory / "usage.npy").write_bytes(b"half")
    registry.publish(artefact_of(2))
    assert not half.exists()
    assert young.exists(), "another publisher may be at work there"
    assert stranger.exists(), "not ours"
    assert len(registry.versions()) == 2


def test_temporary_files_of_killed_writers_are_removed_wherever_they_lie(tmp_path: Path) -> None:
    """Failed before: those beside the forecasts issued stayed for ever."""
    registry = Registry(str(tmp_path), clock=lambda: NOW)
    (tmp_path / "issued").mkdir()
    old, young = tmp_path / "issued" / f"{TEMPORARY}old", tmp_path / "issued" / f"{TEMPORARY}young"
    for path, age in ((old, timedelta(hours=25)), (young, timedelta(hours=23))):
        path.write_bytes(b"half")
        os.utime(path, times=((NOW - age).timestamp(), (NOW - age).timestamp()))
    foreign = tmp_path / "issued" / ".tmp-foreign"
    foreign.write_bytes(b"of another program")
    os.utime(foreign, times=(0, 0))
    registry.publish(artefact_of(1))
    assert not old.exists()
    assert young.exists() and foreign.exists()


def test_an_unfinished_version_of_a_clock_that_was_wrong_is_removed(tmp_path: Path) -> None:
    """Failed before: one from the future stayed until then."""
    future = tmp_path / "21000101T000000000000Z-0123456789abcdef"
    future.mkdir()
    (future / "usage.npy").write_bytes(b"half")
    Registry(str(tmp_path), clock=lambda: NOW).publish(artefact_of(1))
    assert not future.exists()
