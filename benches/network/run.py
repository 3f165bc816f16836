#!/usr/bin/env python3
"""What compression wins on a network: an all-to-all of a real field over links of limited rates.

Runs tests/network/field_exchange.c on the cluster that tests/network/bed makes of this machine, and once more
within one node. Each row is a run in which plain and compressed calls take turns. docs/network.md says how to
read the tables.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from netcdf import read_floats

ROOT = Path(__file__).resolve().parents[2]
BED = ROOT / "tests/network/bed"
NOT_ALLOWED = 77  # the bed's exit status where there can be none
FIELD = Path("/usr/share/ncarg/data/cdf/vinth2p.nc"), "T"
MIB = 1 << 20

# Within one node, through shared memory.
UNLIMITED = "unlimited"

# Several times what a run takes on two busy cores, in seconds.
LIMIT = 300


@dataclass
class Mpi:
    name: str
    compiler: str
    launcher: list
    preloads: tuple = ()  # sources of what the ranks need beside the library


MPIS = [
    Mpi("Open MPI", "mpicc.openmpi", ["mpirun.openmpi"]),
    Mpi("MPICH", "mpicc.mpich", ["mpiexec.mpich"], ("tests/mpi/yield.c", "tests/network/leave-tool.c")),
]

CODECS = {
    "fp16": {"TRANSPRESS_CODEC": "fp16"},
    "zfp 16": {"TRANSPRESS_RATE": "16"},
    "zfp 8": {"TRANSPRESS_RATE": "8"},
    # The largest error that float16 makes between 256 and 512 K.
    "tolerance": {"TRANSPRESS_TOLERANCE": "0.125"},
    "lossless": {"TRANSPRESS_CODEC": "lossless"},
}
# Whose messages have lengths that only the sender knows.
VARIABLE = ["tolerance", "lossless"]
ENGINES = ["collective", "pairwise"]
ENGINE = "TRANSPRESS_ENGINE"
AUTO = {"TRANSPRESS_MODE": "auto", "TRANSPRESS_RATE": "16"}
ROWS = [*CODECS, "auto"]


class Failure(Exception):
    """A line for the user."""


class NotAvailable(Exception):
    """What this library cannot do yet, in its own words."""


def environment(extra=()):
    """Without a preload or settings from outside, which would make the rows something else than they say."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "LD_PRELOAD" and not name.startswith("TRANSPRESS_")
    }
    launchers = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        # More ranks than cores, in containers too.
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "HWLOC_HIDE_ERRORS": "2",
    }
    return inherited | launchers | dict(extra)


def call(command):
    """Runs a command to its end, or for LIMIT seconds; launchers take their ranks down when told to end."""
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            output, complaints = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            raise Failure(f"still running after {LIMIT} s: {' '.join(command)}") from None
        except BaseException:
            process.send_signal(signal.SIGTERM)
            raise
    return process.returncode, output, complaints


class Bench:
    def __init__(self, transpress, folder, arguments):
        self.library = transpress.with_name("libtranspress.so")
        self.folder = Path(folder)
        self.arguments = arguments
        self.field, self.extents = self.write_field()
        self.programs = {}
        self.preloads = {}
        for mpi in MPIS:
            self.build(mpi)

    def write_field(self):
        path, variable = FIELD
        try:
            extents, values = read_floats(path, variable)
        except FileNotFoundError:
            raise Failure(f"no {path}; `make deps` installs it (Debian: libncarg-data)") from None
        field = self.folder / "field"
        field.write_bytes(values.tobytes())
        return field, extents

    def build(self, mpi):
        def compile(source, target, *options):
            command = [mpi.compiler, "-O2", "-D_GNU_SOURCE", f"-I{ROOT}/include", str(ROOT / source), "-o", str(target)]
            subprocess.run([*command, *options, "-lm", "-ldl"], check=True)
            return target

        folder = self.folder / mpi.compiler
        folder.mkdir()
        self.programs[mpi.name] = compile("tests/network/field_exchange.c", folder / "field_exchange")
        shared = [
            compile(source, folder / Path(source).with_suffix(".so").name, "-shared", "-fPIC")
            for source in mpi.preloads
        ]
        self.preloads[mpi.name] = [self.library, *shared]

    def settings(self, row, engine):
        if row == "auto":
            return AUTO
        if engine == "collective" and row in VARIABLE:
            raise NotAvailable(f"{row} has messages whose lengths the data decide: pairwise alone")
        return CODECS[row] | {ENGINE: engine}

    def measure(self, mpi, rate, size, row, engine):
        settings = self.settings(row, engine)
        ranks, calls = self.arguments.ranks, self.arguments.calls
        # The automatic mode measures first.
        warm_up = self.arguments.warm_up * (4 if row == "auto" else 1)
        bed = [] if rate == UNLIMITED else [str(BED), "--nodes", str(ranks), "--rate", rate, "--"]
        launcher = [*mpi.launcher, "-n", str(ranks)]
        preload = ":".join(map(str, self.preloads[mpi.name]))
        variables = {"LD_PRELOAD": preload, "TRANSPRESS_COMMS": "coded", "TRANSPRESS_REPORT": "off"} | settings
        under = ["env", *(f"{name}={value}" for name, value in variables.items())]
        program = [str(self.programs[mpi.name]), str(self.field), *map(str, self.extents)]
        command = [*bed, *launcher, *under, *program, str(size), str(warm_up), str(calls), "both"]
        status, output, complaints = call(command)
        if status != 0:
            raise Failure(f"{' '.join(command)}: exit status {status}\n{output}{complaints}")
        said = [line for line in complaints.splitlines() if line.startswith("transpress: ")]
        result = json.loads(output)
        if not result["counted"] or (result["compressed"] == 0 and row != "auto"):
            raise NotAvailable(said[0] if said else "nothing was compressed")
        return Row(result)


class Row:
    def __init__(self, result):
        self.plain = statistics.median(result["plain_seconds"])
        self.coded = statistics.median(result["coded_seconds"])
        self.ratio = result["bytes_before"] / result["bytes_after"]
        self.mean_error = result["mean_relative_error"]
        self.largest_error = result["largest_error"]

    @property
    def speed_up(self):
        return self.plain / self.coded

    def cell(self):
        return f"{self.speed_up:>8.2f} {self.ratio:>6.2f} {self.speed_up / self.ratio:>6.2f}"


CELL = 22
ABSENT = f"{'not available':>{CELL}}"
HEAD = f"{'speed-up':>8} {'ratio':>6} {'s/r':>6}"


def megabits(rate):
    return float(rate.removesuffix("mbit"))


def caption(mpi, rate, size, ranks, plain):
    where = "one node, shared memory" if rate == UNLIMITED else f"{ranks} nodes, {megabits(rate):.0f} Mbit/s"
    line = f"{mpi.name}, {ranks} ranks, {where}, {size / MIB:g} MiB per pair"
    if not plain:
        return line
    seconds = statistics.median(plain)
    line += f": plain {seconds * 1e3:.1f} ms"
    if rate != UNLIMITED:
        used = (ranks - 1) * size * 8 / seconds / (megabits(rate) * 1e6)
        line += f", {used:.0%} of the link"
    return line


def table(bench, mpi, rate, size):
    """One block of the output: all rows for one MPI, link and size."""
    plain, lines, reasons = [], [], []
    for row in ROWS:
        cells, errors = [], ""
        # The automatic mode chooses the engine too.
        for engine in ENGINES if row != "auto" else [None]:
            try:
                found = bench.measure(mpi, rate, size, row, engine)
            except NotAvailable as reason:
                reasons.append(str(reason))
                cells.append(ABSENT)
                continue
            plain.append(found.plain)
            cells.append(found.cell())
            errors = f"{found.mean_error:>10.1e} {found.largest_error:>10.1e}"
        if row == "auto":
            cells.append(" " * CELL)
        lines.append(f"{row:<10} {'  |'.join(cells)}  |{errors}".rstrip())
    print()
    print(caption(mpi, rate, size, bench.arguments.ranks, plain))
    print(f"{'':<10} {'  |'.join(f'{engine:>{CELL}}' for engine in ENGINES)}  |{'error':>10} {'error, K':>10}")
    print(f"{'':<10} {'  |'.join([HEAD] * len(ENGINES))}  |{'mean rel.':>10} {'largest':>10}")
    print("\n".join(lines), flush=True)
    return reasons


NOTES = """
speed-up   plain seconds of the same run / compressed seconds, medians over the calls
ratio      bytes as the program gave them / bytes on the wire
s/r        speed-up / ratio: 1 where the link alone decides, less for what the codec takes
auto       TRANSPRESS_MODE=auto at 16 bits: the library does what it measured to be faster
All ranks share the cores of this machine, so the codec is slower here than on a node of one's own."""


def can_have_bed():
    """Prints the bed's own line where it cannot."""
    return subprocess.run([BED, "--nodes", "1"]).returncode != NOT_ALLOWED


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transpress", type=Path, help="the command, with its library beside it")
    parser.add_argument("--quick", action="store_true", help="1 MiB, 100 and 500 Mbit/s, few calls: under 3 minutes")
    parser.add_argument("--sizes", metavar="MIB", help="per pair, with commas between them [1,8]")
    parser.add_argument("--rates", metavar="RATES", help="links [100mbit,200mbit,500mbit,unlimited]")
    parser.add_argument("--mpis", metavar="NAMES", default=",".join(mpi.name for mpi in MPIS), help="[%(default)s]")
    parser.add_argument("--ranks", type=int, default=4, help="each on a node of its own [4]")
    parser.add_argument("--calls", type=int, help="that are timed, of each kind in each run [5]")
    parser.add_argument("--warm-up", type=int, default=2, help="calls before them [2]")
    arguments = parser.parse_args()
    arguments.sizes = arguments.sizes or ("1" if arguments.quick else "1,8")
    arguments.rates = arguments.rates or ("100mbit,500mbit" if arguments.quick else f"100mbit,200mbit,500mbit,{UNLIMITED}")
    arguments.calls = arguments.calls or (3 if arguments.quick else 5)
    return arguments


def main():
    arguments = parse()
    rates = arguments.rates.split(",")
    if any(rate != UNLIMITED for rate in rates) and not can_have_bed():
        rates = [rate for rate in rates if rate == UNLIMITED]
    reasons = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.transpress.resolve(strict=True), folder, arguments)
        for mpi in (mpi for mpi in MPIS if mpi.name in arguments.mpis.split(",")):
            for rate in rates:
                for size in arguments.sizes.split(","):
                    # Each once, in order.
                    reasons |= dict.fromkeys(table(bench, mpi, rate, int(float(size) * MIB)))
    print(NOTES)
    if reasons:
        print("\nNot available, says the library:")
        print("\n".join(f"  {reason.partition('; accepted')[0]}" for reason in reasons))


if __name__ == "__main__":
    # The launchers are told to end too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        main()
    except Failure as failure:
        sys.exit(f"bench-network: {failure}")
