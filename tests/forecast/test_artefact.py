from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from base.errors import InputError
from forecast.artefact import (
    ArraySpec,
    Artefact,
    CorruptArtefact,
    ForeignArtefact,
    array_from_bytes,
    array_to_bytes,
    manifest_from_bytes,
    manifest_to_bytes,
)
from tests.forecast.artefacts import SPECS, artefact_of, manifest_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_figures_that_are_not_finite_become_null() -> None:
    manifest = replace(manifest_of(), backtest={"a": np.float32(np.nan), "b": [np.inf, np.int64(3)], "c": np.ones(2)})
    read = manifest_from_bytes(manifest_to_bytes(manifest))
    assert read.backtest == {"a": None, "b": [None, 3], "c": [1.0, 1.0]}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_an_array_survives_the_way_through_a_file(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    spec = ArraySpec("a", tuple("xyz"[: len(shape)]), "1", dtype=dtype)
    read = array_from_bytes(array_to_bytes(array), spec, shape)
    assert read.dtype == np.dtype(dtype)
    assert np.array_equal(read, array)
    assert not read.flags.writeable


def test_memory_order_and_byte_order_do_not_matter() -> None:
    array = np.arange(6, dtype=">f4").reshape(2, 3).T
    spec = ArraySpec("a", ("x", "y"), "1")
    assert np.array_equal(array_from_bytes(array_to_bytes(array), spec, (3, 2)), array)


def test_a_pickled_object_is_not_read(tmp_path: Any) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([object()], dtype=object), allow_pickle=True)
    with pytest.raises(CorruptArtefact):
        array_from_bytes(path.read_bytes(), ArraySpec("a", ("x",), "1"), (1,))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("usage", np.zeros((2, 2, 48)), "dtype float64"),
        ("usage", np.zeros((2, 2, 47), dtype=np.float32), "shape"),
        ("usage", np.full((2, 2, 48), np.inf, dtype=np.float32), "infinite"),
        ("node_base", np.full((2, 2), np.nan), "finite"),
    ],
)
def test_arrays_that_contradict_the_manifest_are_refused(name: str, array: Any, message: str) -> None:
    arrays = {**artefact_of(1).arrays, name: array}
    with pytest.raises(CorruptArtefact, match=message):
        Artefact(manifest_of(), arrays)


def test_arrays_must_be_exactly_the_declared_ones() -> None:
    arrays = dict(artefact_of(1).arrays)
    arrays["extra"] = arrays.pop("replicas")
    with pytest.raises(CorruptArtefact, match="replicas"):
        Artefact(manifest_of(), arrays)


@pytest.mark.parametrize("name", ["../evil", "a/b", "A", "", "manifest.json", "a\n", ".", "con:"])
def test_an_array_name_cannot_leave_its_directory(name: str) -> None:
    with pytest.raises(CorruptArtefact, match="array name"):
        ArraySpec(name, (), "1")


def test_a_newer_schema_is_foreign() -> None:
    document = json.loads(manifest_to_bytes(manifest_of())) | {"schema_version": 2}
    with pytest.raises(ForeignArtefact, match="schema version 2"):
        manifest_from_bytes(json.dumps(document).encode())


def test_other_json_is_foreign() -> None:
    with pytest.raises(ForeignArtefact):
        manifest_from_bytes(b'{"name": "some other manifest"}')


@given(key=st.sampled_from(sorted(json.loads(manifest_to_bytes(manifest_of())))), value=JSON)
def test_a_manifest_with_a_wrong_field_is_refused_in_one_sentence_or_read(key: str, value: Any) -> None:
    document = json.loads(manifest_to_bytes(manifest_of())) | {key: value}
    with contextlib.suppress(InputError):
        manifest_from_bytes(json.dumps(document).encode())


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        manifest_from_bytes(content)
    with pytest.raises(InputError):
        array_from_bytes(content, SPECS[0], (2, 2, 48))


@given(st.data())
def test_a_garbled_array_header_is_refused_or_harmless(data: st.DataObject) -> None:
    array = np.ones((2, 2, 48), dtype=np.float32)
    content = bytearray(array_to_bytes(array))
    position = data.draw(st.integers(0, 127))
    content[position] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptArtefact):
        assert np.array_equal(array_from_bytes(bytes(content), SPECS[0], (2, 2, 48)), array)
