"""The process that evaluates costly expressions: it ends where one of them takes too much time or memory.

    stdin   frames of {"source", "device", "name"}
    stdout  a frame once it is ready, then the answer to each: true, false, or what is wrong

The kernel counts its CPU time and its memory, because nothing else can interrupt the library. See
isolated_evaluator.py.
"""

from __future__ import annotations

import resource
import signal
import struct
import sys
from typing import BinaryIO, Final

import msgspec

from profiles.gpu.dra.selectors.programs import Programs

HEADER: Final = struct.Struct("<I")
"""In front of each frame: the length of its JSON."""
_MOST_CHARACTERS: Final = 16 * 1024


def main(cpu_seconds: float, mebibytes: int) -> None:
    """Answer until the end of stdin. mebibytes: of memory beyond what the process has now."""
    programs = Programs(_MOST_CHARACTERS)
    programs.answer("true", {}, "")  # loads the library, which does not count
    _limit_memory(mebibytes * 2**20)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    _say(answers, True)
    while header := requests.read(HEADER.size):
        asked = msgspec.json.decode(requests.read(HEADER.unpack(header)[0]))
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # its signal ends the process
        answer = programs.answer(asked["source"], asked["device"], asked["name"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        _say(answers, answer)


def _say(answers: BinaryIO, answer: bool | str) -> None:
    body = msgspec.json.encode(answer)
    answers.write(HEADER.pack(len(body)) + body)
    answers.flush()


def _limit_memory(more: int) -> None:
    with open("/proc/self/statm", "rb") as file:
        pages = int(file.read().split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
