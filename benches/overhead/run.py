#!/usr/bin/env python3
"""What the library costs a call that it leaves alone.

Runs overhead.c with and without the preload by turns, and prints medians: nanoseconds per MPI_Alltoallv and
the difference. On one rank (MPI_COMM_SELF) MPI does next to nothing, so that the difference is the library's;
between two ranks it drowns in the noise of their waiting for each other.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

GOAL = 100  # nanoseconds
SOURCE = Path(__file__).with_name("overhead.c")
MPIS = {
    "Open MPI": ("mpicc.openmpi", ["mpirun.openmpi", "--oversubscribe"]),
    "MPICH": ("mpicc.mpich", ["mpiexec.mpich"]),
}
# The least noisy first.
RANKS = (1, 2)


def environment():
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("TRANSPRESS_")
    }
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return inherited | allowed


def times(launcher, ranks, preload, program):
    """Nanoseconds by what was sent, of one run."""
    under = ["env", f"LD_PRELOAD={preload}"] if preload else []
    command = [*launcher, "-n", str(ranks), *under, program]
    run = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True, timeout=600)
    return {what: float(number) for what, number in map(str.split, run.stdout.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", help="libtranspress.so")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    library = str(Path(arguments.library).resolve(strict=True))

    print(f"{'':<10} {'ranks':>5} {'sent':>5} {'plain ns':>9} {'preloaded ns':>13} {'difference ns':>14}")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name, (compiler, launcher) in MPIS.items():
            program = str(Path(folder) / compiler)
            subprocess.run([compiler, "-O2", "-o", program, SOURCE], check=True)
            for ranks in RANKS:
                rounds = [
                    [times(launcher, ranks, preload, program) for preload in (None, library)]
                    for _ in range(arguments.rounds)
                ]
                for what in ("none", "few"):
                    plain, preloaded = (
                        statistics.median(one[side][what] for one in rounds) for side in (0, 1)
                    )
                    difference = statistics.median(one[1][what] - one[0][what] for one in rounds)
                    if ranks == 1:
                        worst = max(worst, difference)
                    print(
                        f"{name:<10} {ranks:>5} {what:>5} {plain:>9.1f} {preloaded:>13.1f} {difference:>14.1f}",
                        flush=True,
                    )
    verdict = "met" if worst < GOAL else "MISSED"
    print(f"Goal on one rank: less than {GOAL} ns more; {worst:.0f} ns: {verdict}")


if __name__ == "__main__":
    main()
