#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: GoogleTest programs under AddressSanitizer and
# UndefinedBehaviorSanitizer, the other tests on a build for development. The closing lines are ctest's own, or
# the failed tests' last words.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
bash cmake/install_packages.sh

# What tests of the package for Python need beside it, while the build keeps the processors busy.
install_peers() {
  local python="build/venv/bin/python"
  [[ -x "$python" ]] || return 0
  "$python" -m pip install -q --disable-pip-version-check --retries 1 jax ||
    echo "weft: going on without JAX: the tests that need it are skipped" >&2
  "$python" -m pip install -q --disable-pip-version-check --retries 1 paddlepaddle ||
    echo "weft: going on without Paddle: the tests that need it are skipped" >&2
  "$python" -m pip install -q --disable-pip-version-check --retries 1 mpich mpi4py ||
    echo "weft: going on without MPI: the tests that need it are skipped" >&2
  "$python" tests/python/setup/torch_without_cuda.py ||
    echo "weft: going on without PyTorch: the tests that need it are skipped" >&2
}
install_peers &
peers=$!

# More jobs at once gain nothing, because a software device spreads over all cores by itself.
jobs="$(nproc 2>/dev/null || echo 2)"
test_jobs=$((jobs < 4 ? jobs : 4))

for preset in asan scripts; do
  cmake --preset "$preset"
  cmake --build --preset "$preset"
done

# The end of what each failed program printed comes once more after ctest's summary: a report of a sanitizer or a
# validation layer is easily lost in the middle of a long log.
run_tests() {
  ctest --preset "$1" -j "$test_jobs" && return
  awk '/^[0-9]+\/[0-9]+ Testing: /{name = $0; count = 0}
       {line[count++ % 40] = $0}
       /^Test Failed\.|^Test timed out/{print "== " name; for (i = count < 40 ? 0 : count - 40; i < count; ++i) print line[i % 40]}' \
    "build/$1/Testing/Temporary/LastTest.log"
  return 1
}
wait "$peers"
run_tests asan
run_tests scripts
