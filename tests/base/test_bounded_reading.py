"""How much the answers that a process reads at the same time take together."""

from __future__ import annotations

import threading

import pytest

from base.bounded_reading import AnswerTooLarge, AnswerTooSlow, ReadingRoom, read_whole
from testing.waiting import eventually

MIB = 2**20


def _pieces(*pieces: bytes) -> object:
    left = list(pieces)
    return lambda most: left.pop(0) if left else b""


def test_an_answer_is_read_to_its_end() -> None:
    with ReadingRoom(MIB).reading() as hold:
        assert read_whole(_pieces(b"a", b"bc"), hold, most=3, seconds=1.0) == b"abc"  # type: ignore[arg-type]


def test_an_answer_is_given_up_at_the_first_byte_too_many() -> None:
    read = _pieces(b"abc", b"d", b"never read")
    with ReadingRoom(MIB).reading() as hold, pytest.raises(AnswerTooLarge, match="larger than 3 bytes, the most"):
        read_whole(read, hold, most=3, seconds=1.0)  # type: ignore[arg-type]
    assert read(1) == b"never read"  # type: ignore[operator]


def test_an_answer_that_drips_is_given_up() -> None:
    now = iter(range(1000))
    with ReadingRoom(MIB).reading() as hold, pytest.raises(AnswerTooSlow, match="within 5 s"):
        read_whole(lambda most: b"a", hold, most=MIB, seconds=5.0, clock=lambda: float(next(now)))


def test_answers_share_the_room_and_the_first_goes_on() -> None:
    room, got, held = ReadingRoom(2 * MIB), threading.Event(), []
    with room.reading() as first:
        first(3 * MIB, 1.0)  # the first MiB of each is free
        assert room.held_bytes == 2 * MIB

        def second() -> None:
            with room.reading() as hold:
                hold(2 * MIB, 60.0)
                held.append(room.held_bytes)
                got.set()

        thread = threading.Thread(target=second)
        thread.start()
        eventually(lambda: len(room._held) == 2)
        first(50 * MIB, 0.0)  # no wait: else two that need more would wait for each other for ever
        assert not got.is_set()
    assert got.wait(60)
    thread.join(60)
    assert held == [MIB] and room.held_bytes == 0


def test_an_answer_that_finds_no_room_is_given_up() -> None:
    room = ReadingRoom(MIB)
    with room.reading() as first, room.reading() as second:
        first(2 * MIB, 0.0)
        with pytest.raises(AnswerTooSlow, match="no room beside other answers"):
            second(2 * MIB, 0.01)
        second(MIB, 0.0)  # what is small never waits
