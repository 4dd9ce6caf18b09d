"""A target that fails once it was sent all of its culprits: ``fragile_target.py PORT RULES``.

RULES is JSON: *culprits* words of prompts; *least* how long the prompt of a culprit has to be;
*kind* what it does then, "crash" or "hang"; *starts* a file that gets a line for each start, and
*seen* one for each request. *running* is what its loads show. *spares* is how often it lives on
although it was sent all of them, counted in the file *spared* over all starts.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RULES: dict[str, Any] = {"culprits": [], "least": 0, "kind": "crash", "running": 0, "spares": 0}
MET: set[str] = set()
HUNG = threading.Event()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if HUNG.is_set():
            time.sleep(3600)
        if self.path.startswith("/v1/loads"):
            running = {"dp_rank": 0, "num_running_reqs": RULES["running"], "num_waiting_reqs": 0}
            self.say(200, {"loads": [{**running, "timestamp": time.time()}]})
        else:
            self.say(200 if self.path == "/health" else 404, {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = str(asked.get("text"))
        note("seen", text[:40])
        if len(text) >= RULES["least"]:
            MET.update(word for word in RULES["culprits"] if word in text)
        if RULES["culprits"] and MET.issuperset(RULES["culprits"]) and not spared():
            self.fail()
        self.say(200, {"text": "ok", "meta_info": {"finish_reason": {"type": "stop"}}})

    def fail(self) -> None:
        if RULES["kind"] == "crash":
            os._exit(9)
        HUNG.set()
        time.sleep(3600)

    def say(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


def note(name: str, line: str) -> None:
    if name in RULES:
        with Path(RULES[name]).open("a") as file:
            file.write(f"{line}\n")


def spared() -> bool:
    file = Path(str(RULES.get("spared")))
    if not RULES["spares"] or (file.exists() and len(file.read_text()) >= RULES["spares"]):
        return False
    MET.clear()
    with file.open("a") as kept:
        kept.write(".")
    return True


if __name__ == "__main__":
    RULES.update(json.loads(sys.argv[2]))
    note("starts", str(os.getpid()))
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
