"""A headless Chromium, driven through the pipe of its DevTools protocol: JSON messages that each end with a zero byte."""

import json
import os
import shutil
import subprocess
import tempfile

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class Chromium:
    def __init__(self, width=1440, height=900):
        program = next((found for found in map(shutil.which, PROGRAMS) if found), None)
        if program is None:
            raise SystemExit("this machine has no Chromium")
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()
        command = [program, "--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + self.folder.name, "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-gpu", "--disable-sync",
                   "--disable-dev-shm-usage", "--no-proxy-server", "--lang=en-US"]
        command += ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses root otherwise

        def take_pipes():  # Chromium reads descriptor 3 and writes 4
            high = [os.dup(to_browser), os.dup(from_browser)]
            while min(high) < 5:
                high = [os.dup(end) for end in high]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(command + ["about:blank"], preexec_fn=take_pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.received, self.last_id, self.session, self.events = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.ask(domain + ".enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.ask("Browser.close")  # ends the processes that it started, too, which write into the folder
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    def message(self):
        while b"\0" not in self.received:
            piece = os.read(self.input, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.received += piece
        text, self.received = self.received.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.output, text):]
        while True:
            answer = self.message()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(method + ": " + answer["error"]["message"])
                return answer["result"]
            self.events.append(answer)

    def resize(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def open(self, address):
        """Returns once the page has loaded."""
        self.events = []
        self.ask("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def value(self, expression):
        """Of an expression, which may be a promise."""
        answer = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(expression + ": " + str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def look_for(self, selector):
        """In every page opened from now on, for the first element so selected; painted() says when it was seen."""
        self.ask("Page.addScriptToEvaluateOnNewDocument", source=f"""new MutationObserver((_, observer) => {{
          const found = document.querySelector({json.dumps(selector)});
          if (found) {{ found.setAttribute('elementtiming', 'looked for'); observer.disconnect(); }}
        }}).observe(document, {{childList: true, subtree: true}});""")

    def painted(self):
        """Milliseconds from the start of the navigation until the text of the element that look_for() named was on the screen, with all before it."""
        return self.value("""new Promise(done => new PerformanceObserver((list, observer) => {
          observer.disconnect(); done(list.getEntries()[0].renderTime); }).observe({type: 'element', buffered: true}))""")

    def first_paint(self):
        """Milliseconds from the start of the navigation until the first text or picture was painted."""
        return self.value("""new Promise(done => {
          const found = () => performance.getEntriesByName('first-contentful-paint')[0];
          if (found()) return done(found().startTime);
          new PerformanceObserver((list, observer) => { if (found()) { observer.disconnect(); done(found().startTime); } })
            .observe({type: 'paint', buffered: true}); })""")
