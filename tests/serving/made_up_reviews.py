"""An API server made up for unit tests of who may ask: users by token, rights by user, and what was asked."""

from __future__ import annotations

import json
import threading

from serving.kubernetes_reviews import TOKEN_REVIEWS, ReviewFailed


class MadeUpReviews:
    """users: by token; rights: (user, verb, path). hold: set it to let reviews end, hold_made_up: those of tokens that
    are nobody's; away: no answer at all."""

    def __init__(self) -> None:
        self.users = {"alices": "alice", "bobs": "bob"}
        self.rights = {("alice", "get", "/v1/nodes"), ("alice", "get", "/metrics")}
        self.asked: list[str] = []
        self.away = False
        self.hold = threading.Event()
        self.hold_made_up = threading.Event()
        self.hold.set()
        self.hold_made_up.set()
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        """As an API server answers."""
        spec = json.loads(body)["spec"]
        with self._lock:
            self.asked.append(spec["token"] if path == TOKEN_REVIEWS else spec["user"])
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            made_up = path == TOKEN_REVIEWS and spec["token"] not in self.users
            if not self.hold.wait(30) or (made_up and not self.hold_made_up.wait(30)):
                raise RuntimeError("nobody let the review end")
        finally:
            with self._lock:
                self.at_once -= 1
        if self.away:
            raise ReviewFailed("the API server does not answer")
        if path == TOKEN_REVIEWS:
            name = self.users.get(spec["token"])
            return 201, _json({"authenticated": name is not None, "user": {"username": name or ""}})
        wanted = spec["nonResourceAttributes"]
        return 201, _json({"allowed": (spec["user"], wanted["verb"], wanted["path"]) in self.rights})


def _json(status: dict[str, object]) -> bytes:
    return json.dumps({"status": status}).encode()
