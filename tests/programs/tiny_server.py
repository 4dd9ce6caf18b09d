"""A tiny server of which a test makes commits: ``tiny_server.py PORT``.

FAULT is what it does to a request whose prompt holds BAD-WORD. "dying" answers nobody for a while,
and then ends, as SGLang does when a scheduler died.
"""

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FAULT = "none"
DYING = threading.Event()
DYING_SECONDS = 12


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if DYING.is_set():
            time.sleep(3600)
        self.say({})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = "right"
        if "BAD-WORD" in str(asked.get("text")):
            text = self.fail()
        self.say({"text": text, "meta_info": {"finish_reason": {"type": "stop"}}})

    def fail(self) -> str:
        if FAULT == "crash":
            os._exit(1)
        if FAULT == "dying":
            DYING.set()
            time.sleep(DYING_SECONDS)
            os._exit(1)
        if FAULT == "hang":
            time.sleep(3600)
        if FAULT == "latency":
            time.sleep(6)
        if FAULT == "error":
            self.send_error(500)
        return "wrong" if FAULT == "output" else "right"

    def say(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
