"""What is wrong with a policy document, and where: one sentence that begins with the place.

policies.batch.scores.weights.predicted_peek: there is no score 'predicted_peek': did you mean predicted_peak?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

from base.errors import InputError

_LONGEST = 600  # bytes of what a document says are in the message; it goes into events, too


class DocumentMistake(InputError):
    """The document cannot take effect. place: keys from the top, joined by dots; '' = the document as a whole."""

    def __init__(self, place: str, what: str) -> None:
        self.place, self.what = place, _shortened(what)
        super().__init__(f"{_shortened(place)}: {self.what}" if place else self.what)


@contextmanager
def blamed_on(place: str) -> Iterator[None]:
    """An InputError of what is done inside is a mistake at this place."""
    try:
        yield
    except DocumentMistake:
        raise
    except InputError as error:
        raise DocumentMistake(place, str(error)) from error


def way_out(name: str, known: Iterable[str]) -> str:
    """The name that was probably meant, else all there are."""
    names = list(known)
    if near := get_close_matches(name, names, n=1):
        return f"did you mean {near[0]}?"
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"known are: {shown or 'none'}"


def _shortened(text: str) -> str:
    """One line that can be encoded, whatever the document says."""
    text = " ".join(text.encode(errors="replace").decode().split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
