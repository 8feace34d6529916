#!/usr/bin/env bash
# Configures a user's project that has weft as a folder. There is no build, which would take as long as weft's own.
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
# configure OPTION...: CMake's messages go to the log.
configure() {
  "$cmake" -S "$work" -B "$work/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" "$@" >"$work/log" 2>&1 ||
    { cat "$work/log"; fail "the project cannot be configured"; }
}
unset CMAKE_BUILD_TYPE
configure -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
grep -q 'weft is compiled without optimisation' "$work/log" || fail "nothing says that weft is not optimised"
# Warnings about weft's headers do not concern the project.
grep -q -e '-isystem [^-]*weft/include.* -c .*/main.cpp' "$work/build/compile_commands.json" ||
  fail "weft's headers are not system headers in a project that includes it"

# Only the library is built, and the project's own settings stay as they are.
cache="$work/build/CMakeCache.txt"
for option in WEFT_BUILD_TESTS WEFT_BUILD_EXAMPLES WEFT_BUILD_BENCH WEFT_BUILD_TOOLS; do
  grep -q "^$option:BOOL=OFF$" "$cache" || fail "$option is not off in a project that includes weft"
done
if grep -q '^BUILD_SHARED_LIBS:' "$cache"; then fail "weft sets BUILD_SHARED_LIBS for the project that includes it"; fi
grep -q '^CMAKE_BUILD_TYPE:STRING=$' "$cache" || fail "weft sets CMAKE_BUILD_TYPE for the project that includes it"
for header in weft.h geometry.h runtime/array.h; do
  [[ -e "$work/build/weft/include/weft/$header" ]] || fail "<weft/$header> is not there"
done

# A project can ask for the tool.
configure -DWEFT_BUILD_TOOLS=ON -DCMAKE_BUILD_TYPE=Release
"$cmake" --build "$work/build" --target help >"$work/targets"
grep -q 'weft_kernels' "$work/targets" || fail "weft-kernels is not built where WEFT_BUILD_TOOLS is on"
if grep -q 'without optimisation' "$work/log"; then fail "a build with optimisation is said to have none"; fi
