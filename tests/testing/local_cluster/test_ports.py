"""A port that is in use is replaced, and that is said."""

import socket
from dataclasses import replace

from testing.local_cluster.running import Ports


def test_a_port_in_use_is_replaced_and_named() -> None:
    assert Ports().moved() == []
    assert replace(Ports(), scorer=4711).moved() == ["port 8080 of scorer is in use: it gets 4711 instead"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        assert replace(Ports(), extender=number).free().extender != number
