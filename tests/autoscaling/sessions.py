"""Sessions with a real API server that end in the middle of the work, or in which others write at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kube.client.api_answer import ApiAnswer
from kube.session.api_session import ApiSession


class Killed(BaseException):
    """The process ended here: no code of ours runs after it."""


class Counting:
    """A session whose process is killed at a write: before it is sent, or after it was carried out.

    meddle    : called right before the first write
    refuses   : part of the paths to which the API server lets no user write; '' = of none
    conflicts : each write meets a newer version of its object
    writes    : that were sent
    """

    def __init__(
        self,
        session: ApiSession,
        *,
        dies_at: int = 10**9,
        after: bool = False,
        meddle: Callable[[], object] | None = None,
        refuses: str = "",
        conflicts: bool = False,
    ) -> None:
        self._session, self._dies_at, self._after, self.writes = session, dies_at, after, 0
        self._meddle, self._refuses, self._conflicts = meddle, refuses, conflicts

    async def request(
        self, method: str, path: str, body: bytes | None, *, content_type: str = "application/json", seconds: float
    ) -> ApiAnswer:
        is_write = method != "GET"
        number = self.writes if is_write else -1
        self.writes += is_write
        if number == 0 and self._meddle is not None:
            await asyncio.to_thread(self._meddle)
        if number > self._dies_at or (number == self._dies_at and not self._after):
            raise Killed
        if is_write and self._refuses and self._refuses in path:
            return ApiAnswer(403, text="exceeded quota")
        if is_write and self._conflicts:
            return ApiAnswer(409, text="the object has been modified")
        answer = await self._session.request(method, path, body, content_type=content_type, seconds=seconds)
        if number == self._dies_at:
            raise Killed
        return answer
