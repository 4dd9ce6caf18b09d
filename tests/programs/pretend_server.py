"""A process that looks like SGLang with two ranks: ``-m sglang.launch_server`` runs this file.

It tells its pid, then those of its ranks.
"""

import subprocess
import sys
from pathlib import Path

STUCK = Path(__file__).with_name("stuck.py")


def main() -> None:
    ranks = [
        subprocess.Popen(
            [f"sglang::scheduler_TP{rank}", str(STUCK), "lock"],
            executable=sys.executable,
            stdout=subprocess.DEVNULL,
        )
        for rank in range(2)
    ]
    sys.stdout.write(f"ready {' '.join(str(rank.pid) for rank in ranks)}\n")
    sys.stdout.flush()
    for rank in ranks:
        rank.wait()


if __name__ == "__main__":
    main()
