"""Runs the tests of the peer's wheel on weft: the peer as judge.

The wheel is installed into a virtual environment outside the repository. A package `warp` that is weft stands in front of
it, beside the wheel's own tests, which run on the device "cpu", each file in a process of its own.

    python tests/python/peer/run.py [--package FOLDER] [--version 1.17.0] [--folder FOLDER] [--json FILE] [pattern ...]
    python tests/python/peer/run.py --json FILE --kept --reasons

pattern      files whose path contains one of them; all files if none is given
--package    the folder that holds the built package `weft`
--json       a file that keeps the outcomes, after each file of tests; those of other files stay in it
--kept       runs nothing: what --json keeps is shown
--failures   prints the name and the last line of each test that failed
--reasons    groups the tests that failed by the reasons in reasons.txt, and lists those for which there is none
"""

import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
VERSION = "1.17.0"


def environment(folder, version):
    """The Python of the virtual environment with the wheel; made if it is not there. Returns it and the wheel's folder."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
    found = list((folder / "venv").glob("lib/python*/site-packages/warp_lang-*.dist-info"))
    if not any(f"-{version}." in str(f) for f in found):
        subprocess.run([python, "-m", "pip", "install", "-q", f"warp-lang=={version}", "numpy"], check=True)
        # Tests of what cannot be installed are skipped.
        subprocess.run([python, "-m", "pip", "install", "-q", "jax", "paddlepaddle", "usd-core"])
        subprocess.run([python, HERE.parent / "setup" / "torch_without_cuda.py"])
    wheel = next((folder / "venv").glob("lib/python*/site-packages/warp"))
    return python, wheel


def front(folder, wheel):
    """Makes the package `warp` that is weft, with the wheel's tests, its examples and the renderers that these use, which
    are Python alone. Returns the folder to import it from.
    """
    package = folder / "front" / "warp"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text((HERE / "front.py").read_text())
    (package / "_src").mkdir(exist_ok=True)
    for name in ("tests", "examples", "render", "_src/render"):
        if not (package / name).exists():
            (package / name).symlink_to(wheel / name)
    return package.parent


def files_of(wheel, patterns):
    """The test files whose path contains one of the patterns, in the order of their names."""
    found = sorted(str(f.relative_to(wheel)) for f in (wheel / "tests").rglob("test_*.py"))
    return [f for f in found if not patterns or any(p in f for p in patterns)]


def run_file(python, file, paths, timeout):
    """The outcomes of one file: a dict of test to "passed", "skipped", or the text of a failure."""
    path = os.pathsep.join(map(str, paths))
    module = file[:-3].replace("/", ".")
    command = [python, str(HERE / "one.py"), f"warp.{module}"]
    try:
        ran = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return {"(file)": "it did not end in time"}
    for line in ran.stdout.splitlines():
        if line.startswith("outcomes: "):
            return json.loads(line[len("outcomes: ") :])
    last = (ran.stderr.strip().splitlines() or ["nothing was printed"])[-1]
    return {"(file)": f"the process ended with {ran.returncode}: {last}"}


def reasons():
    """The lines of reasons.txt: patterns of files, tests and failures, and the reason."""
    lines = [line.strip() for line in (HERE / "reasons.txt").read_text().splitlines()]
    return [[part.strip() for part in line.split(" : ", 3)] for line in lines if line and not line.startswith("#")]


def reason_for(file, test, failure, known):
    """The reason why a test does not pass; None if reasons.txt has none."""
    matches = fnmatch.fnmatchcase
    name = file.removeprefix("tests/").removesuffix(".py")
    failure = failure.strip()
    for files, tests, failures, reason in known:
        if matches(name, files.removesuffix(".py")) and matches(test, tests) and matches(failure, failures):
            return reason
    return None


def show_reasons(everything):
    """Prints how many tests fail for each reason, and the tests that fail for none."""
    known = reasons()
    groups = {}
    for file, outcomes in everything.items():
        for test, outcome in outcomes.items():
            if outcome not in ("passed", "skipped"):
                groups.setdefault(reason_for(file, test, outcome, known), []).append(f"{file}: {test}")
    without = groups.pop(None, [])
    for reason, tests in sorted(groups.items(), key=lambda group: -len(group[1])):
        print(f"{len(tests):5} {reason}")
    print(f"{len(without):5} without a reason")
    for test in without:
        print(f"      {test}")


def arguments():
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--version", default=VERSION)
    parser.add_argument("--package", type=pathlib.Path, default=None)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path.home() / ".cache" / "weft-peer")
    parser.add_argument("--timeout", type=int, default=900)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, default=None)
    parser.add_argument("--kept", action="store_true")
    return parser.parse_args()


def counted(outcomes):
    """How many of some tests passed, failed and were skipped."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for outcome in outcomes.values():
        counts[outcome if outcome in counts else "failed"] += 1
    return counts


def row(name, counts):
    """A line of the table: a file, or all of them, and its counts."""
    return f"{name:50}" + "".join(f" {count:5} {kind}" for kind, count in counts.items())


def show_failures(outcomes):
    """Prints the name and the last line of each test that failed."""
    for test, outcome in outcomes.items():
        if outcome not in ("passed", "skipped"):
            print(f"    {test}: {outcome.strip().splitlines()[-1] if outcome.strip() else '?'}")


def main():
    given = arguments()
    kept = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    everything = {}
    if given.kept:
        everything = {f: o for f, o in kept.items() if not given.patterns or any(p in f for p in given.patterns)}
        files = list(everything)
    else:
        given.folder.mkdir(parents=True, exist_ok=True)
        python, wheel = environment(given.folder, given.version)
        paths = [front(given.folder, wheel)] + ([given.package.resolve()] if given.package else [])
        files = files_of(wheel, given.patterns)
    for file in files:
        if not given.kept:
            everything[file] = kept[file] = run_file(python, file, paths, given.timeout)
            if given.json:
                given.json.write_text(json.dumps(kept, indent=1))
        print(row(file, counted(everything[file])), flush=True)
        if given.failures:
            show_failures(everything[file])
    if given.reasons:
        show_reasons(everything)
    sums = [counted(outcomes) for outcomes in everything.values()]
    print(row("all", {kind: sum(counts[kind] for counts in sums) for kind in counted({})}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
