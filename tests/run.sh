#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test: GoogleTest programs under AddressSanitizer and
# UndefinedBehaviorSanitizer, the other tests on a build for development. The closing lines are ctest's own.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
bash cmake/install_packages.sh

# More jobs at once gain nothing, because a software device spreads over all cores by itself.
jobs="$(nproc 2>/dev/null || echo 2)"
test_jobs=$((jobs < 4 ? jobs : 4))

for preset in asan scripts; do
  cmake --preset "$preset"
  cmake --build --preset "$preset"
done
ctest --preset asan -j "$test_jobs"
ctest --preset scripts -j "$test_jobs"
