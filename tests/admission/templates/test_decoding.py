from __future__ import annotations

import json

import pytest

from admission.templates.template_decoding import NODE_CONFIGS, object_from_manifest
from base.errors import InputError
from kube.decoding.watched_kinds import UndecodableObject, decode_watch_line
from tests.admission.templates.manifests import INVALID, VALID, Manifest, example_manifests, node_config


@pytest.mark.parametrize("what", INVALID)
def test_what_is_wrong_is_refused_and_the_field_named(what: str) -> None:
    manifest, field = INVALID[what]
    with pytest.raises(InputError) as raised:
        object_from_manifest(manifest)
    assert field in str(raised.value), str(raised.value)


@pytest.mark.parametrize("manifest", [*VALID, *example_manifests()], ids=lambda one: one["metadata"]["name"])
def test_what_is_right_is_read(manifest: Manifest) -> None:
    found = object_from_manifest(manifest)
    assert (found.name, found.problem) == (manifest["metadata"]["name"], "")


def test_a_name_is_needed_and_a_deletion_is_decoded_even_of_a_broken_object() -> None:
    with pytest.raises(UndecodableObject, match="name"):
        NODE_CONFIGS.decoded(b'{"metadata": {}, "spec": {}}')
    line = json.dumps({"type": "DELETED", "object": node_config("gone", required=5)}).encode()
    event = decode_watch_line(NODE_CONFIGS, line)
    assert event.object is not None and event.object.name == "gone"


@pytest.mark.parametrize("manifest", [None, [], "text", {}, {"kind": ["NodeSchedulerConfig"]}, {"kind": "Pod"}])
def test_another_object_is_refused_with_the_kinds_there_are(manifest: object) -> None:
    with pytest.raises(InputError, match="SchedulerConfigBinding"):
        object_from_manifest(manifest)
