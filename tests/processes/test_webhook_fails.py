"""The webhook beside a real API server when things break: it is away, slow, or loses what it goes by."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from testing.processes.scorer_process import ROOT, eventually
from testing.processes.webhook_process import (
    WEBHOOK_NAME,
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
from testing.servers.prometheus import free_port


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with control_plane() as running:
        yield running


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    with Api(plane) as api:
        api.install_crds()
        api.create(node_config("pool"))
        api.create(binding("cart", template="pool", pool="fast"))
        yield api


@pytest.fixture(scope="module")
def webhook(plane: ControlPlane, api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookProcess]:
    """Ready; nobody asks it yet. Its address stays the same when it is started again."""
    port = str(free_port())
    with WebhookProcess(tmp_path_factory.mktemp("webhook"), plane.kubeconfig, "--port", port, forked=True) as webhook:
        yield webhook
        assert "Traceback" not in webhook.log, webhook.log.partition("Traceback")[2][:4000]


@contextmanager
def _asked(api: Api, webhook: WebhookProcess, **changed: Any) -> Iterator[None]:
    """The API server asks it inside, and has noticed."""
    made = configuration(webhook, **changed)
    api.create(made)
    try:
        assert eventually(lambda: _pools(api, "cart") == ["fast"], 30), webhook.log
        yield
    finally:
        api.delete(made)
        # Else the next test could still meet this one's policy.
        assert eventually(lambda: _pools(api, "cart") == [], 30)


def _pools(api: Api, app: str) -> list[str] | None:
    """What a pod would prefer; None: it would be refused."""
    try:
        return pools_of(api.create(plain_pod("probe", app), "?dryRun=All"))
    except Refused:
        return None


def _restart(webhook: WebhookProcess) -> None:
    webhook.start()
    webhook.wait_ready()


def test_away_with_ignore_pods_are_created_as_they_are(api: Api, webhook: WebhookProcess) -> None:
    with _asked(api, webhook, failurePolicy="Ignore"):
        webhook.kill()
        made = api.create(plain_pod("unshaped", "cart"))
        assert pools_of(made) == [] and "annotations" not in made["metadata"]
        _restart(webhook)
        assert eventually(lambda: _pools(api, "cart") == ["fast"])


def test_away_with_fail_pods_are_refused_until_it_is_back(api: Api, webhook: WebhookProcess) -> None:
    with _asked(api, webhook, failurePolicy="Fail"):
        webhook.kill()
        with pytest.raises(Refused, match=WEBHOOK_NAME) as refused:
            api.create(plain_pod("refused", "cart"))
        assert refused.value.status == 500 and "failed calling webhook" in refused.value.message
        _restart(webhook)
        assert eventually(lambda: _pools(api, "cart") == ["fast"])
        assert pools_of(api.create(plain_pod("refused", "cart"))) == ["fast"]


@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
def test_stopped_it_costs_its_timeout_and_then_its_policy_decides(
    api: Api, webhook: WebhookProcess, policy: str
) -> None:
    with _asked(api, webhook, failurePolicy=policy, timeoutSeconds=1):
        assert webhook.process is not None
        os.kill(webhook.process.pid, signal.SIGSTOP)
        try:
            if policy == "Ignore":
                assert pools_of(api.create(plain_pod("impatient", "cart"))) == []
            else:
                with pytest.raises(Refused, match=WEBHOOK_NAME):
                    api.create(plain_pod("patient", "cart"))
        finally:
            os.kill(webhook.process.pid, signal.SIGCONT)
        assert eventually(lambda: _pools(api, "cart") == ["fast"], 30)


def test_a_deleted_definition_means_no_bindings_and_its_return_is_noticed(
    plane: ControlPlane, api: Api, webhook: WebhookProcess
) -> None:
    definitions = {one["spec"]["names"]["kind"]: one for one in manifests(ROOT / "deploy" / "crds")}
    definition = definitions["SchedulerConfigBinding"]
    with _asked(api, webhook, failurePolicy="Fail"):
        api.delete(definition)
        assert eventually(lambda: _pools(api, "cart") == [], 30)
        assert webhook.http.get("/readyz").status_code == 200
        webhook.kill()  # started without the definition it is ready, too
        _restart(webhook)
        assert _pools(api, "cart") == []
        api.create(definition)
        assert eventually(api.crds_are_served, 30)
        api.create(binding("cart", template="pool", pool="fast"))
        assert eventually(lambda: _pools(api, "cart") == ["fast"], 30), webhook.log


def test_a_deleted_definition_of_templates_in_use_lets_pods_pass(api: Api, webhook: WebhookProcess) -> None:
    definitions = {one["spec"]["names"]["kind"]: one for one in manifests(ROOT / "deploy" / "crds")}
    definition = definitions["NodeSchedulerConfig"]
    cart = binding("cart", template="pool", pool="fast")
    with _asked(api, webhook, failurePolicy="Fail"):
        assert eventually(lambda: condition(api.read(cart)) == ("True", "Applies"), 30)
        before = api.read(cart)["status"]["templateUid"]
        api.delete(definition)
        assert eventually(lambda: _pools(api, "cart") == [], 30)
        assert webhook.http.get("/readyz").status_code == 200
        assert eventually(lambda: condition(api.read(cart)) == ("False", "TemplateNotFound"), 30), api.read(cart)
        assert "templateUid" not in api.read(cart)["status"]
        api.create(definition)
        assert eventually(api.crds_are_served, 30)
        api.create(node_config("pool"))
        assert eventually(lambda: _pools(api, "cart") == ["fast"], 30), webhook.log
        assert eventually(lambda: condition(api.read(cart)) == ("True", "Applies"), 30), api.read(cart)
        assert api.read(cart)["status"]["templateUid"] not in (before, None)


def test_a_restarted_api_server_is_followed_again(plane: ControlPlane, api: Api, webhook: WebhookProcess) -> None:
    with _asked(api, webhook, failurePolicy="Fail"):
        plane.api_server.kill()
        assert webhook.http.get("/readyz").status_code == 200  # what it knows is good for as long as nobody says else
        plane.api_server.start()
        changed = binding("cart", template="pool", pool="other")
        api.patch(changed, {"spec": changed["spec"]})
        seen: list[list[str] | None] = []

        def follows() -> bool:
            seen.append(_pools(api, "cart"))
            return seen[-1] == ["other"]

        assert eventually(follows, 30), webhook.log
        assert [] not in seen  # at no time it took what it could not read for nothing
        back = binding("cart", template="pool", pool="fast")
        api.patch(back, {"spec": back["spec"]})
        assert eventually(lambda: _pools(api, "cart") == ["fast"], 30)


@pytest.mark.long
def test_a_thousand_bindings(api: Api, webhook: WebhookProcess) -> None:
    """All are in effect soon, of each pod only those that mean it, and their statuses come in time."""
    many = [binding(f"service-{i}", template="pool", pool=f"pool-{i % 7}") for i in range(1000)]
    with _asked(api, webhook, failurePolicy="Fail"):
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(api.create, many))
        assert eventually(lambda: _pools(api, "service-999") == ["pool-5"], 30)
        assert eventually(lambda: metric(webhook, "forecast_webhook_bindings") == 1001, 30)
        for i in (0, 1, 500, 998):
            assert _pools(api, f"service-{i}") == [f"pool-{i % 7}"]
        last = binding("late", template="pool", pool="late")
        api.create(last)
        assert eventually(lambda: _pools(api, "late") == ["late"], 30)
        # 20 statuses a second: not all of a thousand are waited for.
        assert eventually(lambda: sum(condition(api.read(one))[0] == "True" for one in many[:100]) >= 20, 30)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(api.delete, [*many, last]))
        assert eventually(lambda: metric(webhook, "forecast_webhook_bindings") == 1, 30)
        assert metric(webhook, 'forecast_webhook_applied_total{binding="service-0"}') == 0
