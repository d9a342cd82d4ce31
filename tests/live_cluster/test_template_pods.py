"""What templates make of pods, on a real API server: it never refuses a shaped pod that it took unshaped."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from testing.servers.control_plane.control_plane import ControlPlane
from tests.admission.templates.manifests import Manifest, template_set
from tests.admission.templates.random_templates import random_manifests, random_pod
from tests.admission.templates.shaping_pods import applied_to_pod, shaped
from tests.live_cluster.custom_resources import CustomResources


@pytest.fixture(scope="module")
def resources(plane: ControlPlane) -> Iterator[CustomResources]:
    with CustomResources(plane) as resources:
        resources.install()
        yield resources


def test_shaped_pods_are_accepted(resources: CustomResources) -> None:
    _try(resources, seeds=range(300))


def _try(resources: CustomResources, seeds: range) -> None:
    """Create each pod unshaped and shaped, as dry runs. What is stored of the shaped one needs no more shaping."""
    n_shaped = 0
    for start in range(seeds.start, seeds.stop, 500):
        rngs = [random.Random(seed) for seed in range(start, min(start + 500, seeds.stop))]
        sets = [template_set(*random_manifests(rng)) for rng in rngs]
        pods = [random_pod(rng) for rng in rngs]
        results = [shaped(pod, templates) for pod, templates in zip(pods, sets, strict=True)]
        sent = [applied_to_pod(pod, result) for pod, result in zip(pods, results, strict=True)]
        unshaped = resources.create_many(pods, dry_run=True)
        answers = resources.create_many(sent, dry_run=True)
        assert {one.status for one in unshaped} == {201}, [one.message for one in unshaped if one.status != 201][:3]
        assert {one.status for one in answers} == {201}, [one.message for one in answers if one.status != 201][:3]
        assert {one.warnings for one in answers} == {()}
        for pod, result, answer, templates in zip(sent, results, answers, sets, strict=True):
            n_shaped += result.affinity is not None
            if result.affinity is not None:
                assert _without_merged_keys(answer.body) == _without_merged_keys(pod)
            again = shaped(answer.body, templates)
            assert (again.affinity, again.annotations) == (None, {}), answer.body["spec"]["affinity"]
    assert n_shaped > len(seeds) / 3, "most of the pods must have been shaped for this to say anything"


def _without_merged_keys(pod: Manifest) -> Manifest:
    """The affinity less what the API server adds for matchLabelKeys (KEP-3633)."""
    affinity = dict(pod["spec"]["affinity"])
    for part in ("podAffinity", "podAntiAffinity"):
        for terms in affinity.get(part, {}).values():
            for weighted in terms:
                term = weighted.get("podAffinityTerm", weighted)
                keys = term.get("matchLabelKeys", ())
                selector = term["labelSelector"]
                left = [one for one in selector.get("matchExpressions", ()) if one["key"] not in keys]
                term["labelSelector"] = {**selector, "matchExpressions": left}
    return affinity
