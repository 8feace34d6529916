#!/usr/bin/env bash
# weft as a folder of a user's project: configured there, without a build, which takes as long as one of weft.
# Usage: subdirectory.sh CMAKE COMPILER GENERATOR
set -euo pipefail

cmake="$1" compiler="$2" generator="$3"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work="$(mktemp -d "${TMPDIR:-/tmp}/weft subdirectory.XXXXXX")"
trap 'rm -rf "$work"' EXIT
fail() {
  echo "$1" >&2
  exit 1
}

cp "$here/subdirectory/CMakeLists.txt" "$here/consumer/main.cpp" "$work"
ln -s "$(cd "$here/../.." && pwd)" "$work/weft"
"$cmake" -S "$work" -B "$work/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" >"$work/log" ||
  { cat "$work/log"; fail "the project cannot be configured"; }

# Nothing but the library is built, and the project's own settings stay as they are.
cache="$work/build/CMakeCache.txt"
for option in WEFT_BUILD_TESTS WEFT_BUILD_EXAMPLES WEFT_BUILD_BENCH WEFT_BUILD_TOOLS; do
  grep -q "^$option:BOOL=OFF$" "$cache" || fail "$option is not off in a project that includes weft"
done
if grep -q '^BUILD_SHARED_LIBS:' "$cache"; then fail "weft sets BUILD_SHARED_LIBS for the project that includes it"; fi
grep -q '^CMAKE_BUILD_TYPE:STRING=$' "$cache" || fail "weft sets CMAKE_BUILD_TYPE for the project that includes it"
for header in weft.h geometry.h runtime/array.h; do
  [[ -e "$work/build/weft/include/weft/$header" ]] || fail "<weft/$header> is not there"
done
