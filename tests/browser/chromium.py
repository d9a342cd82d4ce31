"""A real headless Chromium, spoken to over its DevTools protocol. Leaves no process and no file behind.

Looked for in $CHROMIUM, on PATH, and in our cache, where Debian's package with its libraries is unpacked if need be.
https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import connect

from testing.servers.program_cache import unpacked_once

_INSTALL = Path(__file__).with_name("install_chromium.sh")
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Nothing but the page under test is asked for: no update, no sync, no component, no look-up beside it.
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --no-default-browser-check "
    "--disable-background-networking --disable-quic --disable-component-update --disable-sync --disable-extensions "
    "--disable-domain-reliability --disable-features=OptimizationHints,Translate,MediaRouter --metrics-recording-only "
    "--host-resolver-rules=MAP~*~~NOTFOUND,EXCLUDE~127.0.0.1 --remote-debugging-port=0 --hide-scrollbars"
)


_COUNT_COLOURS = """(async () => {
    const image = new Image();
    image.src = SOURCE;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    return new Set(new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer)).size;
})()"""


@cache
def _binary() -> tuple[str, dict[str, str]]:
    """Path of the browser and the environment it needs."""
    for name in (os.environ.get("CHROMIUM"), *_NAMES):
        if name and (found := shutil.which(name)):
            return found, {}
    folder = unpacked_once("chromium", _INSTALL)
    usual = (folder / "usr/lib").glob("*-linux-gnu*")
    private = (folder / "usr/lib").glob("*-linux-gnu*/pulseaudio")  # libpulse finds its own part by an absolute path
    libraries = [str(path) for path in (folder / "usr/lib", *usual, *private, folder / "lib")]
    return str(folder / "usr/lib/chromium/chromium"), {
        "LD_LIBRARY_PATH": ":".join(libraries),
        "FONTCONFIG_PATH": str(folder / "etc/fonts"),
        "FONTCONFIG_SYSROOT": str(folder),
    }


class Browser:
    """Context manager; one process, many pages."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        binary, environment = _binary()
        flags = [flag.replace("~", " ") for flag in _FLAGS.split()]
        self._process = subprocess.Popen(
            [binary, *flags, f"--user-data-dir={self._folder}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": self._folder} | environment,
        )
        try:
            self.port = self._wait_for_port(seconds=60)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def page(self, url: str, *, width: int = 1280, height: int = 900, phone: bool = False, dark: bool = False) -> Page:
        """Open an address in a new tab of this size."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=30) as answer:
            target = json.load(answer)
        page = Page(target["webSocketDebuggerUrl"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.command(f"{domain}.enable")
        page.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )
        page.command("Emulation.setTouchEmulationEnabled", enabled=phone)
        scheme = "dark" if dark else "light"
        page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.command("Page.navigate", url=url)
        return page

    def _wait_for_port(self, seconds: float) -> int:
        deadline, told = time.monotonic() + seconds, Path(self._folder) / "DevToolsActivePort"
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                raise RuntimeError(f"{_binary()[0]} ended with status {self._process.returncode} at its start")
            if told.exists() and (lines := told.read_text().split()):
                return int(lines[0])
            time.sleep(0.05)
        raise RuntimeError(f"{_binary()[0]} did not open its DevTools port within {seconds} s")


class Page:
    """One tab. `problems`: what its console was told that a user should never cause; `requested`: addresses asked."""

    def __init__(self, address: str) -> None:
        self._open = ExitStack()
        self._connection = self._open.enter_context(connect(address, max_size=None, open_timeout=30))
        self._numbers = itertools.count(1)
        self.problems: list[str] = []
        self.requested: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.command("Page.close")
        self._open.close()

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its result."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv(timeout=60))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return dict(message["result"])
            self._note(message)

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression."""
        result = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 30) -> None:
        """Until a JavaScript expression is true; one that fails is not true yet, as before there is a document."""
        guarded = f"(() => {{ try {{ return Boolean({condition}); }} catch {{ return false; }} }})()"
        deadline = time.monotonic() + seconds
        while not self.run(guarded):
            if time.monotonic() > deadline:
                raise AssertionError(f"{condition} did not become true; the page says: {self.text('body')[:2000]}")
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        """Text of the first element, as shown."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def press(self, key: str) -> None:
        """A key without a character."""
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Tab": 9}
        for kind in ("rawKeyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])
        if key == "Enter":
            self.command("Input.dispatchKeyEvent", type="char", text="\r", key=key)

    def type(self, text: str) -> None:
        """Into what has the focus."""
        self.command("Input.insertText", text=text)

    def click(self, x: float, y: float) -> None:
        """The mouse goes to a place of the window and clicks."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def tap(self, x: float, y: float) -> None:
        """A finger does."""
        self.command("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def screenshot(self, clip: dict[str, float] | None = None) -> bytes:
        """PNG of the whole page, or of a part of it: x, y, width, height."""
        part = {} if clip is None else {"clip": clip | {"scale": 1}}
        result = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, **part)
        return base64.b64decode(result["data"])

    def count_colours(self, png: bytes) -> int:
        """How many colours a picture has. Only on a page that may load data: addresses, such as about:blank."""
        source = "data:image/png;base64," + base64.b64encode(png).decode()
        return int(self.run(_COUNT_COLOURS.replace("SOURCE", json.dumps(source))))

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.problems.append(str(details.get("exception", details).get("description", details)))
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                self.problems.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
