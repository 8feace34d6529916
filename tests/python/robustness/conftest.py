"""What tests of processes, threads and callbacks share: programs that run in a process of their own."""

import subprocess
import sys
import textwrap

import pytest

HEAD = """
import os
import sys
import threading
import time

import numpy as np

import weft as wp

DEVICE = sys.argv[1]
wp.set_device(DEVICE) if DEVICE != "none" else None


@wp.kernel
def add(x: wp.array(dtype=float), s: float):
    i = wp.tid()
    wp.atomic_add(x, i, s)


@wp.kernel
def turn(x: wp.array(dtype=float), rounds: int):
    i = wp.tid()
    v = x[i]
    for k in range(rounds):
        v = wp.sin(v) + 1.0e-3 * float(k % 7)
    x[i] = v


def rounds_for(seconds):
    '''The rounds of turn() that take about so long with two threads.'''
    x, rounds = wp.ones(2, dtype=float), 1000
    while True:
        begin = time.perf_counter()
        wp.launch(turn, dim=2, inputs=[x, rounds])
        wp.synchronize()
        took = time.perf_counter() - begin
        if took > 0.05:
            return int(rounds * seconds / took) + 1
        rounds *= 4
"""
"""The first lines of each program: two kernels, and the device as the current one."""


@pytest.fixture
def run(tmp_path):
    """Runs the text of a program after HEAD, on a device, and gives what it prints. It fails the test if the program ends
    with another code than 0, says anything on the error stream, or hangs.
    """

    def call(text, device="none", code=0, said="", seconds=120, environment=None):
        file = tmp_path / "program.py"
        file.write_text(HEAD + textwrap.dedent(text))
        done = subprocess.run(
            [sys.executable, str(file), str(device)],
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
        )
        assert done.returncode == code, done.stderr
        assert said in done.stderr if said else not done.stderr, done.stderr
        return done.stdout

    return call
