"""The command `forecast-scheduler webhook` asked by a real API server: what becomes of pods, and what statuses say."""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Request

from admission.certificates.options import CertificateOptions
from admission.templates.shaping_annotations import CONTROL_ANNOTATION, TEMPLATES_ANNOTATION, applied_to
from admission.webhook.options import WebhookOptions
from forecast.errors import InputError
from forecast_scheduler.commands.webhook.setup import open_webhook
from scorer.opt_out import OPT_OUT_ANNOTATION
from serving.options import ServerOptions
from testing.authority import Authority
from testing.processes.command import command
from testing.processes.scorer_process import ROOT, eventually
from testing.processes.webhook_process import (
    Api,
    Refused,
    WebhookProcess,
    binding,
    condition,
    configuration,
    manifests,
    metric,
    node_config,
    plain_pod,
    pools_of,
)
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from tests.serving.served import served


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running:
        yield running


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    with Api(plane) as api:
        api.install_crds()
        yield api


@pytest.fixture(scope="module")
def webhook(plane: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookProcess]:
    """Ready, and asked about every pod: without it none is created."""
    with WebhookProcess(tmp_path_factory.mktemp("webhook"), plane.kubeconfig, forked=True) as webhook:
        api.create(node_config("pool"))
        api.create(binding("cart", template="pool", pool="fast"))
        api.create(configuration(webhook, failurePolicy="Fail"))
        assert eventually(lambda: _pools(api, plain_pod("probe", "cart")) == ["fast"], 30), webhook.log
        yield webhook


def _pools(api: Api, pod: dict[str, Any]) -> list[str]:
    """What a pod would prefer; it is not created."""
    return pools_of(api.create(pod, "?dryRun=All"))


def test_a_new_pod_is_shaped_and_says_by_what(api: Api, webhook: WebhookProcess) -> None:
    made = api.create(plain_pod("cart-1", "cart"))
    assert pools_of(made) == ["fast"]
    (applied,) = applied_to(made["metadata"]["annotations"])
    assert (applied.binding, applied.template, applied.version) == ("cart", "NodeSchedulerConfig/pool", 1)
    other = api.create(plain_pod("other-1", "other"))
    assert "affinity" not in other["spec"] and "annotations" not in other["metadata"]
    assert metric(webhook, 'forecast_webhook_applied_total{binding="cart"}') == 1
    assert metric(webhook, "forecast_webhook_certificate_expiry_timestamp_seconds") > 1.7e9  # also of somebody's files


def test_pods_that_are_not_ours_to_shape_are_not_even_asked_about(api: Api, webhook: WebhookProcess) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "u-1", "controller": True}
    asked = metric(webhook, "forecast_webhook_duration_seconds_count")
    for number, pod in enumerate([
        plain_pod("logs-1", "cart", ownerReferences=[owner]),
        plain_pod("left-alone", "cart", annotations={OPT_OUT_ANNOTATION: "true"}),
        plain_pod("mirror", "cart", annotations={"kubernetes.io/config.mirror": "x"}) | {"x": 1},
        plain_pod("system", "cart", namespace="kube-system"),
    ]):  # fmt: skip
        pod.pop("x", None)
        if number == 2:  # only a kubelet may create mirror pods: the API server asks webhooks first all the same
            with pytest.raises(Refused, match="mirror"):
                api.create(pod)
            continue
        assert pools_of(api.create(pod)) == []
    assert metric(webhook, "forecast_webhook_duration_seconds_count") == asked
    owner = owner | {"kind": "ReplicaSet"}
    assert _pools(api, plain_pod("cart-x", "cart", ownerReferences=[owner])) == ["fast"]
    assert _pools(api, plain_pod("cart-y", "cart", annotations={OPT_OUT_ANNOTATION: "no"})) == ["fast"]


def test_a_changed_template_shapes_the_pods_after_it(api: Api, webhook: WebhookProcess) -> None:
    api.create(node_config("changing", default="old"))
    api.create(binding("changed", template="changing"))
    assert eventually(lambda: _pools(api, plain_pod("p", "changed")) == ["old"])
    changed = node_config("changing", default="new")
    api.patch(changed, {"spec": changed["spec"]})
    assert eventually(lambda: _pools(api, plain_pod("p", "changed")) == ["new"])
    made = api.create(plain_pod("changed-1", "changed"))
    assert applied_to(made["metadata"]["annotations"])[0].version == 2
    api.delete(binding("changed", template="changing"))
    assert eventually(lambda: _pools(api, plain_pod("p", "changed")) == [])


def test_a_dry_run_is_answered_alike_and_leaves_no_trace(api: Api, webhook: WebhookProcess) -> None:
    one = binding("narrow", template="strict")
    one["spec"]["onConflict"] = "Merge"
    template = node_config("strict")
    template["spec"]["required"] = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["fast"]}]}]
    api.create(template)
    api.create(one)
    assert eventually(lambda: _pools(api, plain_pod("p", "narrow")) == ["general"])
    pod = plain_pod("contradicting", "narrow")
    pod["spec"]["nodeSelector"] = {"pool": "slow"}
    before, warnings = metric(webhook, 'forecast_webhook_applied_total{binding="cart"}'), len(api.warnings)
    assert pools_of(api.create(pod, "?dryRun=All")) == []
    assert len(api.warnings) == warnings + 1 and "narrow" in api.warnings[-1]
    assert _pools(api, plain_pod("p", "cart")) == ["fast"]
    assert metric(webhook, 'forecast_webhook_applied_total{binding="cart"}') == before

    # What is really created is remembered; had the dry run been, it would have been told before or with it.
    api.create(pod | {"metadata": pod["metadata"] | {"name": "created"}})
    assert eventually(lambda: "lastError" in api.read(one).get("status", {}), 30)
    error = api.read(one)["status"]["lastError"]
    assert error["pod"] == "default/created" and "node" in error["message"]


def test_statuses_count_pods_and_say_what_is_wrong(api: Api, webhook: WebhookProcess) -> None:
    api.create(node_config("counted"))
    half = binding("half", template="counted")
    half["spec"]["canary"] = {"percent": 50}
    lost = binding("lost", template="nowhere")
    for one in (half, lost):
        api.create(one)
    assert eventually(lambda: condition(api.read(half)) == ("True", "Applies"), 30), api.read(half)
    assert eventually(lambda: condition(api.read(lost)) == ("False", "TemplateNotFound"), 30), api.read(lost)
    assert eventually(lambda: condition(api.read(node_config("counted"))) == ("True", "Valid"), 30)
    assert eventually(lambda: api.read(node_config("counted"))["status"].get("bindings") == 1, 30)
    pods = [api.create(plain_pod(f"half-{i}", "half")) for i in range(30)]
    inside = [TEMPLATES_ANNOTATION in one["metadata"]["annotations"] for one in pods]
    outside = [CONTROL_ANNOTATION in one["metadata"]["annotations"] for one in pods]
    assert all(a != b for a, b in zip(inside, outside, strict=True)) and 2 <= sum(inside) <= 28  # 1 in 10^7 otherwise

    def counted(bound: int, control: int) -> bool:
        status = api.read(half)["status"]
        return (status.get("boundPods"), status.get("controlPods")) == (bound, control)

    assert eventually(lambda: counted(sum(inside), sum(outside)), 30), api.read(half)
    for one in pods:
        api.delete(one | {"kind": "Pod"})
    assert eventually(lambda: counted(0, 0), 30), api.read(half)
    assert metric(webhook, "forecast_webhook_bindings_broken") == 1
    api.delete(lost)


@contextmanager
def _second_webhook(directory: Path) -> Iterator[tuple[str, Authority]]:
    """Gives every pod the label changed=yes, once; its address, and who signed its certificate."""
    app = FastAPI()

    @app.post("/mutate")
    async def mutate(request: Request) -> dict[str, Any]:
        review = await request.json()
        labels = review["request"]["object"]["metadata"].get("labels", {})
        response: dict[str, Any] = {"uid": review["request"]["uid"], "allowed": True}
        if "changed" not in labels:
            patch = json.dumps([{"op": "add", "path": "/metadata/labels/changed", "value": "yes"}])
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(patch.encode()).decode()}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    authority = Authority(directory, "authority")
    certificate, key = authority.issue("second")
    app.state.service = app.state  # where the server says that it is ending
    with served(app, ServerOptions(port=0, tls_cert=certificate, tls_key=key)) as url:
        yield url, authority


def test_asked_again_after_another_webhook_it_adds_what_now_holds_and_nothing_twice(
    api: Api, webhook: WebhookProcess, tmp_path: Path
) -> None:
    api.create(
        binding("changed-by-another", template="pool", pool="spare", selector={"matchLabels": {"changed": "yes"}})
    )
    assert eventually(lambda: _pools(api, plain_pod("p", "x", labels={"changed": "yes"})) == ["spare"])
    with _second_webhook(tmp_path) as (url, authority):
        later = configuration(webhook, "zz-after-ours", failurePolicy="Fail", name="second.example.com")
        later["webhooks"][0]["clientConfig"] = {
            "url": f"{url}/mutate", "caBundle": base64.b64encode(authority.ca.read_bytes()).decode(),
        }  # fmt: skip
        api.create(later)
        try:
            assert eventually(lambda: _pools(api, plain_pod("p", "x")) == ["spare"], 30)
            reviews = metric(webhook, "forecast_webhook_duration_seconds_count")
            made = api.create(plain_pod("twice", "cart"))
            assert metric(webhook, "forecast_webhook_duration_seconds_count") == reviews + 2
        finally:
            api.delete(later)
    assert sorted(pools_of(made)) == ["fast", "spare"] and made["metadata"]["labels"]["changed"] == "yes"
    applied = [one.binding for one in applied_to(made["metadata"]["annotations"])]
    assert sorted(applied) == ["cart", "changed-by-another"]
    # Created anew from what it is now, as a restored backup is: nothing is added.
    again = plain_pod("again", "cart", annotations=made["metadata"]["annotations"])
    again["metadata"]["labels"] = made["metadata"]["labels"]
    again["spec"]["affinity"] = made["spec"]["affinity"]
    copied = api.create(again)
    assert copied["spec"]["affinity"] == made["spec"]["affinity"]
    assert copied["metadata"]["annotations"] == made["metadata"]["annotations"]


def test_what_is_shipped_installs_without_warnings_and_its_rights_are_enough(
    plane: ControlPlane, api: Api, webhook: WebhookProcess, tmp_path: Path
) -> None:
    del api.warnings[:]
    files = ("common/namespace.yaml", "webhook/rbac.yaml", "webhook/webhook.yaml")
    shipped = manifests(*(ROOT / "deploy" / "base" / name for name in files))
    for manifest in shipped:
        api.create(manifest)
    (installed,) = manifests(ROOT / "deploy" / "base" / "webhook" / "configuration.yaml")
    installed["metadata"]["name"] += "-as-shipped"
    api.create(installed, "?dryRun=All")
    assert api.warnings == []

    account = "/api/v1/namespaces/forecast-scheduler/serviceaccounts/forecast-scheduler-webhook/token"
    token = api.request("POST", account, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    one = binding("rights", template="pool")
    with (
        WebhookProcess(tmp_path, plane.write_kubeconfig("webhook", token), forked=True) as limited,
        _standing_still(webhook),
    ):
        api.create(one)
        assert eventually(lambda: metric(limited, "forecast_webhook_bindings") > 1, 30)
        assert eventually(lambda: condition(api.read(one)) == ("True", "Applies"), 30)
        limited.http.close()  # its end would wait for an idle client that does not read
        assert limited.terminate() == 0
        assert limited.complaints == [], limited.log


@contextmanager
def _standing_still(webhook: WebhookProcess) -> Iterator[None]:
    """It does nothing inside, so that it must have been another one."""
    assert webhook.process is not None
    os.kill(webhook.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(webhook.process.pid, signal.SIGCONT)


def test_without_one_certificate_it_does_not_start(plane: ControlPlane, tmp_path: Path) -> None:
    ended = command("webhook", "--kubeconfig", plane.kubeconfig)
    assert ended.returncode == 2 and "--tls-cert" in ended.stderr and "managed" in ended.stderr
    both = WebhookOptions(tls_cert=Path("a.pem"), certificates=CertificateOptions(managed=True))
    with pytest.raises(InputError, match="leave one of them out"), open_webhook(both, plane.kubeconfig):
        pass
    forbidden = plane.write_kubeconfig("nobody", plane.powerless_token)
    with pytest.raises(InputError, match="403"), open_webhook(WebhookOptions(tls_cert=Path("a.pem")), forbidden):
        pass
