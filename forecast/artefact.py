"""What a published model is made of: a manifest that describes itself and named arrays that match it.

    manifest.json       everything but the numbers, with the SHA-256 of every array file
    <array name>.npy    one file per array, no pickles
    manifest.sig        optional ed25519 signature of manifest.json

This file checks and converts between objects and bytes and touches no disk; `registry` stores the bytes. Which arrays a
model consists of is the model's business: it declares each as an `ArraySpec`.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from base.errors import InputError

FORMAT = "forecast-scheduler/peak-model"
SCHEMA_VERSION = 1
DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
# These axes are as long as the list of the manifest that names their entries.
AXIS_NAMES: Mapping[str, str] = {"services": "services", "nodes": "nodes", "resources": "resources"}

Array = NDArray[Any]

# Array names become file names: nothing but lower-case words, so that no manifest can point outside its directory.
_ARRAY_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")


class NoModel(InputError):
    """Nothing has been published, or the version asked for is not there."""


class CorruptArtefact(InputError):
    """A file of the artefact is missing, truncated, altered or contradicts the manifest."""


class ForeignArtefact(InputError):
    """The files are readable but are not a model of this program, or of a newer one."""


class UnsignedArtefact(InputError):
    """A public key is configured and the artefact carries no valid signature of it."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array of a model: its axes by name (outermost first), dtype and unit.

    The axes "services", "nodes" and "resources" have the length of the manifest's list of that name; any other axis is
    as long as `Manifest.axes` says. nan_allowed: NaN stands for "not measured"; infinities are never allowed.
    """

    name: str
    axes: tuple[str, ...]
    unit: str
    dtype: str = "float32"
    nan_allowed: bool = False

    def __post_init__(self) -> None:
        if not _ARRAY_NAME.match(self.name):
            raise CorruptArtefact(
                f"array name {self.name!r} is not allowed: write lower-case letters, digits and underscores"
            )
        if self.dtype not in DTYPES:
            raise CorruptArtefact(f"array {self.name} has dtype {self.dtype!r}, allowed are {', '.join(DTYPES)}")


@dataclass(frozen=True, slots=True)
class FileDigest:
    """Size and SHA-256 (hex) of one file."""

    n_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about a model but its numbers.

    trained_from, trained_until : first and last local day of the history it was fitted on, both included
    services, nodes, resources  : names along the axes of the same name; a service is written namespace/Kind/name
    axes                        : length of every other axis, e.g. {"days": 14, "slots": 48, "quantiles": 2}
    backtest                    : figures of the backtest as JSON; numbers that are not finite become null
    extra                       : whatever else the model needs to be rebuilt, as JSON
    files                       : digest of each array file; filled in when the artefact is published
    published, nonce            : likewise; they make every publication a version of its own
    """

    created: datetime
    trained_from: date
    trained_until: date
    time_zone: str
    holiday_country: str | None
    data_digest: str
    services: tuple[str, ...]
    nodes: tuple[str, ...]
    resources: tuple[str, ...]
    slots_per_day: int
    axes: Mapping[str, int]
    arrays: tuple[ArraySpec, ...]
    backtest: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, FileDigest] = field(default_factory=dict)
    published: datetime | None = None
    nonce: str = ""

    def __post_init__(self) -> None:
        names = [spec.name for spec in self.arrays]
        if len(set(names)) != len(names):
            raise CorruptArtefact("the manifest declares an array twice: every array needs a name of its own")
        for axis, list_name in AXIS_NAMES.items():
            if axis in self.axes:
                raise CorruptArtefact(f"axis {axis!r} takes its length from {list_name}: leave it out of axes")
        for spec in self.arrays:
            for axis in spec.axes:
                if axis not in AXIS_NAMES and axis not in self.axes:
                    raise CorruptArtefact(f"array {spec.name} has an axis {axis!r} that the manifest gives no length")
        for moment in (self.created, self.published):
            if moment is not None and moment.tzinfo is None:
                raise CorruptArtefact("the manifest holds a time without a time zone: write UTC times")

    def shape(self, spec: ArraySpec) -> tuple[int, ...]:
        """Shape an array must have according to its axes."""
        lengths = {axis: len(getattr(self, name)) for axis, name in AXIS_NAMES.items()} | dict(self.axes)
        return tuple(lengths[axis] for axis in spec.axes)


@dataclass(frozen=True, slots=True)
class Artefact:
    """A model ready to be published, or as it was loaded: `version` is None until it has been published.

    The arrays must be exactly the declared ones, in dtype and shape; anything else raises CorruptArtefact.
    """

    manifest: Manifest
    arrays: Mapping[str, Array]
    version: str | None = None

    def __post_init__(self) -> None:
        declared = {spec.name for spec in self.manifest.arrays}
        if declared != set(self.arrays):
            missing, unknown = sorted(declared - set(self.arrays)), sorted(set(self.arrays) - declared)
            raise CorruptArtefact(f"arrays and manifest disagree: missing {missing}, not declared {unknown}")
        for spec in self.manifest.arrays:
            _check_array(spec, self.manifest.shape(spec), self.arrays[spec.name])


def _check_array(spec: ArraySpec, shape: tuple[int, ...], array: Array) -> None:
    if array.dtype != np.dtype(spec.dtype):
        raise CorruptArtefact(f"array {spec.name} has dtype {array.dtype}, the manifest declares {spec.dtype}")
    if array.shape != shape:
        raise CorruptArtefact(
            f"array {spec.name} has shape {array.shape}, its axes ({', '.join(spec.axes)}) ask for {shape}"
        )
    if array.dtype.kind != "f":
        return
    # Block by block: a mask over the whole array would double the memory of the largest one.
    flat = array.reshape(-1)
    for start in range(0, flat.size, 1 << 20):
        block = flat[start : start + (1 << 20)]
        if (np.isinf(block) if spec.nan_allowed else ~np.isfinite(block)).any():
            what = "an infinite value" if spec.nan_allowed else "a value that is not a finite number"
            raise CorruptArtefact(f"array {spec.name} holds {what}: such a model is never published or loaded")


def file_name(spec: ArraySpec) -> str:
    """Name of the file an array is stored in."""
    return f"{spec.name}.npy"


def sha256(content: bytes) -> str:
    """Hex digest used for every file of an artefact."""
    return hashlib.sha256(content).hexdigest()


def array_to_bytes(array: Array) -> bytes:
    """An array in NumPy's file format, little-endian and C-contiguous on every machine."""
    buffer = io.BytesIO()
    contiguous = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray makes a scalar 1-dimensional
    np.lib.format.write_array(
        buffer, contiguous.astype(array.dtype.newbyteorder("<"), copy=False), version=(1, 0), allow_pickle=False
    )
    return buffer.getvalue()


def array_from_bytes(content: bytes, spec: ArraySpec, shape: tuple[int, ...]) -> Array:
    """The read-only array in a .npy file; the header is compared with the declaration before anything is allocated."""
    expected = np.dtype(spec.dtype).newbyteorder("<")
    stream = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ValueError("unknown version of the .npy format")
        with warnings.catch_warnings(action="ignore"):
            found_shape, fortran, found_dtype = np.lib.format.read_array_header_1_0(stream)
    except Exception as error:  # NumPy lets through what Python's own parser raises on a garbled header
        raise CorruptArtefact(f"{file_name(spec)} is not a readable .npy file: {error}") from error
    if fortran or found_dtype != expected or found_shape != shape:
        raise CorruptArtefact(
            f"{file_name(spec)} holds {found_dtype} {found_shape}, the manifest declares {spec.dtype} {shape}"
        )
    count = math.prod(shape)
    if len(content) - stream.tell() != count * expected.itemsize:
        raise CorruptArtefact(f"{file_name(spec)} is truncated or padded: publish the model again")
    array: Array = np.frombuffer(content, dtype=expected, count=count, offset=stream.tell()).reshape(shape)
    return array


def manifest_to_bytes(manifest: Manifest) -> bytes:
    """manifest.json, with sorted keys so that equal manifests give equal bytes."""
    document = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "created": manifest.created.astimezone(UTC).isoformat(),
        "published": manifest.published.astimezone(UTC).isoformat() if manifest.published else None,
        "nonce": manifest.nonce,
        "trained_from": manifest.trained_from.isoformat(),
        "trained_until": manifest.trained_until.isoformat(),
        "time_zone": manifest.time_zone,
        "holiday_country": manifest.holiday_country,
        "data_digest": manifest.data_digest,
        "services": list(manifest.services),
        "nodes": list(manifest.nodes),
        "resources": list(manifest.resources),
        "slots_per_day": manifest.slots_per_day,
        "axes": dict(manifest.axes),
        "arrays": [
            {
                "name": spec.name,
                "axes": list(spec.axes),
                "dtype": spec.dtype,
                "unit": spec.unit,
                "nan_allowed": spec.nan_allowed,
            }
            for spec in manifest.arrays
        ],
        "backtest": _finite_json(manifest.backtest),
        "extra": _finite_json(manifest.extra),
        "files": {name: {"bytes": f.n_bytes, "sha256": f.sha256} for name, f in manifest.files.items()},
    }
    return (json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def manifest_from_bytes(content: bytes) -> Manifest:
    """Parse manifest.json; raises ForeignArtefact or CorruptArtefact, never anything else."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CorruptArtefact(f"manifest.json is not readable JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ForeignArtefact(f"manifest.json does not say format {FORMAT!r}: this is not a model of this program")
    schema = document.get("schema_version")
    if schema != SCHEMA_VERSION:
        raise ForeignArtefact(
            f"the model has schema version {schema!r}, this program reads {SCHEMA_VERSION}: "
            "run the same release of trainer and scorer, or train again"
        )
    try:
        return _manifest(document)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptArtefact(f"manifest.json lacks a field or holds a wrong type: {error!r}") from error


def _manifest(document: Mapping[str, Any]) -> Manifest:
    published = document["published"]
    country = document["holiday_country"]
    return Manifest(
        created=datetime.fromisoformat(_text(document["created"])),
        published=None if published is None else datetime.fromisoformat(_text(published)),
        nonce=_text(document["nonce"]),
        trained_from=date.fromisoformat(_text(document["trained_from"])),
        trained_until=date.fromisoformat(_text(document["trained_until"])),
        time_zone=_text(document["time_zone"]),
        holiday_country=None if country is None else _text(country),
        data_digest=_text(document["data_digest"]),
        services=_texts(document["services"]),
        nodes=_texts(document["nodes"]),
        resources=_texts(document["resources"]),
        slots_per_day=_count(document["slots_per_day"]),
        axes={_text(axis): _count(length) for axis, length in _mapping(document["axes"]).items()},
        arrays=tuple(
            ArraySpec(
                name=_text(spec["name"]),
                axes=_texts(spec["axes"]),
                unit=_text(spec["unit"]),
                dtype=_text(spec["dtype"]),
                nan_allowed=bool(spec["nan_allowed"]),
            )
            for spec in document["arrays"]
        ),
        backtest=_mapping(document["backtest"]),
        extra=_mapping(document["extra"]),
        files={
            _text(name): FileDigest(_count(entry["bytes"]), _text(entry["sha256"]))
            for name, entry in _mapping(document["files"]).items()
        },
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return tuple(_text(entry) for entry in value)


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not an object")
    return value


def _finite_json(value: Any) -> Any:
    """The value as plain JSON: NumPy numbers become Python's, NaN and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): _finite_json(entry) for key, entry in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return _finite_json(value.tolist())
    if isinstance(value, Sequence):
        return [_finite_json(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
