"""Answers that no Prometheus gives, made from those of a real one; seeded, so that a failure can be repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from testing.servers.bad_proxy import Lie


def _every_sample(change: Callable[[list[Any]], Any]) -> Lie:
    def lie(body: bytes) -> bytes:
        document = json.loads(body)
        for series in document["data"]["result"]:
            if "value" in series:
                series["value"] = change(series["value"])
            else:
                series["values"] = [change(sample) for sample in series["values"]]
        return json.dumps(document).encode()

    return lie


def _every_series(change: Callable[[dict[str, Any]], Any]) -> Lie:
    def lie(body: bytes) -> bytes:
        document = json.loads(body)
        document["data"]["result"] = [change(series) for series in document["data"]["result"]]
        return json.dumps(document).encode()

    return lie


def _document(change: Callable[[dict[str, Any]], Any]) -> Lie:
    return lambda body: json.dumps(change(json.loads(body))).encode()


def _labels(change: Callable[[dict[str, str]], Any]) -> Lie:
    return _every_series(lambda series: {**series, "metric": change(series["metric"])})


LIES: Final[Mapping[str, Lie]] = {
    "value null": _every_sample(lambda sample: [sample[0], None]),
    "value a number": _every_sample(lambda sample: [sample[0], 1.5]),
    "value a list": _every_sample(lambda sample: [sample[0], ["1"]]),
    "value a word": _every_sample(lambda sample: [sample[0], "much"]),
    "value empty": _every_sample(lambda sample: [sample[0], ""]),
    "value NaN": _every_sample(lambda sample: [sample[0], "NaN"]),
    "value infinite": _every_sample(lambda sample: [sample[0], "+Inf"]),
    "value 1e308": _every_sample(lambda sample: [sample[0], "1e308"]),
    "value of 400 digits": _every_sample(lambda sample: [sample[0], "9" * 400]),
    "value negative": _every_sample(lambda sample: [sample[0], "-1"]),
    "time 1e18": _every_sample(lambda sample: [1e18, sample[1]]),
    "time of 30 digits": _every_sample(lambda sample: [10**30, sample[1]]),
    "time negative": _every_sample(lambda sample: [-1, sample[1]]),
    "time null": _every_sample(lambda sample: [None, sample[1]]),
    "time a text": _every_sample(lambda sample: [str(sample[0]), sample[1]]),
    "time of yesterday": _every_sample(lambda sample: [sample[0] - 86_400, sample[1]]),
    "one time": _every_sample(lambda sample: [1_772_400_000, sample[1]]),
    "sample short": _every_sample(lambda sample: [sample[0]]),
    "sample long": _every_sample(lambda sample: [*sample, "1"]),
    "sample null": _every_sample(lambda sample: None),
    "sample a text": _every_sample(lambda sample: "11"),
    "sample an object": _every_sample(lambda sample: {"0": 0, "1": "1"}),
    "series null": _every_series(lambda series: None),
    "series a list": _every_series(lambda series: [1, "1"]),
    "series empty": _every_series(lambda series: {}),
    "no samples": _every_series(lambda series: {"metric": series["metric"]}),
    "values null": _every_series(lambda series: {"metric": series["metric"], "values": None, "value": None}),
    "values backwards": _every_series(
        lambda series: {**series, "values": series["values"][::-1]} if "values" in series else series
    ),
    "histograms": _every_series(lambda series: {"metric": series["metric"], "histograms": []}),
    "labels null": _labels(lambda labels: None),
    "labels a list": _labels(lambda labels: ["pod", "a"]),
    "labels of numbers": _labels(dict.fromkeys(("namespace", "pod", "node"), 7).__or__),
    "labels nested": _labels(lambda labels: {"pod": {"name": "a"}}),
    "labels empty": _labels(lambda labels: {}),
    "labels odd": _labels(lambda labels: {name: text + "/\x00\n\u202e" for name, text in labels.items()}),
    "labels long": _labels(lambda labels: {name: text * 2_000 for name, text in labels.items()}),
    "every series twice": _document(
        lambda d: {**d, "data": {**d["data"], "result": [one for one in d["data"]["result"] for _ in range(2)]}}
    ),
    "result null": _document(lambda document: {**document, "data": {**document["data"], "result": None}}),
    "result an object": _document(lambda document: {**document, "data": {**document["data"], "result": {}}}),
    "result empty": _document(lambda document: {**document, "data": {**document["data"], "result": []}}),
    "other type": _document(
        lambda d: {
            **d,
            "data": {**d["data"], "resultType": {"matrix": "vector"}.get(d["data"]["resultType"], "matrix")},
        }
    ),
    "type null": _document(lambda document: {**document, "data": {**document["data"], "resultType": None}}),
    "type a list": _document(lambda document: {**document, "data": {**document["data"], "resultType": ["matrix"]}}),
    "no data": _document(lambda document: {"status": "success"}),
    "status error": _document(lambda document: {**document, "status": "error"}),
    "warnings a number": _document(lambda document: {**document, "warnings": 7}),
    "warnings nested": _document(lambda document: {**document, "warnings": [{"a": [None]}] * 3}),
    "a list": _document(lambda document: [document]),
    "null": lambda body: b"null",
    "empty": lambda body: b"",
    "a page": lambda body: b"<html>Please log in</html>",
    "cut off": lambda body: body[:-3],
    "no UTF-8": lambda body: body.replace(b"pod", b"\xff\xfe"),
    "deep": lambda body: b"[" * 50_000 + b"]" * 50_000,
    "bare NaN": lambda body: body.replace(b'"1"', b"NaN"),
}
"""By name."""
