"""Drives Debian's chromium without a window, by the DevTools protocol over a pipe: no port, no package."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

#: a browser that takes longer for one answer hangs
TIMEOUT = 120


def find() -> str | None:
    """The browser of $MEMPLAN_BROWSER, else the first of the usual names."""
    given = os.environ.get("MEMPLAN_BROWSER")
    names = [given] if given else ["chromium", "chromium-browser", "google-chrome"]
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """One process; `open` gives a page."""

    def __init__(self, program: str):
        self.profile = tempfile.TemporaryDirectory(prefix="memplan-browser", ignore_cleanup_errors=True)
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # The protocol's pipes are descriptors 3 and 4, where something else may be now.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]

        def place_pipes():
            for end, number in zip(ends, (3, 4)):
                os.dup2(end, number)

        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "--no-sandbox",
                 "--no-first-run", "--no-default-browser-check", "--disable-gpu", "--disable-dev-shm-usage",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb",
                 "--host-resolver-rules=MAP * ~NOTFOUND"]
        self.process = subprocess.Popen([program, *flags, "about:blank"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=place_pipes, pass_fds=(3, 4))
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self.buffer = b""
        self.number = 0
        self.events: list[dict] = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        for end in (self.write_end, self.read_end):
            os.close(end)
        self.profile.cleanup()

    def call(self, method: str, session: str | None = None, **parameters) -> dict:
        """Sends a command and waits for its answer; what else arrives goes to `events`."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        while True:
            answer = self.receive(TIMEOUT)
            if answer is None:
                raise RuntimeError(f"the browser does not answer {method}")
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def receive(self, seconds: float) -> dict | None:
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0, end - time.monotonic()))
            data = os.read(self.read_end, 1 << 20) if ready else b""
            if not data:
                return None
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, **options) -> "Page":
        return Page(self, path, **options)


class Page:
    """A tab with a local file, loaded. `problems` are console errors, exceptions and policy violations; `requests`
    all addresses that were asked for."""

    def __init__(self, browser: Browser, path, width: int = 1440, height: int = 900, dark: bool = False,
                 reduced_motion: bool = False):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.seen = len(browser.events)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"}])
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        self.settle()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def call(self, method: str, **parameters) -> dict:
        return self.browser.call(method, self.session, **parameters)

    def own_events(self) -> list[dict]:
        return [e for e in self.browser.events[self.seen:] if e.get("sessionId") == self.session]

    def wait_for(self, method: str) -> None:
        end = time.monotonic() + TIMEOUT
        while not any(e["method"] == method for e in self.own_events()):
            event = self.browser.receive(end - time.monotonic())
            if event is None:
                raise RuntimeError(f"no {method} of the browser")
            self.browser.events.append(event)

    def settle(self) -> None:
        """Until what was asked for is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def evaluate(self, expression: str):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def mouse(self, kind: str, x: float, y: float, **options) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **options)

    def move(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x: float, y: float) -> None:
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.settle()

    def press(self, key: str, shift: bool = False) -> None:
        """A key by its name, such as ArrowLeft, or a character."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=8 if shift else 0,
                      windowsVirtualKeyCode=code.get(key, 0), **({"text": text} if text and kind == "keyDown" else {}))
        self.settle()

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path, whole: bool = False) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    @property
    def problems(self) -> list[str]:
        found = []
        self.evaluate("0")  # what came before has then been received
        for event in self.own_events():
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(str(parameters["args"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    @property
    def requests(self) -> list[str]:
        return [e["params"]["request"]["url"] for e in self.own_events() if e["method"] == "Network.requestWillBeSent"]
