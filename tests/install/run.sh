#!/usr/bin/env bash
# Installs weft into an empty prefix, then builds and runs programs against that copy alone: the consumer beside this
# script, the program of the README, and the examples that have a project of their own.
# Usage: run.sh CMAKE BUILD_FOLDER COMPILER GENERATOR
set -euo pipefail

cmake="$1" build="$2" compiler="$3" generator="$4"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# The space in the name is on purpose: a prefix may have one.
work="$(mktemp -d "${TMPDIR:-/tmp}/weft install.XXXXXX")"
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
# An installed copy may be moved.
mv "$work/first" "$work/prefix"

strays="$(find "$work/prefix" -name '*.cpp' -o -name '*.md' -o -name '*.py')"
if [[ -n "$strays" ]]; then
  printf 'installed, though no user needs it:\n%s\n' "$strays" >&2
  exit 1
fi
# The installed package must not lead back into this source tree or its build.
if grep -rlF -e "$build" "$work/prefix/lib"*/cmake >&2; then
  echo "the installed package names the build folder" >&2
  exit 1
fi

# build SOURCE BUILD: builds as a user would.
build() {
  "$cmake" -S "$1" -B "$2" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
  "$cmake" --build "$2"
}
build "$here/consumer" "$work/build"
"$work/build/consumer"

# The tool exports what the consumer launches, and a program in C reads it.
if [[ -x "$work/prefix/bin/weft-kernels" ]]; then
  "$work/prefix/bin/weft-kernels" export -o "$work/kernels" -- "$work/build/consumer"
  build "$here/loader" "$work/loader"
  "$work/loader/loader" "$work/kernels/axpy.json"
fi

# block LANGUAGE: prints the README's first block of that language.
block() {
  awk -v head="\`\`\`$1" '$0 == head { inside = 1; next } inside && /^```$/ { exit } inside' "$here/../../README.md"
}
mkdir "$work/app"
block cmake >"$work/app/CMakeLists.txt"
block cpp >"$work/app/main.cpp"
build "$work/app" "$work/app/build"
said="$("$work/app/build/app")"
if [[ "$said" != "height after one second: 5.01 m" ]]; then
  echo "the program of the README says: $said" >&2
  exit 1
fi

# Each example has the same output wherever it runs.
for example in "$here"/../../examples/small/*/; do
  name="$(basename "$example")"
  build "$example" "$work/$name"
  (cd "$work/$name" && "./$name" >output.txt)
  diff -u "$example/output.txt" "$work/$name/output.txt"
done
# smooth reads and writes files; another example draws the file that it has written itself.
"$work/smooth/smooth" "$work/smooth/smooth.ply" "$work/smooth/again.obj" | grep -q '^2562 points, 5120 triangles$'
"$work/rays/rays" "$work/smooth/again.obj" | grep -q '#'
