"""A check of a target: ``asks_health.py [SECONDS]`` ends with 0 while it answers in that time."""

import os
import sys
import urllib.request

if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    try:
        urllib.request.urlopen(os.environ["BASE_URL"] + "/health", timeout=seconds)
    except OSError as error:
        sys.exit(f"not well: {error}")
