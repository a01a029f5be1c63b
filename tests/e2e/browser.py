# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through a pipe by the DevTools protocol, which needs no other package."""
import base64
import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

LIMIT = float(os.environ.get("CACHEGRAM_TEST_TIMEOUT", "120"))
KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Escape": 27, "Tab": 9, "Enter": 13, " ": 32, "ArrowUp": 38, "ArrowDown": 40, "+": 187, "-": 189}


class Browser:
    def __init__(self, command, folder):
        self.inbox, out_end = os.pipe()
        in_end, self.outbox = os.pipe()
        # The pipes' ends must be descriptors 3 and 4 of the browser: from higher ones, so that neither hides the other.
        theirs_in, theirs_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (in_end, out_end))
        os.close(in_end)
        os.close(out_end)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
                   "--disable-background-networking", f"--user-data-dir={folder}", "--window-size=1200,900", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out} {theirs_in}<&- {theirs_out}>&-', "bash", command, *options],
                                        pass_fds=[theirs_in, theirs_out], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.next, self.session, self.events = b"", 1, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.outbox)  # it ends then
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.inbox)

    def message(self):
        end = time.monotonic() + LIMIT
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inbox], [], [], max(0, end - time.monotonic()))
            data = os.read(self.inbox, 1 << 16) if ready else b""
            assert data, "the browser does not answer"
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        request = {"id": self.next, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        self.next += 1
        os.write(self.outbox, json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == request["id"]:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def wait(self, method):
        for message in self.events:
            if message.get("method") == method:
                return
        while (message := self.message()).get("method") != method:
            self.events.append(message)

    def open(self, path):
        """Loads a file and waits until its page is made."""
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.wait("Page.loadEventFired")

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def key(self, name):
        text = {"Enter": "\r", " ": " "}.get(name)  # with it a key does what it does by default, such as to press a button
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code="Space" if name == " " else name, windowsVirtualKeyCode=KEYS[name],
                      **({"text": text} if kind == "keyDown" else {}))
        self.settle()

    def settle(self):
        """Two frames later all that a key or click causes is drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")

    def mouse(self, x, y, *kinds):
        for kind in kinds:
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left", clickCount=1)
        self.settle()

    def drag(self, x, y, to_x, to_y, steps=8):
        """With the button held, which was pressed before; then releases it."""
        for i in range(1, steps + 1):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", button="left", buttons=1, x=x + (to_x - x) * i / steps, y=y + (to_y - y) * i / steps)
        self.mouse(to_x, to_y, "mouseReleased")

    def media(self, **features):
        media = features.pop("media", "")
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": k.replace("_", "-"), "value": v} for k, v in features.items()])
        self.settle()

    def complaints(self):
        """What a console would show, and every address that was asked for besides the page's own."""
        self.evaluate("0")
        found = []
        for message in self.events:
            method, params = message.get("method"), message.get("params", {})
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(params)
            if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:")):
                found.append(params["request"]["url"])
        return found

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", optimizeForSpeed=False)["data"])

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])


@contextlib.contextmanager
def browser():
    command = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert command, "chromium is not installed (scripts/install-deps.sh test)"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        b = Browser(command, folder)
        try:
            yield b
        finally:
            b.close()
