from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from base.errors import InputError
from forecast_scheduler.cli import run
from forecast_scheduler.commands.serving_access import check_exposed, kubernetes_access
from forecast_scheduler.settings.document import Settings
from kube.client.cluster_access import ClusterAccess
from serving.server import only_this_machine
from serving.server_settings import ServingOptions

EVERYWHERE = "0.0.0.0"
GROUPS = ["scorer", "extender", "schedule"]


def _settings(group: str, **values: Any) -> ServingOptions:
    found = getattr(Settings.model_validate({group: {"serving": values}}), group).serving
    assert isinstance(found, ServingOptions)
    return found


@pytest.mark.parametrize(
    ("host", "only_here"),
    [
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("localhost", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("0", False),
        ("10.1.2.3", False),
        ("0x7f.1", True),
    ],
)
def test_what_others_can_reach(host: str, only_here: bool) -> None:
    assert only_this_machine(host) == only_here


@pytest.mark.parametrize("host", ["", "no.such.host.invalid"])
def test_a_name_that_cannot_be_looked_up_now_is_not_taken_for_this_machine(host: str) -> None:
    with pytest.raises(InputError, match=f"host '{host}' is not an address of this machine"):
        check_exposed(_settings("scorer", host=host))


@pytest.mark.parametrize("group", GROUPS)
def test_nobody_listens_beyond_this_machine_without_asking_who_asks(group: str) -> None:
    own = f"{group}.serving"
    with pytest.raises(InputError, match=rf"{own}.host is 0.0.0.0.*{own}.kubernetes_auth.*{own}.anonymous: true"):
        check_exposed(_settings(group, host=EVERYWHERE))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    "way",
    [
        {"anonymous": True},
        {"kubernetes_auth": True},
        {"token_files": ["tokens"]},
        {"tls_cert": "c.pem", "client_ca": "ca.pem"},
        {"host": "127.0.0.1"},
    ],
)
def test_each_way_to_know_who_asks_is_enough(group: str, way: dict[str, Any]) -> None:
    check_exposed(_settings(group, **{"host": EVERYWHERE} | way))


@pytest.mark.parametrize("command", [*GROUPS, "webhook"])
def test_the_command_ends_before_it_reads_anything(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"{command}: {{serving: {{host: 0.0.0.0, port: 0, anonymous: false}}}}\n")
    nowhere = tmp_path / "kubeconfig"
    assert run([command, "--config", str(config), "--kubeconfig", str(nowhere)]) == 2
    said = capfd.readouterr()
    assert f"{command}.serving.host is 0.0.0.0, where others can reach it" in said.err
    assert said.err.count("\n") == 1 and said.out == ""


def test_neither_a_server_certificate_nor_audiences_say_who_asks(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        check_exposed(_settings("scorer", host=EVERYWHERE, tls_cert="c.pem", tls_key="k.pem"))
    check_exposed(_settings("webhook", host=EVERYWHERE))
    with pytest.raises(InputError, match=r"webhook\.serving\.host is 0\.0\.0\.0"):
        check_exposed(_settings("webhook", host=EVERYWHERE, anonymous=False))
    with pytest.raises(InputError, match=r"kubernetes_audiences is set without scorer\.serving\.kubernetes_auth"):
        kubernetes_access(_settings("scorer", kubernetes_audiences=["ours"]), ClusterAccess(tmp_path))
    assert kubernetes_access(_settings("scorer"), ClusterAccess(tmp_path)) is None
