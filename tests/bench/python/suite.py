"""Suite python: what calls cost in Python, against warp-lang's in the same run.

    python tests/bench/python/suite.py --package build/release/python [--rounds 15] [--case NAME] [--out FILE]

Runs in a Python that has warp-lang, numpy, and torch, paddle, jax for their rows. Each case is a process of its own for each
library, in turn; times are the least, in microseconds.
"""

import argparse
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

ASKED = {
    "launch, 4 arrays and 2 scalars": 0.8,
    "launch, 4 NumPy arrays": 3.0,
    "launch, 4 torch tensors": 5.0,
    "launch, recorded": None,
    "launch on a tape": 2.0,
    "zeros": 1.0,
    "from_torch": None,
    "from_torch, return_ctype": None,
    "torch directly": None,
    "from_paddle": None,
    "from_paddle, return_ctype": None,
    "paddle directly": None,
    "import beyond NumPy": 150000.0,
    "first kernel, not cached": 60000.0,
    "first kernel, cached": 10000.0,
    "jit of JAX over plain": 2.0,
    "trace of 1,500 instructions": 5000.0,
}
"""The cases, with the most microseconds that each may take; None: less than the peer's."""


def run(library, case, rounds, environment):
    """The least time of a case; None where it does not run."""
    command = [sys.executable, str(HERE / "cases.py"), library, case, str(rounds)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    found = [line for line in ended.stdout.splitlines() if line.startswith("RESULT ")]
    if not found:
        if ended.returncode:
            print(f"  {library}, {case}: not run: {ended.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return float(found[0].split()[1])


def measure(library, case, options, cache):
    """The least time over runs of the process."""
    times = []
    for k in range(options.processes):
        folder = cache / (library if "not cached" not in case else f"{library}-{case}-{k}")
        environment = {
            **os.environ,
            "PYTHONPATH": options.package,
            "WEFT_CACHE_DIR": str(folder),
            "WARP_CACHE_PATH": str(folder),
            "WEFT_CACHE": "1",
            "PYTHONPYCACHEPREFIX": str(cache / "bytecode"),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        found = run(library, case, options.rounds, environment)
        if found is None:
            return None
        times.append(found)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", default="build/release/python")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--processes", type=int, default=3, help="for each case and library, in turn")
    parser.add_argument("--case", action="append", help="part of a name; all if none is given")
    parser.add_argument("--out", help="a file for the table, as CSV")
    options = parser.parse_args()
    options.package = str(pathlib.Path(options.package).resolve())

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case, asked in ASKED.items():
            if options.case and not any(part in case for part in options.case):
                continue
            for library in ("weft", "warp") if "cached" in case else ():
                measure(library, "launch, 4 arrays and 2 scalars", options, pathlib.Path(folder))  # fills the cache
            weft, warp = (measure(library, case, options, pathlib.Path(folder)) for library in ("weft", "warp"))
            ratio = weft / warp if weft is not None and warp else None
            rows.append((case, weft, warp, ratio, asked))
            shown = [f"{value:12.2f}" if value is not None else " " * 11 + "-" for value in (weft, warp, ratio, asked)]
            print(f"{case:34s}{''.join(shown)}")
    if options.out:
        with open(options.out, "w", newline="") as file:
            csv.writer(file).writerows([("case", "weft", "warp", "ratio", "asked"), *rows])


if __name__ == "__main__":
    main()
