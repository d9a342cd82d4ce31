"""Publishing to an object store that throttles, hangs, lists late or lost its bucket, by s3fs over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from base.errors import PublishError, StoreError
from base.object_store import open_store
from forecast.published_models import Registry
from testing.servers.object_store import Fault, ObjectStoreServer, Request
from tests.forecast.artefacts import artefact_of, value_of
from trainer.run_lease import LeaseLost, hold_lease


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStoreServer]:
    import s3fs

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 3)
    monkeypatch.setattr(s3fs.S3FileSystem, "read_timeout", 0.5)
    with ObjectStoreServer() as running:
        yield running


@pytest.fixture
def registry(store: ObjectStoreServer) -> Registry:
    made = Registry(store.url, keep=2, leftover_age=timedelta(0))
    made.publish(artefact_of(1))
    return made


def test_throttled_requests_are_asked_again(store: ObjectStoreServer, registry: Registry) -> None:
    slow: set[tuple[str, str]] = set()

    def first_time(request: Request) -> Fault | None:
        asked = (request.method, request.key)
        is_new = asked not in slow and request.method == "PUT"
        slow.add(asked)
        return Fault(status=503) if is_new else None

    store.arm(first_time)
    registry.publish(artefact_of(2))
    assert value_of(registry.load()) == 2
    assert len(slow) > 5


def test_a_store_that_lists_late_takes_a_model_all_the_same(store: ObjectStoreServer, registry: Registry) -> None:
    """Failed before: the model was read back by way of a listing, and refused."""
    store.freeze_listings()
    version = registry.publish(artefact_of(2))
    assert registry.latest() == version
    assert value_of(Registry(store.url).load()) == 2
    store.freeze_listings(False)
    registry.publish(artefact_of(3))
    assert len(registry.versions()) == 2


def test_a_version_is_not_missing_because_the_store_gives_no_answer(
    store: ObjectStoreServer, registry: Registry
) -> None:
    """Failed before: NoModel, for which a reader refuses the version for ten minutes."""
    store.arm(lambda request: Fault(status=403) if request.method == "HEAD" else None)
    with pytest.raises(StoreError):
        registry.load()


def test_latest_may_arrive_at_an_object_store_after_its_publisher_gave_up() -> None:
    """Failed before: the version that it names had been removed, and there was no model to load."""
    registry = Registry("memory://bucket/late", keep=2)
    registry.publish(artefact_of(1))
    put, late = registry._store.put, dict[str, bytes]()

    def slow(name: str, content: bytes) -> None:
        if name != "latest.json":
            return put(name, content)
        late[name] = content
        raise StoreError(f"{name}: no answer")

    registry._store.put = slow  # type: ignore[method-assign]
    with pytest.raises(PublishError, match="no answer"):
        registry.publish(artefact_of(2))
    registry._store.put = put  # type: ignore[method-assign]
    registry._store.put("latest.json", late["latest.json"])
    assert value_of(registry.load()) == 2
    registry.publish(artefact_of(3))
    assert len(registry.versions()) == 2


def test_a_large_array_is_one_request(store: ObjectStoreServer) -> None:
    """Failed before: s3fs sent it in parts, and those of a killed writer stayed, unseen and paid for."""
    store.arm()
    open_store(store.url).put("version/usage.npy", bytes(101 * 2**20))
    assert [request.method for request in store.seen if request.key] == ["PUT"]
    assert not store.uploads


def test_a_bucket_that_is_gone_is_a_store_error(store: ObjectStoreServer, registry: Registry) -> None:
    """Failed before: `put` raised FileNotFoundError, which `train` reported as a mistake of its own."""
    store.arm(lambda request: Fault(status=404) if request.method == "PUT" else None)
    with pytest.raises(StoreError):
        open_store(store.url).put("version/usage.npy", b"content")
    with pytest.raises(PublishError, match="stays in use"):
        registry.publish(artefact_of(2))


def test_a_run_that_lost_its_lease_while_it_uploaded_puts_nothing_to_use(
    store: ObjectStoreServer, registry: Registry
) -> None:
    """Failed before: the lease was only checked before the upload began."""
    with hold_lease(store.url, sleep=lambda seconds: None) as check:

        def check_late() -> None:
            open_store(store.url).put("train-lease-00000002.json", b"{}")
            check()

        with pytest.raises(LeaseLost):
            registry.publish(artefact_of(2), before_use=check_late)
    assert value_of(registry.load()) == 1
    assert len(registry.versions()) == 1
