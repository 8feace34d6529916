#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: first those of the library under AddressSanitizer and
# UndefinedBehaviorSanitizer, then all. The closing lines are ctest's own.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
bash cmake/install_packages.sh

# More at once gains nothing: a software device spreads over all cores by itself.
jobs="$(nproc 2>/dev/null || echo 2)"
test_jobs=$((jobs < 4 ? jobs : 4))

for preset in dev asan; do
  cmake --preset "$preset"
  cmake --build --preset "$preset"
done
ctest --preset asan -j "$test_jobs"
ctest --preset dev -j "$test_jobs"
