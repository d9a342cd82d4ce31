"""Whether this process may remove gates: what the API server's answer means. tests/deploy has a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube.client.kubernetes_client import api_client
from kube.client.right_to_patch_pods import RightToPatchPods
from tests.kube.scripted_server import Answer, ScriptedServer

GRANTED, DENIED = (Answer(201, [b'{"status":{"allowed":%s}}' % allowed]) for allowed in (b"true", b"false"))


@pytest.mark.parametrize(
    ("answers", "is_granted"),
    [
        ([], False),
        ([GRANTED], True),
        ([DENIED], False),
        ([GRANTED, DENIED], False),
        ([GRANTED, Answer(503)], True),
        ([GRANTED, Answer(201, [b"no JSON"])], True),
        ([DENIED, GRANTED], True),
    ],
)
def test_the_last_answer_counts(answers: list[Answer], is_granted: bool, tmp_path: Path) -> None:
    with ScriptedServer(lambda number, query: answers[number]) as server:
        right = RightToPatchPods(api_client(server.kubeconfig(tmp_path)), "it does not lead")
        for _ in answers:
            right.look()
    assert right.is_granted() is is_granted


def test_an_answer_that_says_nothing_is_logged_once_and_none_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedServer(lambda number, query: Answer(403)) as server:
        right = RightToPatchPods(api_client(server.kubeconfig(tmp_path)), "it does not lead")
        right.look()
        right.look()
    (message,) = (record.getMessage() for record in caplog.records if record.name == "kube.client.right_to_patch_pods")
    assert "does not say whether gates may be removed" in message and not right.is_granted()
    with ScriptedServer(lambda number, query: GRANTED) as server:
        right = RightToPatchPods(api_client(server.kubeconfig(tmp_path)), "it does not lead")
        right.look()
    right.look()
    assert right.is_granted()
