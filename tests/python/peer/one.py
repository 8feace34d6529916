"""Runs the tests of one module and prints a line of JSON with their outcomes: see run.py."""

import importlib
import json
import os
import resource
import sys
import unittest


class Outcomes(unittest.TestResult):
    """Notes what became of each test."""

    def __init__(self):
        super().__init__()
        self.by_test = {}

    def note(self, test, outcome):
        self.by_test[test.id().split(".", 2)[-1]] = outcome

    def addSuccess(self, test):
        self.note(test, "passed")

    def addFailure(self, test, error):
        self.note(test, self._exc_info_to_string(error, test)[-2000:])

    def addError(self, test, error):
        self.note(test, self._exc_info_to_string(error, test)[-2000:])

    def addSkip(self, test, reason):
        self.note(test, "skipped")

    def addExpectedFailure(self, test, error):
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "it passed unexpectedly")

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.note(test, self._exc_info_to_string(error, test)[-2000:])


MOST_MEMORY = 6 << 30


def main(name):
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")  # tests replace the standard output
    result = Outcomes()
    try:
        module = importlib.import_module(name)
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    except Exception as error:
        out.write("outcomes: " + json.dumps({"(file)": f"{type(error).__name__}: {error}"}) + "\n")
        out.flush()
        return
    importlib.import_module("warp").Absent.loading = False
    suite.run(result)
    out.write("outcomes: " + json.dumps(result.by_test) + "\n")
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1])
