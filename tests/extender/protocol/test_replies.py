"""Replies against what Go reads: staging/src/k8s.io/kube-scheduler/extender/v1/types.go."""

from __future__ import annotations

import json

import numpy as np
from msgspec import Raw

from extender.extender_api import Filtered, Victims
from extender.protocol import replies
from extender.protocol.requests import Asked, decode_asked
from tests.extender.protocol.recorded_requests import recorded

ASKED = Asked(Raw(b"{}"), ["a", "b", "c", "d"])


def test_names_come_back_for_names() -> None:
    filtered = Filtered(["a", "d"], failed={"b": "peak too high"}, unresolvable={"c": "kept for GPUs"})
    assert json.loads(replies.filter_reply(ASKED, filtered)) == {
        "NodeNames": ["a", "d"],
        "Nodes": None,
        "FailedNodes": {"b": "peak too high"},
        "FailedAndUnresolvableNodes": {"c": "kept for GPUs"},
        "Error": "",
    }


def test_no_names_are_an_empty_list_and_not_null() -> None:
    """Null would be read as if there were no list at all, as of an extender that keeps no nodes."""
    assert json.loads(replies.filter_reply(ASKED, Filtered([])))["NodeNames"] == []


def test_whole_nodes_come_back_unchanged_for_whole_nodes() -> None:
    asked = decode_asked(recorded("nodes-filter"))
    reply = json.loads(replies.filter_reply(asked, Filtered(["node-2"], failed={"node-1": "no"})))
    assert reply["Nodes"] == {"items": json.loads(recorded("nodes-filter"))["Nodes"]["items"][1:]}
    assert reply["NodeNames"] is None and reply["FailedNodes"] == {"node-1": "no"}


def test_an_error_names_no_nodes() -> None:
    reply = json.loads(replies.filter_error("no Pod"))
    assert reply["Error"] == "no Pod" and reply["NodeNames"] is None and reply["Nodes"] is None


def test_points_are_a_bare_list_without_zeros() -> None:
    reply = json.loads(replies.points_reply({"a": 7, "b": 0, "c": -30}))
    assert reply == [{"Host": "a", "Score": 7}, {"Host": "c", "Score": -30}]
    assert json.loads(replies.points_reply({"a": 1, "b": 2})) == [{"Host": "a", "Score": 1}, {"Host": "b", "Score": 2}]
    assert replies.points_reply({}) == replies.NO_POINTS == b"[]"


def test_points_that_are_no_plain_integers_become_some() -> None:
    """One fraction, and Go refuses the whole list."""
    odd = {"a": np.int64(3), "b": 4.0, "c": True, "d": np.float32(-2)}
    assert replies.points_reply(odd) == (  # type: ignore[arg-type]
        b'[{"Host":"a","Score":3},{"Host":"b","Score":4},{"Host":"c","Score":1},{"Host":"d","Score":-2}]'
    )


def test_victims_are_named_by_uid_and_nodes_without_any_are_left_out() -> None:
    reply = replies.victims_reply({"a": Victims(("u1", "u2"), 1), "b": Victims(()), "c": Victims(("u3",))})
    assert json.loads(reply) == {
        "NodeNameToMetaVictims": {
            "a": {"Pods": [{"UID": "u1"}, {"UID": "u2"}], "NumPDBViolations": 1},
            "c": {"Pods": [{"UID": "u3"}], "NumPDBViolations": 0},
        }
    }
    assert json.loads(replies.victims_reply({})) == {"NodeNameToMetaVictims": {}}


def test_a_binding_is_answered_by_its_error_alone() -> None:
    assert json.loads(replies.binding_reply()) == {"Error": ""}
    assert json.loads(replies.binding_reply("gone")) == {"Error": "gone"}


def test_any_text_is_escaped() -> None:
    reply = json.loads(replies.filter_reply(ASKED, Filtered(['a"\\\n\u2028é'], failed={"</b>": '"'})))
    assert reply["NodeNames"] == ['a"\\\n\u2028é'] and reply["FailedNodes"] == {"</b>": '"'}
