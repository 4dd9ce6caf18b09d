"""Plays a server that tells something of itself beside its stacks, well or badly.

``python -m sglang.launch_server [--ras HOW] [--recorder FOLDER] [--writes N] …``; nothing but the
standard library. NCCL_RAS_ADDR and TORCH_FR_DUMP_TEMP_FILE are read as the real ones are. Once all
of it is open it says "ready" to the descriptor READY, and closes that.
"""

import argparse
import json
import os
import socket
import socketserver
import threading
import time
from contextlib import suppress
from pathlib import Path

STATUS = {"nccl_version": "2.28.9", "communicators": [{"hash": "0x1", "size": 2, "ranks": []}]}


class Ras(socketserver.StreamRequestHandler):
    """One client of NCCL's RAS, as it is since 2.28.7, or as ``--ras`` says."""

    def handle(self) -> None:
        match HOW.ras:
            case "silent":
                time.sleep(60)
            case "garbage":
                self.wfile.write(os.urandom(4096))
            case "endless greeting":
                self.endless()
            case _:
                self.converse()

    def converse(self) -> None:
        form = "text"
        for line in self.rfile:
            match line.decode().strip().lower():
                case "client protocol 2":
                    self.wfile.write(b"SERVER PROTOCOL 2\n")
                case "set format json" if HOW.ras == "old":
                    self.wfile.write(b"ERROR: Unknown command\n")
                case "set format json" if HOW.ras != "hangs up":
                    form = "json"
                    self.wfile.write(b"OK\n")
                case "verbose status":
                    return self.status(form)
                case _:
                    return None
        return None

    def status(self, form: str) -> None:
        if HOW.ras == "endless":
            self.endless()
        elif HOW.ras == "drips":
            while True:
                self.wfile.write(b".")
                time.sleep(0.1)
        elif form == "json":
            self.wfile.write(json.dumps(STATUS).encode())
        else:
            self.wfile.write(b"NCCL version 2.24.3\nJob summary\n")

    def endless(self) -> None:
        while True:
            self.wfile.write(b"x" * 65536)


class RasServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The client went away: it had enough."""


def listening_ras() -> RasServer:
    return RasServer(("127.0.0.1", int(os.environ["NCCL_RAS_ADDR"].rpartition(":")[2])), Ras)


def opened_pipe(folder: Path) -> int:
    """Torch's pipe, as this process holds it."""
    pipe = folder / "flight_rank_0.pipe"
    os.mkfifo(pipe)
    return os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)


def record_flights(descriptor: int) -> None:
    """Any byte makes it write its dump, slowly."""
    while True:
        time.sleep(0.05)
        if os.read(descriptor, 4096) and HOW.writes:
            with Path(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + "0").open("wb") as dump:
                for number in range(HOW.writes):
                    dump.write(b"\x80\x04 not to be loaded %d\n" % number)
                    dump.flush()
                    time.sleep(0.3)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ras")
    parser.add_argument("--recorder", type=Path)
    parser.add_argument("--writes", type=int, default=3)
    return parser.parse_known_args()[0]


def main() -> None:
    if HOW.ras:
        threading.Thread(target=listening_ras().serve_forever, daemon=True).start()
    if HOW.recorder:
        pipe = opened_pipe(HOW.recorder)
        threading.Thread(target=record_flights, args=(pipe,), daemon=True).start()
    with suppress(OSError):  # where its output goes may be open for reading only
        print(f"[2026-01-01 00:00:00] serving on {socket.gethostname()}", flush=True)  # noqa: T201
    with open(int(os.environ["READY"]), "wb", buffering=0) as ready:  # noqa: PTH123
        ready.write(b"ready")
    while True:
        time.sleep(1)


HOW = arguments()
if __name__ == "__main__":
    main()
