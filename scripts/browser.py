"""Pictures of pages, by a Chromium without a window, over its debugging pipe.

Chromium's own `--screenshot` comes when the page has loaded; Perfetto's UI and our timeline page
draw later. A page is asked by an expression whether it is done.
"""

import base64
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

FLAGS = (
    "--headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --disable-extensions "
    "--disable-background-networking --remote-debugging-pipe"
).split()
READS, WRITES = 3, 4  # the descriptors that Chromium reads commands from and writes answers to
PATIENCE, POLL = 60.0, 0.2  # s


class Browser:
    """`with Browser("chromium") as browser: browser.shoot(address, out)`."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.commands = os.pipe()
        self.answers, theirs_out = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" {READS}<&{theirs_in} {WRITES}>&{theirs_out}', "bash",
             program, *FLAGS, f"--user-data-dir={self.profile.name}"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.pending, self.number = b"", 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.process.terminate()
        self.process.wait()
        self.profile.cleanup()

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its result."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        command |= {"sessionId": session} if session else {}
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            answer = self._answer()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _answer(self) -> dict[str, Any]:
        while b"\0" not in self.pending:
            data = os.read(self.answers, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def shoot(self, address: str, out: Path, width: int, height: int, done: str = "true") -> None:
        """A PNG of a page, once the expression `done`, or what it promises, holds there."""
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", session, **size)
        self.call("Page.navigate", session, url=address)
        until = time.monotonic() + PATIENCE
        while not self._holds(session, f"document.readyState == 'complete' && ({done})"):
            if time.monotonic() > until:
                raise RuntimeError(f"{address}: {done} did not come to hold in {PATIENCE:g} s")
            time.sleep(POLL)
        time.sleep(1)  # what is drawn after that
        picture = self.call("Page.captureScreenshot", session, format="png")["data"]
        out.write_bytes(base64.b64decode(picture))
        self.call("Target.closeTarget", targetId=page)

    def _holds(self, session: str, expression: str) -> bool:
        found = self.call(
            "Runtime.evaluate", session, expression=expression, returnByValue=True,
            awaitPromise=True,
        )  # fmt: skip
        return bool(found["result"].get("value"))
