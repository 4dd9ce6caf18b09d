"""Keeps a process for itself until its input ends: python -m tests.programs.holder PID."""

import sys

from app.agent.touching.holds import Holds

if __name__ == "__main__":
    with Holds().hold(int(sys.argv[1]), "py-spy"):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        sys.stdin.read()
