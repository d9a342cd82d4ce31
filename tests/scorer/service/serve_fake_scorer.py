"""The made-up scorer in a process of its own: python -m tests.scorer.service.serve_fake_scorer PORT [DRAIN SECONDS]

Prints its address. Its page is worth a look.
"""

from __future__ import annotations

import sys

from forecast.hot_share import HOT_SHARE
from scorer.service.app import create_app
from scorer.service.scorer_service_settings import ScorerServiceOptions
from serving.server import serve
from serving.server_settings import ServerOptions, ServingOptions
from testing.constants import with_constants
from tests.scorer.service.fake_scorer import FakeScorer


def main() -> None:
    port, drain = (float(argument) for argument in [*sys.argv[1:], "0", "0"][:2])
    app = create_app(
        FakeScorer(),
        with_constants(ScorerServiceOptions(), serving=ServingOptions(max_body_bytes=2**20), deadline=10),
        hot=HOT_SHARE,
    )
    options = with_constants(ServerOptions(port=int(port), drain=drain), header_timeout=1.0)
    serve(app, options, lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
