"""Which version an API server says it is, and that what is read follows it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from kube.client.api_server_version import ApiServerVersion
from kube.client.kubernetes_client import api_client
from kube.objects.kubernetes_version import COMPARED, NEWEST, KubernetesVersion, decode_version
from tests.kube.scripted_server import Answer, ScriptedServer

OLD, NEW = KubernetesVersion(1, 36), KubernetesVersion(1, 37)


def said(major: str, minor: str) -> Answer:
    return Answer(chunks=[json.dumps({"major": major, "minor": minor, "gitVersion": "v1"}).encode()])


def openapi(**schemas: list[str]) -> bytes:
    of = {f"io.k8s.api.core.v1.{kind}": {"properties": dict.fromkeys(names, 0)} for kind, names in schemas.items()}
    return json.dumps({"openapi": "3.0.0", "components": {"schemas": of}}).encode()


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (b'{"major": "1", "minor": "36", "platform": "linux/amd64"}', (1, 36)),
        (b'{"major": "1", "minor": "37+"}', (1, 37)),
        (b'{"major": "1", "minor": "99"}', (1, 99)),
        (b'{"major": "", "minor": ""}', None),
        (b'{"kind": "Status"}', None),
        (b"not found", None),
        (b'{"major": "\xff", "minor": "37"}', None),
        (b'{"major": "1", "minor": "' + b"9" * 5000 + b'"}', None),
    ],
)
def test_what_an_api_server_says(body: bytes, version: KubernetesVersion | None) -> None:
    assert decode_version(body) == version


def read(answers: Sequence[Answer], directory: Path) -> tuple[list[KubernetesVersion], list[KubernetesVersion]]:
    """What is read of answers one after the other, and what was reported as a change."""
    changes: list[KubernetesVersion] = []
    with ScriptedServer(lambda number, query: answers[number]) as server:
        versions = ApiServerVersion(api_client(server.kubeconfig(directory)), changes.append)
        return [versions.read() for _ in answers], changes


def test_versions_that_are_compared_give_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found, changes = read([said("1", "36"), said("1", "36"), said("1", "37")], tmp_path)
    assert found == [OLD, OLD, NEW]
    assert changes == [OLD, NEW]
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_an_older_version_gives_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found, changes = read([said("1", "30")] * 3, tmp_path)
    assert (found, changes) == ([(1, 30)] * 3, [(1, 30)])
    (warning,) = warnings_of(caplog)
    assert "is Kubernetes 1.30" in warning and f"the rules of {COMPARED[0]} hold" in warning


@pytest.mark.parametrize(
    ("fields", "said_of_fields"),
    [
        (
            Answer(chunks=[openapi(PodSpec=["containers", "teleport"], NodeStatus=["warp"], Unread=["other"])]),
            [f"{field}, which Kubernetes {COMPARED[-1]} has not" for field in ("NodeStatus.warp", "PodSpec.teleport")],
        ),
        (Answer(chunks=[openapi(PodSpec=["containers"])]), []),
        (Answer(status=403), ["does not say its fields (403)"]),
    ],
)
def test_a_newer_version_gives_one_warning_and_one_for_each_field(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fields: Answer, said_of_fields: list[str]
) -> None:
    answers = [said("1", "99"), fields, said("1", "99"), said("1", "99")]
    with ScriptedServer(lambda number, query: answers[number]) as server:
        versions = ApiServerVersion(api_client(server.kubeconfig(tmp_path)), lambda version: None)
        assert [versions.read() for _ in range(3)] == [(1, 99)] * 3
    first, *others = warnings_of(caplog)
    assert "is Kubernetes 1.99" in first and f"the rules of {COMPARED[-1]} hold" in first
    assert len(others) == len(said_of_fields)
    assert all(expected in warning for expected, warning in zip(said_of_fields, others, strict=True))


def test_a_version_beyond_those_compared_has_the_rules_of_the_newest() -> None:
    rules = [name for name, one in vars(KubernetesVersion).items() if isinstance(one, property)]
    assert len(rules) == 7
    assert all(getattr(KubernetesVersion(1, 99), name) for name in rules)
    assert not any(getattr(KubernetesVersion(1, 30), name) for name in rules)


def test_a_server_that_refuses_leaves_what_it_said_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    forbidden = Answer(status=403)
    found, changes = read([forbidden, forbidden, said("1", "36"), forbidden], tmp_path)
    assert found == [NEWEST, NEWEST, OLD, OLD]
    assert changes == [NEWEST, OLD]
    assert len([one for one in caplog.records if "does not say its version (403)" in one.getMessage()]) == 1
