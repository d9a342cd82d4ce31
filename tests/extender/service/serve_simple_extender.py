"""The made-up extender in a process of its own: python -m tests.extender.service.serve_simple_extender [hang]

hang: questions are never answered; the only thread is gone for good. Prints the address first.
"""

from __future__ import annotations

import sys
import threading

from extender.service.app import create_app
from extender.service.options import ServiceOptions
from serving.options import ServerOptions
from serving.server import serve
from tests.extender.service.simple_extender import SimpleExtender


def hang() -> None:
    threading.Event().wait()


def main() -> None:
    extender, hangs = SimpleExtender(), "hang" in sys.argv
    if hangs:
        extender.fail = hang
    options = ServiceOptions(deadline=0.2 if hangs else 20, threads=1)
    serve(create_app(extender, options), ServerOptions(port=0, drain=1), lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
