"""The made-up scorer in a process of its own: python -m tests.scorer.service.serve_fake_scorer PORT [DRAIN] [SLOW]

DRAIN: drain_seconds; SLOW: seconds that every answer takes, which prints "at work". Prints the address first.
Its page is worth a look.
"""

from __future__ import annotations

import sys
import time

from scorer.service.app import create_app
from scorer.service.options import ServiceOptions
from serving.options import ServerOptions
from serving.server import serve
from tests.scorer.service.fake_scorer import FakeScorer


def main() -> None:
    port, drain, slow = (float(argument) for argument in [*sys.argv[1:], "0", "0", "0"][:3])
    scorer = FakeScorer()

    def work() -> None:
        if slow:
            print("at work", flush=True)
            time.sleep(slow)

    scorer.fail = work
    app = create_app(scorer, ServiceOptions(max_body_bytes=2**20, deadline=10))
    options = ServerOptions(port=int(port), drain=drain, header_timeout=1.0)
    serve(app, options, lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
