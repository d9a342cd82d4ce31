"""The command `forecast-scheduler webhook` asked by a real API server: what becomes of pods, also while it is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from admission.templates.shaping_annotations import TEMPLATES_ANNOTATION, applied_to
from admission.webhook_settings import CertificateOptions, WebhookOptions, WebhookServing
from advisor.advice_settings import AdviseOptions
from base.errors import InputError
from base.excluded import ExcludedOptions
from forecast_scheduler.commands.webhook_setup import open_webhook
from kube.client.cluster_access import ClusterAccess
from scorer.scoring_policy import OPT_OUT_ANNOTATION
from testing.processes.command import command
from testing.processes.scorer_process import ROOT
from testing.processes.webhook_process import (
    WEBHOOK_NAME,
    Api,
    Refused,
    WebhookProcess,
    binding,
    configuration,
    manifests,
    metric,
    node_config,
    plain_pod,
    pools_of,
)
from testing.servers.control_plane.control_plane import ControlPlane
from testing.servers.control_plane.pool import control_plane
from testing.servers.prometheus import free_port
from testing.waiting import eventually


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
    """Ready, and asked about every pod: without it none is created. Started again, it has the same address."""
    port = str(free_port())
    with WebhookProcess(tmp_path_factory.mktemp("webhook"), plane.kubeconfig, "--port", port, forked=True) as webhook:
        api.create(node_config("pool"))
        api.create(binding("cart", template="pool", pool="fast"))
        api.create(configuration(webhook, failurePolicy="Fail"))
        assert eventually(lambda: _pools(api, plain_pod("probe", "cart")) == ["fast"]), webhook.log
        yield webhook
        assert "Traceback" not in webhook.log, webhook.log.partition("Traceback")[2][:4000]


def _pools(api: Api, pod: dict[str, Any]) -> list[str]:
    """What a pod would prefer; it is not created."""
    return pools_of(api.create(pod, "?dryRun=All"))


def _rendered(plane: ControlPlane, wanted: object) -> dict[str, Any]:
    """What `render` says of a manifest in a file, or of a pod that is there."""
    ended = command("render", wanted, "--kubeconfig", plane.kubeconfig, "--json", "-")
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def test_a_new_pod_is_shaped_and_says_by_what(
    plane: ControlPlane, api: Api, webhook: WebhookProcess, tmp_path: Path
) -> None:
    made = api.create(plain_pod("cart-1", "cart"))
    # The same as `render` says of the manifest, and nothing more of the pod that is there.
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(plain_pod("cart-1", "cart")))
    said, again = _rendered(plane, tmp_path / "pod.yaml"), _rendered(plane, "default/cart-1")
    assert said["affinity"] == again["affinity"] == made["spec"]["affinity"] and not again["changed"]
    assert said["annotations"] == {TEMPLATES_ANNOTATION: made["metadata"]["annotations"][TEMPLATES_ANNOTATION]}
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
    assert eventually(lambda: "lastError" in api.read(one).get("status", {}))
    error = api.read(one)["status"]["lastError"]
    assert error["pod"] == "default/created" and "node" in error["message"]


def test_without_one_certificate_it_does_not_start(plane: ControlPlane, tmp_path: Path) -> None:
    ended = command("webhook", "--kubeconfig", plane.kubeconfig)
    assert ended.returncode == 2 and "--tls-cert" in ended.stderr and "managed" in ended.stderr
    both = WebhookOptions(serving=WebhookServing(tls_cert=Path("a.pem")), certificates=CertificateOptions(managed=True))
    with (
        pytest.raises(InputError, match="leave one of them out"),
        open_webhook(both, AdviseOptions(), ExcludedOptions(), ClusterAccess(plane.kubeconfig)),
    ):
        pass
    forbidden = plane.write_kubeconfig("nobody", plane.powerless_token)
    with (
        pytest.raises(InputError, match="403"),
        open_webhook(
            WebhookOptions(serving=WebhookServing(tls_cert=Path("a.pem"))),
            AdviseOptions(),
            ExcludedOptions(),
            ClusterAccess(forbidden),
        ),
    ):
        pass


def test_what_render_does_not_get_of_the_api_server_is_one_line_and_status_2(
    plane: ControlPlane, api: Api, tmp_path: Path
) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(plain_pod("cart-1", "cart")))
    powerless = plane.write_kubeconfig("nobody", plane.powerless_token)
    elsewhere = plane.write_kubeconfig("admin", plane.token, url=f"{plane.url}/nowhere")
    for named, kubeconfig, message in (
        (path, powerless, "the API server forbids to list nodeschedulerconfigs (403)"),
        (path, elsewhere, "knows no nodeschedulerconfigs: install the CustomResourceDefinitions of deploy/crds"),
        ("default/nobody", plane.kubeconfig, "pod 'default/nobody' is not known"),
        ("default/nobody", powerless, "the API server forbids to read pods (403)"),
    ):
        ended = command("render", named, "--kubeconfig", kubeconfig)
        assert ended.returncode == 2, ended.stdout
        assert message in ended.stderr
        assert ended.stderr.count("\n") == 1, ended.stderr


@contextmanager
def _asked(api: Api, webhook: WebhookProcess, **changed: Any) -> Iterator[None]:
    """The API server asks it so inside, and has noticed."""
    usual, made = configuration(webhook, failurePolicy="Fail"), configuration(webhook, **changed)
    api.delete(usual)
    assert eventually(lambda: _cart(api) == [])  # else it could still go by the policy before
    api.create(made)
    try:
        assert eventually(lambda: _cart(api) == ["fast"]), webhook.log
        yield
    finally:
        api.delete(made)
        assert eventually(lambda: _cart(api) == [])
        api.create(usual)
        assert eventually(lambda: _cart(api) == ["fast"]), webhook.log


def _cart(api: Api) -> list[str] | None:
    """What a pod of cart would prefer; None: it would be refused."""
    try:
        return _pools(api, plain_pod("probe", "cart"))
    except Refused:
        return None


def _restart(webhook: WebhookProcess) -> None:
    webhook.start()
    webhook.wait_ready()


@pytest.mark.parametrize(
    ("policy", "is_killed"),
    [
        pytest.param("Ignore", True, id="away-ignore", marks=pytest.mark.long),
        pytest.param("Fail", True, id="away-fail"),
        pytest.param("Ignore", False, id="stopped-ignore"),
        pytest.param("Fail", False, id="stopped-fail", marks=pytest.mark.long),
    ],
)
def test_without_an_answer_its_policy_decides_until_it_is_back(
    api: Api, webhook: WebhookProcess, policy: str, is_killed: bool
) -> None:
    with _asked(api, webhook, failurePolicy=policy, timeoutSeconds=10 if is_killed else 1):
        assert webhook.process is not None
        with ExitStack() as stack:
            if is_killed:
                webhook.kill()
                stack.callback(_restart, webhook)
            else:
                stack.enter_context(webhook.standing_still())
            if policy == "Ignore":
                made = api.create(plain_pod(f"unshaped-{is_killed}".lower(), "cart"))
                assert pools_of(made) == [] and "annotations" not in made["metadata"]
            else:
                with pytest.raises(Refused, match=WEBHOOK_NAME) as refused:
                    api.create(plain_pod("refused", "cart"))
                assert refused.value.status == 500 and "failed calling webhook" in refused.value.message
        assert eventually(lambda: _cart(api) == ["fast"])


def test_a_deleted_definition_means_no_bindings_and_its_return_is_noticed(
    plane: ControlPlane, api: Api, webhook: WebhookProcess
) -> None:
    definitions = {one["spec"]["names"]["kind"]: one for one in manifests(ROOT / "deploy" / "crds")}
    definition = definitions["SchedulerConfigBinding"]
    api.delete(definition)
    assert eventually(lambda: _cart(api) == [])
    assert webhook.http.get("/readyz").status_code == 200
    webhook.kill()  # started without the definition it is ready, too
    _restart(webhook)
    assert _cart(api) == []
    api.create(definition)
    assert eventually(api.crds_are_served)
    api.create(binding("cart", template="pool", pool="fast"))
    assert eventually(lambda: _cart(api) == ["fast"]), webhook.log


def test_a_restarted_api_server_is_followed_again(plane: ControlPlane, api: Api, webhook: WebhookProcess) -> None:
    plane.api_server.kill()
    assert webhook.http.get("/readyz").status_code == 200  # what it knows is good for as long as nobody says else
    plane.api_server.start()
    changed = binding("cart", template="pool", pool="other")
    api.patch(changed, {"spec": changed["spec"]})
    seen: list[list[str] | None] = []

    def follows() -> bool:
        seen.append(_cart(api))
        return seen[-1] == ["other"]

    assert eventually(follows), webhook.log
    assert [] not in seen  # at no time it took what it could not read for nothing
    back = binding("cart", template="pool", pool="fast")
    api.patch(back, {"spec": back["spec"]})
    assert eventually(lambda: _cart(api) == ["fast"])
