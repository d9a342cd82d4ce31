"""Replies against what Go reads: staging/src/k8s.io/kube-scheduler/extender/v1/types.go."""

from __future__ import annotations

import json

import numpy as np
from msgspec import Raw

from extender.extender_api import Filtered
from extender.protocol import replies
from extender.protocol.requests import Asked

ASKED = Asked(Raw(b"{}"), ["a", "b", "c", "d"])


def test_replies_are_a_bare_list_without_zeros_and_escaped() -> None:
    """Null would be read as if there were no list at all, as of an extender that keeps no nodes."""
    assert json.loads(replies.filter_reply(ASKED, Filtered([])))["NodeNames"] == []
    reply = json.loads(replies.points_reply({"a": 7, "b": 0, "c": -30}))
    assert reply == [{"Host": "a", "Score": 7}, {"Host": "c", "Score": -30}]
    assert json.loads(replies.points_reply({"a": 1, "b": 2})) == [{"Host": "a", "Score": 1}, {"Host": "b", "Score": 2}]
    assert replies.points_reply({}) == replies.NO_POINTS == b"[]"
    # One fraction, and Go refuses the whole list.
    odd = {"a": np.int64(3), "b": 4.0, "c": True, "d": np.float32(-2)}
    assert replies.points_reply(odd) == (  # type: ignore[arg-type]
        b'[{"Host":"a","Score":3},{"Host":"b","Score":4},{"Host":"c","Score":1},{"Host":"d","Score":-2}]'
    )
    reply = json.loads(replies.filter_reply(ASKED, Filtered(['a"\\\n\u2028é'], failed={"</b>": '"'})))
    assert reply["NodeNames"] == ['a"\\\n\u2028é'] and reply["FailedNodes"] == {"</b>": '"'}
