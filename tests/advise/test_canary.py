"""A kube-scheduler that does not follow nominations is found out, and held pods prefer their nodes instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from placement.gate_exemptions import ADVICE
from placement.preferred_nodes import PREFERRED
from testing.clusters.advised_site import Site, note_of
from testing.processes.scorer_process import ScorerProcess
from testing.processes.webhook_process import Api
from testing.servers.cluster_objects import Manifest
from testing.servers.control_plane.kube_scheduler import KubeScheduler
from testing.servers.probe_extender import ProbeExtender
from testing.waiting import eventually
from tests.advise.conftest import Started


class Heed(ProbeExtender):
    """A nominated node is tried alone, before the others: this extender rejects it unless nominations are heeded."""

    is_heeded = False

    def answer(self, verb: str, arguments: dict[str, Any]) -> Any:
        nodes = arguments["NodeNames"]
        return {"NodeNames": nodes if self.is_heeded or len(nodes) > 1 else [], "FailedNodes": {}}


@pytest.fixture
def heed(site: Site) -> Iterator[Heed]:
    with Heed() as extender, KubeScheduler(site.plane, [extender.settings("filter")]):
        yield extender


def _terms(pod: Manifest) -> list[Any]:
    return list(pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(PREFERRED, []))


def _until(site: Site, process: ScorerProcess, prefix: str, followed: float) -> None:
    """Create pods one after the other until the advisor says so."""
    for i in range(400):
        if process.metric("forecast_nominations_followed") == followed:
            return
        site.pods(f"{prefix}-{i}", len(site.sets))
        site.await_bound(len(site.sets), f"{prefix}-{i}-", log=lambda: process.log)
        eventually(lambda: process.metric("forecast_nominations_followed") == followed, 0.3)
    raise AssertionError(process.log)


def test_preferences_take_over_where_kube_scheduler_does_not_follow(site: Site, start: Started, heed: Heed) -> None:
    process, n_pods = start(), 24
    _until(site, process, "canary", 0.0)
    assert "nominations are not followed" in process.log
    assert process.metric('forecast_canaries_total{outcome="elsewhere"}') >= 3
    canaries = [one for one in site.stored("canary") if note_of(one).get("mode") == "canary"]
    assert canaries and all(_node_of(_terms(one)[0]) == note_of(one)["runner_up"] for one in canaries)
    site.pods("prefer", n_pods)
    own = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    site.pods("prefer-own", 1, affinity={"nodeAffinity": {PREFERRED: [own]}})
    site.await_bound(n_pods + 1, "prefer", log=lambda: process.log)
    stored = site.stored("prefer")
    assert all(note_of(one)["mode"] == "prefer" and "nominatedNodeName" not in one["status"] for one in stored)
    assert all(_node_of(_terms(one)[-2]) == note_of(one)["node"] for one in stored), process.log
    assert [_terms(one)[0] == own for one in stored if "own" in one["metadata"]["name"]] == [True]
    followed = [one for one in stored if one["spec"]["nodeName"] == note_of(one)["node"]]
    assert len(followed) > 0.8 * len(stored)
    assert process.metric('forecast_advice_pods_total{outcome="preferred"}') == n_pods + 1


@pytest.mark.long
def test_a_later_canary_brings_nominations_back(site: Site, start: Started, heed: Heed) -> None:
    process = start()
    _until(site, process, "canary", 0.0)
    heed.is_heeded = True
    _until(site, process, "later", 1.0)
    site.pods("back", 6)
    site.await_bound(6, "back")
    assert all(note_of(one)["node"] == one["spec"]["nodeName"] and not _terms(one) for one in site.stored("back"))


def test_a_kube_scheduler_that_follows_is_asked_once(site: Site, start: Started, heed: Heed) -> None:
    heed.is_heeded = True
    process = start()
    _until(site, process, "canary", 1.0)
    site.pods("more", 30)
    site.await_bound(30, "more", log=lambda: process.log)
    modes = [note_of(one).get("mode") for one in site.stored()]
    assert modes.count("canary") == 1 and set(modes) == {"canary", None}
    assert all(note_of(one)["node"] == one["spec"]["nodeName"] for one in site.stored())


@pytest.mark.parametrize("drops", [False, True], ids=["refused", "dropped"])
def test_pods_prefer_nodes_where_the_api_server_does_not_store_nominations(
    site: Site, start: Started, drops: bool
) -> None:
    process = start()
    with KubeScheduler(site.plane), Api(site.plane) as api:
        kind = "mutating" if drops else "validating"
        paths = [f"/apis/admissionregistration.k8s.io/v1/{kind}admissionpolic{end}" for end in ("ies", "ybindings")]
        for path, manifest in zip(paths, _policy(drops), strict=True):
            api.request("POST", path, manifest)
        try:
            assert eventually(lambda: _is_not_stored(site, api)), "the policy does not work yet"
            site.pods("refused", 12)
            site.await_bound(12, "refused", log=lambda: process.log)
            assert all(note_of(one)["mode"] == "prefer" and _terms(one) for one in site.stored("refused")), process.log
            assert eventually(lambda: process.metric("forecast_nominations_followed") == 0)
        finally:
            for path in paths:
                api.request("DELETE", f"{path}/no-nominations")


def _node_of(term: Manifest) -> str:
    (field,) = term["preference"]["matchFields"]
    (node,) = field["values"]
    return str(node)


def _policy(drops: bool) -> list[Manifest]:
    """No nomination is stored: refused, or taken out of the request."""
    kind = "MutatingAdmissionPolicy" if drops else "ValidatingAdmissionPolicy"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"]}
    spec: Manifest = {"matchConstraints": {"resourceRules": [rule]}, "failurePolicy": "Fail"}
    expression = "!has(object.status.nominatedNodeName)"
    if drops:
        patch = '[JSONPatch{op: "remove", path: "/status/nominatedNodeName"}]'
        mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": f"{expression} ? [] : {patch}"}}
        spec |= {"mutations": [mutation], "reinvocationPolicy": "Never"}
    else:
        spec["validations"] = [{"expression": expression}]
    version = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "no-nominations"}}
    binding = {"policyName": "no-nominations"} | ({} if drops else {"validationActions": ["Deny"]})
    return [version | {"kind": kind, "spec": spec}, version | {"kind": f"{kind}Binding", "spec": binding}]


def _is_not_stored(site: Site, api: Api) -> bool:
    if not site.stored("probe"):
        site.pods("probe", 1, gates=["example.com/other", ADVICE])
    (probe,) = site.stored("probe")
    path = f"/api/v1/namespaces/{probe['metadata']['namespace']}/pods/{probe['metadata']['name']}/status"
    try:
        answer = api.request("PATCH", path, {"status": {"nominatedNodeName": "x"}})
    except Exception as error:
        return "no-nominations" in str(error)
    return "nominatedNodeName" not in json.dumps(answer["status"])


def test_nomination_and_removal_of_the_gate_cannot_go_in_one_request(site: Site) -> None:
    """As the page says; an API server that takes both would save a write for each pod."""
    (held,) = site.pods("one", 1)
    both = {"spec": {"schedulingGates": None}, "status": {"nominatedNodeName": "n"}}
    path = f"/api/v1/namespaces/{held['metadata']['namespace']}/pods/{held['metadata']['name']}"
    with Api(site.plane) as api:
        by_status = api.request("PATCH", f"{path}/status", both)
        assert by_status["status"].pop("nominatedNodeName") == "n" and by_status["spec"]["schedulingGates"]
        api.request("PATCH", f"{path}/status", {"status": {"nominatedNodeName": None}})
        by_pod = api.request("PATCH", path, both)
        assert "nominatedNodeName" not in by_pod["status"] and "schedulingGates" not in by_pod["spec"]
