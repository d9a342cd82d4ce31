"""Reads what urllib3 has asked for: no more bytes than are set aside for it, and for no longer than it may take.

The API server and our own services are believed in what they say, but a wrong address, a proxy between or an object
that a user has blown up must not take the memory of the process (base/bounded_reading.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import urllib3

from base.bounded_reading import ROOM, AnswerTooLarge, AnswerTooSlow, read_whole

LARGEST_ANSWER: Final = 2**27
"""Bytes. The largest that are honest: 100,000 pods as a client without pages lists them, with their metadata only."""


class OversizedAnswer(urllib3.exceptions.HTTPError):
    """The answer has more bytes than are read; what is left of it has been dropped."""


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer that was read to its end, whatever its status."""

    status: int
    data: bytes
    headers: urllib3.HTTPHeaderDict


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
