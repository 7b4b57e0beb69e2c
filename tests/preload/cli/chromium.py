"""A headless Chromium that a test drives over two pipes, in the DevTools protocol. Open it to let a test do one more
thing with a page.

    with Browser(find_chromium(), folder) as browser:
        browser.open(path_of_a_page)
        assert browser.value("document.title") == "..."
        assert not browser.faults
"""
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import time

PATIENCE = 60  # seconds for an answer; a browser that hangs fails the test


def find_chromium():
    """Returns the path of a Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def pipe():
    """Returns the two ends of a pipe, away from the numbers that the protocol uses in the browser."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Browser:
    """One browser with one page. `faults` are errors of the page, in its console or uncaught; `requests` are the
    addresses that it asked for, besides its own."""

    def __init__(self, executable, folder):
        for_browser, self._out = pipe()
        self._in, of_browser = pipe()
        command = [executable, "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu",
                   "--disable-dev-shm-usage", "--disable-background-networking", "--force-device-scale-factor=1",
                   f"--user-data-dir={pathlib.Path(folder, 'profile')}"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        # bash puts the pipes where the browser looks for them: at 3 and 4.
        placed = f'exec "$@" 3<&{for_browser} 4>&{of_browser} {for_browser}<&- {of_browser}>&-'
        with open(pathlib.Path(folder, "browser.log"), "wb") as log:
            self._process = subprocess.Popen(["bash", "-c", placed, "bash", *command], stdin=subprocess.DEVNULL,
                                             stdout=log, stderr=log, pass_fds=(for_browser, of_browser))
        os.close(for_browser)
        os.close(of_browser)
        self._received = b""
        self._calls = 0
        self._session = None
        self._loaded = False
        self.faults, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self._process.wait(PATIENCE)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **parameters):
        """Returns the result of a method of the protocol. Raises RuntimeError when it fails or the browser is gone."""
        self._calls += 1
        number = self._calls
        message = {"id": number, "method": method, "params": parameters}
        if self._session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self):
        """Returns the next message, having noted what it says of the page."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._received:
            if not select.select([self._in], [], [], max(0, end - time.monotonic()))[0]:
                self._process.kill()  # so that further calls fail at once
                raise RuntimeError("the browser does not answer")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self._received += data
        message, self._received = self._received.split(b"\0", 1)
        message = json.loads(message)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event, what):
        if event == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            self.faults.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.faults.append(str([each.get("value", each.get("description")) for each in what["args"]]))
        elif event == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.faults.append(what["entry"]["text"])
        elif event == "Network.requestWillBeSent" and what["type"] != "Document":
            if not what["request"]["url"].startswith("data:"):
                self.requests.append(what["request"]["url"])
        elif event == "Page.loadEventFired":
            self._loaded = True

    def open(self, path):
        """Opens a file and waits until it is loaded."""
        self.faults.clear()
        self.requests.clear()
        self._loaded = False
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while not self._loaded:
            self._next()

    def value(self, expression):
        """Returns what a JavaScript expression is, or what it promises. Raises RuntimeError when it throws."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 500)

    def prefer(self, scheme):
        """Sets what the system is said to prefer: light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
