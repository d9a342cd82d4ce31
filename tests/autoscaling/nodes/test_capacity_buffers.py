"""Buffers on an API server that has CapacityBuffers: written, resized, taken back, whatever happens in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from autoscaling.autoscale_settings import BufferKind, BufferOptions
from autoscaling.nodes.buffer_hand import BufferHand
from kube.objects.constraints import NodeSelectorTerm, Operator, PodConstraints, Requirement, Toleration
from kube.session.api_session import ApiSession
from testing.constants import with_constants
from testing.servers.control_plane.control_plane import ControlPlane
from tests.autoscaling.conftest import Api, refusal
from tests.autoscaling.nodes.conftest import CAPACITY_BUFFERS, DEPLOYMENTS, POD_TEMPLATES
from tests.autoscaling.nodes.made_up import GIB, at, ramp, services_ahead
from tests.autoscaling.sessions import Counting, Killed

pytestmark = pytest.mark.usefixtures("with_capacity_buffers")

OPTIONS = with_constants(BufferOptions(), lead=1800, margin=0.0, most_share=1.0)
CONSTRAINED: dict[str, Any] = {
    "requests": {"cpu": 1.0, "memory": GIB, "nvidia.com/gpu": 1.0},
    "constraints": PodConstraints(
        node_selector=(("pool", "shop"),),
        required_node_terms=(NodeSelectorTerm((Requirement("zone", Operator.IN, ("a", "b")),)),),
        tolerations=(Toleration("pool", "Equal", "shop", "NoSchedule"), Toleration("", "Exists", "", "")),
    ),
}
AHEAD = services_ahead([15, 15], [ramp(10, 30), ramp(10, 30)], pods=[{}, CONSTRAINED])
VALLEY, RAMP = at(3), at(8.5)


@pytest.fixture(autouse=True)
def empty(api: Api) -> Iterator[None]:
    yield
    for path in (CAPACITY_BUFFERS, POD_TEMPLATES, DEPLOYMENTS):
        api.request("DELETE", path)


def sizes(api: Api) -> list[int]:
    """Chunks of all buffers; each must have the template that it names."""
    found = api.items(CAPACITY_BUFFERS)
    templates = {one["metadata"]["name"] for one in api.items(POD_TEMPLATES)}
    assert {one["spec"]["podTemplateRef"]["name"] for one in found} <= templates
    return sorted(one["spec"]["replicas"] for one in found)


def test_buffers_are_written_resized_and_taken_back(api: Api) -> None:
    counting = Counting(api.session)
    hand = BufferHand(counting, OPTIONS)
    for _ in range(2):  # what is right already is not written again
        api.run(hand.act(AHEAD, RAMP))
        assert sizes(api) == [5, 5] and sorted(hand.chunks.values()) == [5, 5]
        assert counting.writes == 4
    api.run(hand.act(AHEAD, VALLEY))
    assert sizes(api) == [0, 0]
    api.run(hand.act(services_ahead([15], [ramp(10, 30)]), RAMP))
    assert sizes(api) == [5] and len(api.items(POD_TEMPLATES)) == 1, "a service that is gone takes its buffer along"
    api.run(hand.retreat())
    assert api.items(CAPACITY_BUFFERS) == api.items(POD_TEMPLATES) == []
    api.run(hand.retreat())


def test_the_template_says_what_decides_the_node(api: Api) -> None:
    api.run(BufferHand(api.session, OPTIONS).act(AHEAD, RAMP))
    specs = [one["template"]["spec"] for one in api.items(POD_TEMPLATES)]
    (constrained,) = [spec for spec in specs if "nodeSelector" in spec]
    assert constrained["nodeSelector"] == {"pool": "shop"}
    required = constrained["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    ]
    assert {"operator": "Exists"} in constrained["tolerations"]
    requests = constrained["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "1", "memory": "1100M", "nvidia.com/gpu": "1"}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", range(4))
def test_another_goes_on_after_a_kill_at_any_write(api: Api, dies_at: int, after: bool) -> None:
    with pytest.raises(Killed):
        api.run(BufferHand(Counting(api.session, dies_at=dies_at, after=after), OPTIONS).act(AHEAD, RAMP))
    sizes(api)  # at no time a buffer without its template
    api.run(BufferHand(api.session, OPTIONS).act(AHEAD, RAMP))
    assert sizes(api) == [5, 5]
    with pytest.raises(Killed):
        api.run(BufferHand(Counting(api.session, dies_at=dies_at, after=after), OPTIONS).retreat())
    sizes(api)
    api.run(BufferHand(api.session, OPTIONS).retreat())
    assert api.items(CAPACITY_BUFFERS) == api.items(POD_TEMPLATES) == []


def test_two_at_once_agree(api: Api) -> None:
    for now, wanted in ((RAMP, [5, 5]), (VALLEY, [0, 0]), (RAMP, [5, 5])):
        both = [api.session.submit(BufferHand(api.session, OPTIONS).act(AHEAD, now)) for _ in range(2)]
        for one in both:
            one.result(60)
        api.run(BufferHand(api.session, OPTIONS).act(AHEAD, now))
        assert sizes(api) == wanted


def test_buffers_of_others_stay_untouched(api: Api) -> None:
    theirs = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "theirs", "labels": {"app.kubernetes.io/managed-by": "forecast-scheduler"}},
        "spec": {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "shop"}, "percentage": 20},
    }
    made = api.request("POST", CAPACITY_BUFFERS, theirs)
    hand = BufferHand(api.session, OPTIONS)
    api.run(hand.act(AHEAD, RAMP))
    api.run(hand.retreat())
    assert [one["metadata"]["resourceVersion"] for one in api.items(CAPACITY_BUFFERS)] == [
        made["metadata"]["resourceVersion"]
    ]


def test_an_object_of_others_with_our_name_is_an_error_that_names_it(api: Api) -> None:
    hand = BufferHand(api.session, OPTIONS)
    api.run(hand.act(AHEAD, RAMP))
    name = api.items(CAPACITY_BUFFERS)[0]["metadata"]["name"]
    api.request("PATCH", f"{CAPACITY_BUFFERS}/{name}", {"metadata": {"labels": None}}, merge=True)
    assert f"another CapacityBuffer {name}, without our labels" in refusal(api.session, hand.act(AHEAD, VALLEY))


def test_a_new_chunk_size_changes_the_template_and_placeholders_are_replaced(api: Api) -> None:
    api.run(BufferHand(api.session, OPTIONS.replace(kind=BufferKind.AUTO)).act(AHEAD, RAMP))
    larger = services_ahead([15, 15], [ramp(10, 30)] * 2, cpu=[2.0, 2.0])
    api.run(BufferHand(api.session, OPTIONS).act(larger, RAMP))
    (template,) = api.items(POD_TEMPLATES)
    assert template["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert sizes(api) == [10]


def test_no_rights_is_an_error_with_the_way_out(api: Api, powerless: ApiSession) -> None:
    text = refusal(powerless, BufferHand(powerless, OPTIONS).act(AHEAD, RAMP))
    assert "forbidden" in text and "autoscaler-writes/rbac.yaml" in text


def test_after_a_restart_of_the_api_server_it_goes_on(plane: ControlPlane, api: Api) -> None:
    hand = BufferHand(api.session, OPTIONS, seconds=2)
    api.run(hand.act(AHEAD, RAMP))
    plane.api_server.stop()
    assert "tried again" in refusal(api.session, hand.act(AHEAD, VALLEY))
    plane.api_server.start()
    api.run(hand.act(AHEAD, VALLEY))
    assert sizes(api) == [0, 0]
