# warp-lang for the benchmarks: silent, and an exit with status 3 if it is not installed.
"""from quiet_warp import np, wp"""

import os
import sys

# Warp prints what it found to both streams.
nowhere = os.open(os.devnull, os.O_WRONLY)
os.dup2(nowhere, 1)
os.dup2(nowhere, 2)

try:
    import numpy as np
    import warp as wp
except ImportError:
    sys.exit(3)

wp.config.quiet = True
