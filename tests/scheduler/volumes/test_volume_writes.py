"""What a pod's claims are to get on its node."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from placement.filters.volume_binding import VolumeBinding
from scheduler.binding.volume_binder import node_patch, reference_patch, version_in
from scheduler.binding.volume_progress import VolumeChoice, volume_choice
from tests.placement.storage_manifests import claim, volume
from tests.scheduler.volumes.volume_world import SELECTED, World, local, waiting


def chosen(world: World, node: str, *claims: str) -> tuple[dict[str, str], set[str]]:
    """Volumes by claim, and the claims to be provisioned for."""
    choice = volume_choice(world.pod("p", *claims), node, world.cluster.view)
    assert isinstance(choice, VolumeChoice) and choice.node == node
    return {one.claim.name: one.volume.name for one in choice.existing}, {o.claim.name for o in choice.to_provision}


def test_nothing_to_do() -> None:
    world = World(claim("bound", storage_class="local", volume="pv"), volume("pv", claim="bound"))
    assert volume_choice(world.pod("p"), "a", world.cluster.view) is None
    assert volume_choice(world.pod("q", "bound"), "a", world.cluster.view) is None
    assert volume_choice(world.pod("r", "there-is-none"), "a", world.cluster.view) is None


def test_what_the_node_cannot_give() -> None:
    world = World(waiting("data"), local("a-1", "a"))
    pod = world.pod("p", "data")
    assert volume_choice(pod, "b", world.cluster.view) == "node(s) didn't find available persistent volumes to bind"
    assert volume_choice(pod, "gone", world.cluster.view) == "node gone is gone"


def test_what_is_written_already_is_not_written_again() -> None:
    kept = local("a-1", "a")
    kept["spec"]["claimRef"] = {"namespace": "default", "name": "data", "uid": "uid-data"}
    world = World(waiting("data"), waiting("made", "made", annotations={SELECTED: "a"}), kept)
    choice = volume_choice(world.pod("p", "data", "made"), "a", world.cluster.view)
    assert isinstance(choice, VolumeChoice)
    assert [one.chosen for one in choice.all] == [None, None]


def test_bodies() -> None:
    kept = local("a-2", "a")
    kept["spec"]["claimRef"] = {"namespace": "default", "name": "kept"}
    world = World(waiting("data"), waiting("kept"), waiting("made", "made"), local("a-1", "a"), kept)
    choice = volume_choice(world.pod("p", "data", "kept", "made"), "a", world.cluster.view)
    assert isinstance(choice, VolumeChoice)
    path, body = node_patch(choice.to_provision[0], "a")
    assert path == "/api/v1/namespaces/default/persistentvolumeclaims/made"
    assert json.loads(body) == {
        "metadata": {"uid": "uid-made", "resourceVersion": "10", "annotations": {SELECTED: "a"}}
    }
    bodies = {path: json.loads(body) for path, body in map(reference_patch, choice.existing)}
    free, reserved = bodies["/api/v1/persistentvolumes/a-1"], bodies["/api/v1/persistentvolumes/a-2"]
    assert free["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert free["spec"]["claimRef"] == {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "data",
        "uid": "uid-data", "resourceVersion": "10",
    }  # fmt: skip
    assert "annotations" not in reserved["metadata"] and reserved["spec"]["claimRef"]["uid"] == "uid-kept"


def test_versions_of_answers() -> None:
    assert version_in(b'{"metadata": {"resourceVersion": "7"}}') == "7"
    assert [version_in(body) for body in (b"", b"[]", b'{"metadata": []}', b"null")] == [""] * 4


sizes = st.integers(1, 4)


@given(st.lists(sizes, min_size=1, max_size=4), st.lists(st.tuples(st.sampled_from("ab"), sizes), max_size=6))
def test_there_is_a_choice_where_the_filter_says_so(claims: list[int], volumes: list[tuple[str, int]]) -> None:
    names = [f"c{i}" for i in range(len(claims))]
    world = World(
        *(waiting(name, size=f"{size}Gi") for name, size in zip(names, claims, strict=True)),
        *(local(f"v{i}", on, f"{size}Gi") for i, (on, size) in enumerate(volumes)),
    )
    pod = world.pod("p", *names)
    passing = world.cluster.passing(VolumeBinding(), pod)
    for node in "ab":
        choice = volume_choice(pod, node, world.cluster.view)
        assert isinstance(choice, VolumeChoice) == (node in passing)
        if isinstance(choice, VolumeChoice):
            taken = [one.volume.name for one in choice.existing]
            assert len(set(taken)) == len(taken) == len(claims)
            for one in choice.existing:
                assert volumes[int(one.volume.name[1:])][0] == node
                assert one.volume.capacity >= (one.claim.requested or 0)
