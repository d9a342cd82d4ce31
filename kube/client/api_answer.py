"""The API server's answer to one request: how much of it is read and for how long, and what became of the request.

The API server and our own services are believed in what they say, but a wrong address, a proxy between or an object
that a user has blown up must not take the memory of the process (base/bounded_reading.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import urllib3

from base.bounded_reading import ROOM, AnswerTooLarge, AnswerTooSlow, read_whole

NO_ANSWER: Final = 0
NOT_SENT: Final = -1
_NO_ANSWER_TEXT: Final = "no answer: "
_LONGEST_RETRY_AFTER_SECONDS: Final = 30.0

LARGEST_ANSWER: Final = 2**27
"""Bytes. The largest that are honest: 100,000 pods as a client without pages lists them, with their metadata only."""


class Cause(msgspec.Struct):
    """One of the causes that the API server names of a failure."""

    field: str = ""
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[Cause] | None = None


class _Failure(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """
    status              : NO_ANSWER: none came, the request may or may not have been carried out; NOT_SENT: it was not
    text                : of a failure, in one line
    retry_after_seconds : how long the server asks to be left alone, bounded; 0 = it does not
    """

    status: int
    body: bytes = b""
    text: str = ""
    retry_after_seconds: float = 0.0

    @property
    def is_success(self) -> bool:
        """Whether it was carried out."""
        return 200 <= self.status < 300

    @property
    def why_none(self) -> str:
        """Why no answer came; '' = one came."""
        return self.text.removeprefix(_NO_ANSWER_TEXT) if self.status == NO_ANSWER else ""

    @property
    def reason(self) -> str:
        """The API server's word for a failure, such as NotFound; '' = another server's answer."""
        return _said(self.body).reason

    @property
    def causes(self) -> list[Cause]:
        """What the API server names as the causes of a failure."""
        details = _said(self.body).details
        return (details.causes if details is not None else None) or []


def answered(status: int, body: bytes, retry_after: str = "") -> ApiAnswer:
    """retry_after: the header of that name; only its form in seconds is understood."""
    if status < 300:
        return ApiAnswer(status, body)
    digits = retry_after.strip()
    # isdigit alone lets other scripts' digits through, and a number of thousands of digits cannot be converted.
    asked = float(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 else 0.0
    return ApiAnswer(status, body, _message(status, body), min(asked, _LONGEST_RETRY_AFTER_SECONDS))


def unanswered(error: BaseException) -> ApiAnswer:
    """The connection failed, or time was up."""
    words = str(error) or type(error).__name__
    return ApiAnswer(NO_ANSWER, text=_NO_ANSWER_TEXT + " ".join(words.split())[:300])


def not_sent(why: str) -> ApiAnswer:
    """It was not even tried."""
    return ApiAnswer(NOT_SENT, text=why)


def is_gone(answer: ApiAnswer) -> bool:
    """Whether the object that a request means, by name and UID, is no more: there is none, or one of another UID.

    The precondition of a DELETE fails as a conflict; a patch that names another UID would change it, which is invalid
    (as seen of Kubernetes 1.36). Other conflicts and other mistakes in a patch have the same statuses.
    """
    if answer.status not in (404, 409, 422):
        return False
    if answer.status == 409:
        return any(words in _said(answer.body).message for words in ("UID in the precondition", "UID in precondition"))
    return answer.status == 404 or any(cause.field == "metadata.uid" for cause in answer.causes)


def _message(status: int, body: bytes) -> str:
    """What the API server says about a failure, in one line."""
    return " ".join(f"{status} {_said(body).message}".split())[:400]


def _said(body: bytes) -> _Failure:
    try:
        return msgspec.json.decode(body, type=_Failure)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Failure(body[:200].decode(errors="replace"))


class OversizedAnswer(urllib3.exceptions.HTTPError):
    """The answer has more bytes than are read; what is left of it has been dropped."""


def read_answer(answer: urllib3.BaseHTTPResponse, *, most: int = LARGEST_ANSWER, seconds: float) -> bytes:
    """The body of an answer that is still unread. seconds: for all of it; most: bytes, as decompressed.

    Its connection is used again unless this raises: OversizedAnswer, urllib3's HTTPError, OSError.
    """
    try:
        with ROOM.reading() as hold:
            # read1 returns what has come: read would wait for a whole piece, however slowly it drips.
            return bytes(read_whole(answer.read1, hold, most=most, seconds=seconds))
    except AnswerTooLarge as error:
        answer.close()
        raise OversizedAnswer(str(error)) from error
    except AnswerTooSlow as error:
        answer.close()
        raise urllib3.exceptions.TimeoutError(f"the server {error}") from error
    except BaseException:
        answer.close()
        raise
