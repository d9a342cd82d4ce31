"""Bodies of requests, broken at random."""

from __future__ import annotations

import json
import random

POD = {"metadata": {"namespace": "shop", "name": "cart-1"}, "spec": {"containers": [{"name": "cart"}]}}
BODY = json.dumps({"pod": POD, "nodes": ["node-01", "node-02"], "weights": {"predicted_peak": 1}}).encode()


def mutated(rng: random.Random) -> bytes:
    """The body above, broken in one to four places."""
    return broken(BODY, rng)


def broken(whole: bytes, rng: random.Random) -> bytes:
    """A body, broken in one to four places."""
    body = bytearray(whole)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(body))
        match rng.randrange(5):
            case 0:
                body[at] = rng.randrange(256)
            case 1:
                del body[at : at + rng.randrange(1, 30)]
            case 2:
                body[at:at] = bytes(rng.choices(b'{}[]",:0-9eE.\\u\x00\xff', k=rng.randrange(1, 20)))
            case 3:
                body[at:at] = rng.choice([b"1e999", b"-0", b"null", b"NaN", b'"\\ud800"', b"9" * 400, b"[" * 3000])
            case _:
                body[at:at] = body[: rng.randrange(len(body))]
        body = body or bytearray(b" ")
    return bytes(body)
