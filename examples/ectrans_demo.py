#!/usr/bin/env python3
"""The ecTrans benchmark of ECMWF, unmodified, with its all-to-alls compressed.

Runs Debian's single-precision benchmark on 4 ranks as it is, then once per codec under `transpress run`, and
prints one table; then on 4 nodes that tests/network/bed makes of this machine, over links of limited rates,
and prints another. `make demo` builds and installs what this needs.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

# In Debian 12, and from Debian 13 on.
BENCHMARKS = ["ectrans-benchmark-sp", "ectrans-benchmark-cpu-sp"]

RANKS = 4
VARIABLES = 5
LEVELS = 20

# Fields lie side by side: the levels of all variables and one surface field, dealt to two groups of ranks.
FIELDS = VARIABLES * LEVELS + 1
LAYOUT = f"2c,{FIELDS // 2}f,*;2c,{FIELDS - FIELDS // 2}f,*"

# One smooth axis, so that nothing is found in the data either.
FLAT = "*"

# libzfp's fixed rate as it is, without a guard: everything goes as compressed as its row says.
AS_IT_IS = ["--guard", "off", "--bits", "even"]

RUNS = {
    "plain": None,
    "fp16": ["--codec", "fp16", "--guard", "off"],
    "zfp 16": ["--rate", "16", "--layout", FLAT, *AS_IT_IS],
    "zfp 8": ["--rate", "8", "--layout", FLAT, *AS_IT_IS],
    "zfp 8, layout": ["--rate", "8", "--layout", LAYOUT, *AS_IT_IS],
    "transpress 16": ["--rate", "16"],
    "transpress 8": ["--rate", "8"],
}

COMMON = ["--comms", "all"]

BED = Path(__file__).resolve().parents[1] / "tests/network/bed"
NOT_ALLOWED = 77  # its exit status where there can be none
LINKS = [100, 500]  # Mbit/s
LINK_RUNS = ["plain", "transpress 16", "transpress 8"]

# What knowing the layout must be worth.
LAYOUT_GAIN = 10

# Several times what a run takes on two busy cores, in seconds.
LIMIT = 300


class Failure(Exception):
    """A line for the user."""


@dataclass
class Traffic:
    """What the report says of the all-to-alls. Each sum is over the communicators of rank 0."""

    calls: int = 0
    before: int = 0
    after: int = 0
    encode: float = 0.0
    wire: float = 0.0
    decode: float = 0.0


@dataclass
class Result:
    seconds: float  # per iteration, median
    error: float
    traffic: Traffic = field(default_factory=Traffic)


def mpirun(program, iterations, link=None):
    """What ecTrans prints, run on all ranks under `program`, a command that takes it as its last arguments.

    `link`: each rank on a node of its own, on links of so many Mbit/s."""
    name = next(filter(shutil.which, BENCHMARKS), None)
    if name is None:
        raise Failure(f"no {' or '.join(BENCHMARKS)} here; `make deps` installs it")
    size = ["-t", "159", "--nfld", str(VARIABLES), "--nlev", str(LEVELS)]
    benchmark = [name, *size, "--niter", str(iterations), "--norms"]
    bed = [] if link is None else [str(BED), "--nodes", str(RANKS), "--rate", f"{link}mbit", "--"]
    command = [*bed, "mpirun.openmpi", "-n", str(RANKS), "--oversubscribe", *program, *benchmark]
    environment = {
        # The ranks outnumber the cores of a small machine already.
        "OMP_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        # Containers forbid process_vm_readv; without this Open MPI says so on every rank.
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    }
    # A preload or settings from outside would make the rows something else than they say.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("TRANSPRESS_")
    }
    try:
        run = subprocess.run(
            command,
            env=inherited | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except FileNotFoundError as error:
        raise Failure(f"{error.filename}: no such program; `make deps` installs it") from error
    except subprocess.TimeoutExpired as error:
        raise Failure(f"still running after {LIMIT} s: {' '.join(command)}") from error
    if run.returncode != 0:
        raise Failure(f"{' '.join(command)}: exit status {run.returncode}\n{run.stdout}{run.stderr}")
    # What the library complains of; Open MPI has its own say on many machines.
    for line in run.stderr.splitlines():
        if line.startswith("transpress: "):
            print(line, file=sys.stderr)
    return run.stdout


def parse(output):
    """ecTrans exits with 0 whatever happens, so that only its output tells whether it got to its end."""

    def number(what, pattern):
        found = re.search(pattern, output, re.DOTALL)
        try:
            return float(found[1])
        except (TypeError, ValueError):
            raise Failure(f"no {what} in the output of ecTrans:\n{output}") from None

    return Result(
        seconds=number("time per iteration", r"\nInverse-direct transforms\n.*?\nmed\s+\(s\):\s+(\S+)"),
        error=number("error", r"\nmax error combined\s+=[\s=]*(\S+)"),
    )


def read_report(path):
    try:
        communicators = json.loads(path.read_text())["communicators"]
        calls = [call for communicator in communicators for call in communicator["calls"]]
        return Traffic(
            calls=sum(call["count"] for call in calls),
            before=sum(call["bytes_before"] for call in calls),
            after=sum(call["bytes_after"] for call in calls),
            encode=sum(call["seconds_encode"] for call in calls),
            wire=sum(call["seconds_wire"] for call in calls),
            decode=sum(call["seconds_decode"] for call in calls),
        )
    except FileNotFoundError:
        raise Failure("no report: the library saw no all-to-all of ecTrans") from None
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"a report that cannot be read: {error!r}\n{path.read_text()}") from error


def compressed(transpress, options, iterations, link=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        program = [transpress, "run", *COMMON, "--report", str(path), *options, "--"]
        result = parse(mpirun(program, iterations, link))
        result.traffic = read_report(path)
    if result.traffic.after >= result.traffic.before:
        raise Failure("nothing was compressed")
    return result


def measure(transpress, iterations):
    results = {}
    for name, options in RUNS.items():
        print(f"ecTrans, {name} ...", file=sys.stderr, flush=True)
        if options is None:
            results[name] = parse(mpirun([], iterations))
        else:
            results[name] = compressed(transpress, options, iterations)
    # Nobody counts the plain run's bytes: they are what the other runs compressed.
    before = {result.traffic.before for name, result in results.items() if RUNS[name] is not None}
    if len(before) != 1:
        raise Failure(f"the runs exchanged different amounts: {sorted(before)} bytes")
    results["plain"].traffic.before = results["plain"].traffic.after = before.pop()
    return results


def table(results):
    yield (
        f"{'':<14} {'MB before':>9} {'on wire':>8} {'ratio':>6} {'s/iter':>7} "
        f"{'encode s':>9} {'wire s':>8} {'decode s':>9} {'max error':>10}"
    )
    for name, result in results.items():
        traffic = result.traffic
        times = (traffic.encode, traffic.wire, traffic.decode)
        encode, wire, decode = ("-" if RUNS[name] is None else f"{time:.3f}" for time in times)
        yield (
            f"{name:<14} {traffic.before / 1e6:>9.2f} {traffic.after / 1e6:>8.2f} "
            f"{traffic.before / traffic.after:>6.2f} {result.seconds:>7.3f} "
            f"{encode:>9} {wire:>8} {decode:>9} {result.error:>10.2e}"
        )
    calls = results["zfp 8"].traffic.calls
    yield f"""
MB         10^6 bytes in the {calls} all-to-alls of the run (spectral <-> Fourier), on rank 0's communicator,
           which spans 2 of the {RANKS} ranks
s/iter     an inverse and a direct transform, median, as ecTrans times them. On one machine messages go
           through shared memory: there is no network to gain from; what is added is the codec's cost
           (on a quiet machine: ranks wait for whatever else runs)
encode ... seconds in the whole run, of the slowest rank; wire includes waiting for the others
max error  ecTrans's own "max error combined", after going to grid points and back {calls // 2} times
transpress as it comes: it finds the layout in the data, shares bits out by error, guards every message
zfp        libzfp's fixed rate as it is, along {FLAT}: one smooth axis
layout     {LAYOUT}: as if told. That is real and imaginary part (2c);
           {VARIABLES} variables x {LEVELS} levels + 1 surface field = {FIELDS} fields, dealt to 2 groups of ranks (f);
           latitudes of one wavenumber after the other, ragged, so as many as a message has (*)
The benchmark transforms one single harmonic: its messages are nearly all zeros, so that these errors say
that the layout matters, and nothing of what compression does to a real forecast."""


def can_have_bed():
    """Prints the bed's own line where it cannot."""
    return subprocess.run([BED, "--nodes", str(RANKS)]).returncode != NOT_ALLOWED


def measure_links(transpress, iterations):
    """Results by link and run."""

    def one(name, link):
        print(f"ecTrans, {name}, {link} Mbit/s ...", file=sys.stderr, flush=True)
        if RUNS[name] is None:
            return parse(mpirun([], iterations, link))
        return compressed(transpress, RUNS[name], iterations, link)

    return {link: {name: one(name, link) for name in LINK_RUNS} for link in LINKS}


def link_table(results):
    yield f"{'':<14} {'Mbit/s':>7} {'s/iter':>7} {'speed-up':>9} {'max error':>10}"
    for link, runs in results.items():
        for name, result in runs.items():
            speed_up = runs["plain"].seconds / result.seconds
            yield f"{name:<14} {link:>7} {result.seconds:>7.3f} {speed_up:>9.2f} {result.error:>10.2e}"
    yield f"""
Each of the {RANKS} ranks on a node of its own: network namespaces of this machine, joined by limited links
(docs/network.md). Compressed are the all-to-alls (spectral <-> Fourier); ecTrans's other transpose, about half of
the bytes, goes point to point and is not."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("transpress", help="the command, with its library beside it or in ../lib")
    parser.add_argument("--iterations", type=int, default=6)
    arguments = parser.parse_args()
    transpress = str(Path(arguments.transpress).resolve())

    results = measure(transpress, arguments.iterations)
    print()
    print("\n".join(table(results)))

    flat, aware = results["zfp 8"].error, results["zfp 8, layout"].error
    gain = flat / aware if aware > 0 else float("inf")
    print(f"\nKnowing the layout makes the error of zfp 8 {gain:.0f} times lower (at least {LAYOUT_GAIN} wanted).")
    # Also false for an error that is not a number.
    if not gain >= LAYOUT_GAIN:
        raise Failure(f"the layout-aware error {aware:.2e} is not {LAYOUT_GAIN} times below the flat {flat:.2e}")

    if can_have_bed():
        results = measure_links(transpress, arguments.iterations)
        print()
        print("\n".join(link_table(results)))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"demo failed: {failure}")
