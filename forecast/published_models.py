"""Published models: where they are, which one is in use, and how to go back. The only I/O of the forecast package.

    <store>/latest.json                  which version is in use, and which were before it
    <store>/<version>/<array>.npy        written first
    <store>/<version>/manifest.sig       if a private key is configured
    <store>/<version>/manifest.json      written last: a version is complete once this is there

`latest.json` is replaced in one write after the new version has been read back and checked, so that a publisher may be
killed, or its disk be full, at any point: readers see the old model or the new one. What a killed publisher left behind
is never loaded and is removed by a later publish.

A version is named <UTC time>-<start of the manifest's SHA-256>: names sort by time, and a version renamed or mixed with
another is noticed even without a signature. Signatures stop forgeries, but a writer of the store can point latest.json
to an older signed version; the model's age, exported as a metric, shows that.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from base.errors import ForecastError, PublishError, StoreError
from base.object_store import LocalStore, open_store
from base.redaction import redacted
from forecast import signature
from forecast.artefact import (
    FORMAT,
    Artefact,
    CorruptArtefact,
    FileDigest,
    ForeignArtefact,
    Manifest,
    NoModel,
    UnsignedArtefact,
    array_from_bytes,
    array_to_bytes,
    file_name,
    manifest_from_bytes,
    manifest_to_bytes,
    sha256,
)

logger = logging.getLogger(__name__)

LATEST, MANIFEST, SIGNATURE = "latest.json", "manifest.json", "manifest.sig"

# Bytes. A writer of the store must not make its readers run out of memory before they check a signature: 50,000
# services are 3 MB of manifest. How large an array may be, the manifest says.
_LIMITS = {LATEST: 2**20, MANIFEST: 64 * 2**20, SIGNATURE: 2**10}

_TIME_FORMAT = "%Y%m%dT%H%M%S%fZ"
_VERSION = re.compile(r"(\d{8}T\d{12}Z)-([0-9a-f]{16})\Z")
_ATTEMPTS = 3  # a reader may lose a race against publishing and pruning this often


@dataclass(frozen=True, slots=True)
class _Latest:
    """latest.json: versions that are or were in use with the digest of their manifests, the current one last."""

    history: tuple[tuple[str, str], ...]

    @property
    def version(self) -> str:
        return self.history[-1][0]


class Registry:
    """The models at a path or fsspec URL. shown: that URL without user and password, for people.

    public_key   : PEM, of one key or of several; when set, models without a valid signature of one are refused
    private_key  : PEM; when set, models are signed
    keep         : complete versions that pruning leaves, at least the current and the one before it
    leftover_age : how old the remains of an unfinished publish must be before they are removed; longer than any publish
    clock        : the current time, for version names and ages
    """

    def __init__(
        self,
        url: str,
        *,
        public_key: bytes | None = None,
        private_key: bytes | None = None,
        keep: int = 7,
        leftover_age: timedelta = timedelta(hours=24),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.url, self.shown = str(url), redacted(str(url))
        self._store = open_store(self.url)
        self._public_key, self._private_key = public_key, private_key
        self._keep, self._leftover_age, self._clock = max(keep, 2), leftover_age, clock

    # Reading

    def now(self) -> datetime:
        """What the clock says that versions are named by."""
        return self._clock().astimezone(UTC)

    def load(self, version: str | None = None) -> Artefact:
        """A published model, fully checked; the one in use by default.

        Raises NoModel, CorruptArtefact, ForeignArtefact or UnsignedArtefact, or StoreError if the store cannot be
        reached; nothing is changed.
        """
        if version is not None:
            return self._read(version, None)
        for attempt in range(_ATTEMPTS):
            latest = self._latest()
            if latest is None:
                raise NoModel(
                    f"no model has been published at {self.shown}: run forecast-scheduler train --models {self.shown}"
                )
            try:
                return self._read(*latest.history[-1])
            except (NoModel, CorruptArtefact):
                # Two publishes may have passed between the two reads and the second have pruned this version.
                if attempt == _ATTEMPTS - 1 or self._latest() == latest:
                    raise
        raise AssertionError("unreachable")

    def latest(self) -> str | None:
        """The version in use, without loading it; None if nothing has been published. Cheap enough for polling."""
        latest = self._latest()
        return latest.version if latest else None

    def versions(self) -> list[str]:
        """All complete versions, oldest first, whether or not they were ever in use."""
        return sorted(version for version in self._directories() if MANIFEST in self._store.files(version))

    # Writing

    def publish(self, artefact: Artefact, *, before_use: Callable[[], None] = lambda: None) -> str:
        """Store a model as a new version and put it to use; returns the version.

        before_use : raises where this process must not publish any more; uploading may have taken long
        Raises PublishError if the store cannot be written; the model in use before is then still in use.
        """
        try:
            return self._publish(artefact, before_use)
        except StoreError as error:
            raise PublishError(
                f"the model could not be published to {self.shown} ({error}); the model in use before stays in use: "
                "free space or check the permissions, then publish again"
            ) from error

    def rollback(
        self, version: str | None = None, *, before_use: Callable[[Artefact], object] = lambda artefact: None
    ) -> str:
        """Put an older model to use again, by default the one in use before the current; returns its version.

        before_use : raises where services would refuse the model
        The model is loaded and checked first. The version left behind is not deleted.
        """
        latest = self._latest_or_none()
        history = latest.history if latest else ()
        if version is None:
            if len(history) < 2:
                raise NoModel(
                    f"no model was in use before the current one at {self.shown}: name one of {self.versions()}"
                )
            version = history[-2][0]
        before_use(self._read(version, None))
        pinned = [entry for entry in history if entry[0] == version]
        if pinned:
            history = history[: history.index(pinned[0]) + 1]
        else:
            history = (*history, (version, sha256(self._file(version, MANIFEST, _LIMITS[MANIFEST]))))
        try:
            self._store.put(LATEST, _latest_to_bytes(_Latest(history[-self._keep :])))
        except StoreError as error:
            raise PublishError(f"{self.shown} could not be written ({error}); nothing has changed") from error
        logger.info("rolled back", extra={"version": version})
        return version

    def prune(self) -> list[str]:
        """Delete versions beyond `keep` and what unfinished publishes left; returns the names deleted."""
        latest = self._latest_or_none()
        complete = self.versions()
        protected = {*complete[-self._keep :], *(v for v, _ in (latest.history[-self._keep :] if latest else ()))}
        now = self._clock()
        oldest, newest = now - self._leftover_age, now + self._leftover_age  # beyond that, the clock was wrong
        doomed = [
            version
            for version in self._directories()
            if version not in protected and (version in complete or not oldest <= _time_of(version) <= newest)
        ]
        for version in doomed:
            # The manifest first: a version that is half deleted must not look complete.
            self._store.remove(version, MANIFEST)
        self._store.remove_leftovers(oldest.timestamp())
        return doomed

    # Inside

    def _publish(self, artefact: Artefact, before_use: Callable[[], None]) -> str:
        if self._public_key is not None and self._private_key is None:
            raise UnsignedArtefact(
                "a public key is configured but no private key to sign with: configure both to publish"
            )
        # Arrays are encoded twice, here and below: the name of the version depends on all digests, and holding every
        # encoded array would double the memory of a large model.
        manifest = replace(
            artefact.manifest,
            files={
                file_name(spec): _digest(array_to_bytes(artefact.arrays[spec.name]))
                for spec in artefact.manifest.arrays
            },
            published=self._next_time(),
            nonce=secrets.token_hex(8),
        )
        manifest_bytes = manifest_to_bytes(manifest)
        version = _version_of(manifest, manifest_bytes)
        may_arrive = False
        try:
            for spec in manifest.arrays:
                self._store.put(f"{version}/{file_name(spec)}", array_to_bytes(artefact.arrays[spec.name]))
            if self._private_key is not None:
                self._store.put(f"{version}/{SIGNATURE}", signature.sign(manifest_bytes, self._private_key))
            self._store.put(f"{version}/{MANIFEST}", manifest_bytes)
            # Read back what readers will read: a store that lost bytes is found before a reader depends on it.
            self._read(version, sha256(manifest_bytes))
            before_use()
            before = self._latest_or_none()
            history = (*(before.history if before else ()), (version, sha256(manifest_bytes)))
            # An object store may do later what it has not answered, and the version must be there then.
            may_arrive = not isinstance(self._store, LocalStore)
            self._store.put(LATEST, _latest_to_bytes(_Latest(history[-self._keep :])))
        except ForecastError as error:
            if self._abandon(version, remove=not may_arrive):
                if isinstance(error, CorruptArtefact | NoModel):
                    raise StoreError(f"what was written reads back differently: {error}") from error
                raise
        logger.info("published", extra={"version": version, "url": self.shown})
        try:
            self.prune()
        except StoreError as error:
            logger.warning("old versions could not be removed", extra={"url": self.shown, "error": str(error)})
        return version

    def _abandon(self, version: str, *, remove: bool) -> bool:
        """Remove what a failed publish wrote, or leave it to a later prune; returns False if it is in use after all:
        the last write was the error."""
        try:
            latest = self._latest()
        except (StoreError, CorruptArtefact, ForeignArtefact):
            return True  # nothing is known about what is in use: leave everything to a later prune
        if latest is not None and latest.version == version:
            return False
        try:
            if remove:
                self._store.remove(version, MANIFEST)
        except StoreError:
            logger.warning("remains of a failed publish could not be removed", extra={"version": version})
        return True

    def _next_time(self) -> datetime:
        """Now, or just after the newest version: names must sort by time even if the clock went back."""
        now = self.now()
        newest = max((_time_of(version) for version in self._directories()), default=now)
        return max(now, newest + timedelta(microseconds=1))

    def _directories(self) -> list[str]:
        return [name for name in self._store.directories() if _VERSION.match(name)]

    def manifest(self, version: str) -> Manifest:
        """Read and check everything about a version but its arrays. Raises StoreError, which NoModel is."""
        with self._refusing(version):
            return self._manifest(version, None)

    def _read(self, version: str, manifest_sha256: str | None) -> Artefact:
        """Load and check one version; `manifest_sha256` is what latest.json says about it."""
        with self._refusing(version):
            manifest = self._manifest(version, manifest_sha256)
            declared = {file_name(spec) for spec in manifest.arrays}
            if declared != set(manifest.files):
                raise CorruptArtefact(f"{MANIFEST} lists files that do not match its arrays")
            arrays = {}
            for spec in manifest.arrays:
                expected = manifest.files[file_name(spec)]
                content = self._file(version, file_name(spec), expected.n_bytes)
                if len(content) != expected.n_bytes:
                    raise CorruptArtefact(f"{file_name(spec)} has {len(content)} bytes instead of {expected.n_bytes}")
                if sha256(content) != expected.sha256:
                    raise CorruptArtefact(f"{file_name(spec)} has been altered since it was published")
                arrays[spec.name] = array_from_bytes(content, spec, manifest.shape(spec))
            return Artefact(manifest, arrays, version)

    def _manifest(self, version: str, manifest_sha256: str | None) -> Manifest:
        # Not by a listing: some stores list what is new only later.
        if not _VERSION.match(version) or not self._store.exists(f"{version}/{MANIFEST}"):
            complete = self.versions()[-5:]
            raise NoModel(f"{self.shown} has no model version {version!r}; complete versions are {complete}")
        manifest_bytes = self._file(version, MANIFEST, _LIMITS[MANIFEST])
        if manifest_sha256 is not None and sha256(manifest_bytes) != manifest_sha256:
            raise CorruptArtefact(f"{MANIFEST} is not the one that was published")
        self._check_signature(version, manifest_bytes)
        manifest = manifest_from_bytes(manifest_bytes)
        if version != _version_of(manifest, manifest_bytes):
            raise CorruptArtefact(f"{MANIFEST} belongs to another version")
        return manifest

    @contextmanager
    def _refusing(self, version: str) -> Iterator[None]:
        """Name the version and the way out in errors about its files."""
        try:
            yield
        except (CorruptArtefact, ForeignArtefact, UnsignedArtefact) as error:
            raise type(error)(
                f"model {version} at {self.shown} is refused: {error}; roll back to another version or train again"
            ) from error

    def _check_signature(self, version: str, manifest_bytes: bytes) -> None:
        if self._public_key is None:
            return
        try:
            found = self._store.get(f"{version}/{SIGNATURE}", _LIMITS[SIGNATURE])
        except FileNotFoundError as error:
            raise UnsignedArtefact(
                "it carries no signature, and a public key is configured (publish with the private key)"
            ) from error
        if not signature.is_valid(found, manifest_bytes, self._public_key):
            raise UnsignedArtefact("its signature is not that of the configured public key")

    def _file(self, version: str, name: str, at_most: int) -> bytes:
        try:
            content = self._store.get(f"{version}/{name}", at_most)
        except FileNotFoundError as error:
            raise CorruptArtefact(f"{name} is missing") from error
        if len(content) > at_most:
            raise CorruptArtefact(f"{name} has more than {at_most} bytes")
        return content

    def _latest(self) -> _Latest | None:
        try:
            content = self._store.get(LATEST, _LIMITS[LATEST])
        except FileNotFoundError:
            return None
        return _latest_from_bytes(content, self.shown)

    def _latest_or_none(self) -> _Latest | None:
        """For writers: an unreadable latest.json is about to be replaced and must not stop that."""
        try:
            return self._latest()
        except (CorruptArtefact, ForeignArtefact) as error:
            logger.warning("latest.json is not readable", extra={"url": self.shown, "error": str(error)})
            return None


def _digest(content: bytes) -> FileDigest:
    return FileDigest(len(content), sha256(content))


def _version_of(manifest: Manifest, manifest_bytes: bytes) -> str:
    if manifest.published is None:
        raise CorruptArtefact(f"{MANIFEST} does not say when it was published")
    return f"{manifest.published.astimezone(UTC).strftime(_TIME_FORMAT)}-{sha256(manifest_bytes)[:16]}"


def _time_of(version: str) -> datetime:
    return datetime.strptime(version.partition("-")[0], _TIME_FORMAT).replace(tzinfo=UTC)


def _latest_to_bytes(latest: _Latest) -> bytes:
    version, digest = latest.history[-1]
    document = {
        "format": FORMAT,
        "version": version,
        "manifest_sha256": digest,
        "before": [{"version": v, "manifest_sha256": d} for v, d in latest.history[:-1]],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def _latest_from_bytes(content: bytes, url: str) -> _Latest:
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise ForeignArtefact(f"{url}/{LATEST} does not say format {FORMAT!r}: this is not a store of our models")
        entries = [*document["before"], document]
        history = tuple((entry["version"], entry["manifest_sha256"]) for entry in entries)
        if not all(_VERSION.match(version) and isinstance(digest, str) for version, digest in history):
            raise ValueError("not a version")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptArtefact(
            f"{url}/{LATEST} is not readable ({error!r}): name a version to roll back to, or train again"
        ) from error
    return _Latest(history)
