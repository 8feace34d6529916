# warp-lang for the benchmarks: silent, and an exit with status 3 where it is not there.
"""from quiet_warp import np, wp"""

import os
import sys

# Warp says on both streams what it found.
nowhere = os.open(os.devnull, os.O_WRONLY)
os.dup2(nowhere, 1)
os.dup2(nowhere, 2)

try:
    import numpy as np
    import warp as wp
except ImportError:
    sys.exit(3)

wp.config.quiet = True
