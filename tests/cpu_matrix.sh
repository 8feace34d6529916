#!/usr/bin/env bash
# Runs the tests of the native device ("cpu") with one thing varied at a time: the lanes, the level of x86-64, the
# number of threads, the version of LLVM. Prints a line for each variation, and exits with 1 if a test failed.
# Usage: cpu_matrix.sh [--full] [--programs FOLDER] [VARIATION...]
#   --full      all tests of the device, of llvm/ and of backends/native/; else a choice that takes some minutes
#   --programs  the folder with unit_tests, device_tests and random_tests; else the preset dev is built
#   VARIATION   by its name in the table, such as lanes=16 or llvm=newest; else all of them
# Versions of LLVM that are not installed are fetched as packages and unpacked below build/cpu_matrix, where the logs
# are, too. A level that the processor lacks, and a version that cannot be had, are counted as skipped.
set -uo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root" || exit 1
work="$root/build/cpu_matrix"
full=0 programs="" chosen=()
while (($#)); do
  case "$1" in
    --full) full=1 ;;
    --programs) programs="${2:?a folder with the programs of the tests}" && shift ;;
    -h | --help) sed -n '2,9s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *=* | usual) chosen+=("$1") ;;
    *) echo "cpu_matrix.sh: what is $1?" >&2 && exit 2 ;;
  esac
  shift
done

if [[ -z "$programs" ]]; then
  programs="$root/build/dev/tests"
  cmake --preset dev --log-level=WARNING &&
    cmake --build --preset dev --target unit_tests device_tests random_tests || exit 1
fi

for program in unit_tests device_tests random_tests; do
  [[ -x "$programs/$program" ]] || { echo "cpu_matrix.sh: there is no $programs/$program" >&2 && exit 2; }
done

unit='*Llvm*:Native*:Pool*:CodeCache*'
if ((full)); then
  device='*/native' random='*/native'
else
  device=''
  for suite in Operations ControlFlow NormalForm Function Elements StructArrays PrivateArray Atomics SharedMemory \
    Subgroups Fence Programs DebugMode Report HostMemory AlgorithmsScan AlgorithmsSort; do
    device+="On/$suite.*/native:"
  done
  random='*RandomPrograms*/native'
  export WEFT_RANDOM_PROGRAMS="${WEFT_RANDOM_PROGRAMS:-30}"
fi
# What the caller has set would vary, too.
unset WEFT_LLVM WEFT_CPU_LANES WEFT_CPU_LEVEL WEFT_THREADS WEFT_CATCH_FAULTS WEFT_CACHE WEFT_DEVICE
export WEFT_VALIDATION=0 # no test here is of Vulkan

passed=0 failed=0 skipped=0 left_out=0

# count WORD FILE: the number of tests of which GoogleTest's summary says so.
count() { awk -v word="$1" '$1 == "[" && $2 == word && $3 == "]" && $5 ~ /^tests?[.,]/ { n += $4 } END { print n + 0 }' "$2"; }

# line NAME PASSED FAILED SKIPPED SECONDS REMARK
line() { printf '%-18s %7s %7s %8s %8s  %s\n' "$@"; }

# runs PROGRAM FILTER: one program of tests, in the environment of a variation; its log is named after it. Adds up.
runs() {
  local log="$folder/$1.txt" status=0 ran
  timeout 7200 "$programs/$1" --gtest_filter="$2" >"$log" 2>&1 || status=$?
  local good bad not
  good="$(count PASSED "$log")" bad="$(count FAILED "$log")" not="$(count SKIPPED "$log")"
  ran=$((good + bad + not))
  if ((status != 0 && bad == 0)); then
    remark+="$1 ended with status $status in $(sed -n 's/^\[ RUN      \] //p' "$log" | tail -n 1); "
    bad=1
  elif ((ran == 0)); then
    remark+="$1 has no such test; "
    bad=1
  fi
  here_passed=$((here_passed + good)) here_failed=$((here_failed + bad)) here_skipped=$((here_skipped + not))
}

# Leaves a variation out, as skipped.
leave_out() {
  line "$1" - - - - "left out: $2"
  left_out=$((left_out + 1))
}

# Whether the device opens as the variation asks; if not, `why` says why.
opens() {
  local log="$folder/opens.txt"
  "$programs/unit_tests" --gtest_filter=NativeCompiler.NamesLibraryAndProcessor >"$log" 2>&1 || true
  why="$(sed -nE -e '/: Skipped$/{n;p;q}' -e 's/^C\+\+ exception with description "(.*)" thrown in .*/\1/p;T;q' "$log")"
  grep -q '^\[       OK \]' "$log"
}

# varies NAME VARIABLE VALUE: all tests in that environment, with a cache of their own.
varies() {
  local name="$1" folder="$work/$1" here_passed=0 here_failed=0 here_skipped=0 remark="" why="" start="$SECONDS"
  rm -rf "$folder" && mkdir -p "$folder"
  local -x WEFT_CACHE_DIR="$folder/cache"
  [[ -z "${2:-}" ]] || local -x "$2=$3"
  if ! opens; then
    if [[ "$why" == *' lacks '*'; its level is '* ]]; then
      leave_out "$name" "$why"
      return
    fi
    here_failed=1 remark="it does not open: $why"
  else
    runs unit_tests "$unit"
    runs device_tests "$device"
    runs random_tests "$random"
  fi
  line "$name" "$here_passed" "$here_failed" "$here_skipped" $((SECONDS - start)) "$remark"
  ((here_failed == 0)) || sed -n 's/^\(\[  FAILED  \] [^0-9 ][^ ]*\).*/  \1/p' "$folder"/*_tests.txt 2>/dev/null | sort -u
  passed=$((passed + here_passed)) failed=$((failed + here_failed)) skipped=$((skipped + here_skipped))
  rm -rf "$folder/cache"
}

# wanted NAME: whether the caller asked for it.
wanted() {
  ((${#chosen[@]} == 0)) && return 0
  local each
  for each in "${chosen[@]}"; do [[ "$each" == "$1" ]] && return 0; done
  return 1
}

# The name of the package of a version of LLVM's library, or of the newest one.
package_of() {
  command -v apt-cache >/dev/null || return 1
  local number="$1"
  [[ "$number" != newest ]] || number='[0-9]+'
  apt-cache pkgnames libllvm | grep -xE "libllvm$number(t64)?" | sort -V | tail -n 1 | grep .
}

# Fetches a package, and unpacks it into a folder.
unpack() {
  rm -rf "$2" && mkdir -p "$2" &&
    (cd "$2" && apt-get download -q "$1" && dpkg-deb -x ./*.deb . && rm ./*.deb) >"$2.txt" 2>&1
}

# library_of VERSION: sets `library` to the path of that version; returns 1 where it cannot be had, with `why`.
library_of() {
  local version="$1" package folder number
  library=""
  if [[ "$version" != newest ]]; then
    library="$(ldconfig -p 2>/dev/null | sed -nE "s/.*libLLVM(-$version\.so\.1|-$version\.so|\.so\.$version\.[0-9]+) .*=> //p" |
      head -n 1)"
    [[ -z "$library" ]] || return 0
  fi
  package="$(package_of "$version")" || {
    [[ "$(id -u)" == 0 ]] && command -v apt-get >/dev/null && apt-get update -q >/dev/null 2>&1
    package="$(package_of "$version")"
  } || { why="there is no package of it" && return 1; }
  number="${package//[!0-9]/}"
  folder="$work/llvm/$package"
  if [[ -z "$(find "$folder" -name 'libLLVM*.so*' 2>/dev/null)" ]]; then
    unpack "$package" "$folder" || { why="$package cannot be fetched: see $folder.txt" && return 1; }
  fi
  library="$(find "$folder" -name "libLLVM*.so*" -type f | head -n 1)"
  [[ -n "$library" ]] || { why="$package has no library of version $number" && return 1; }
  why="$(ldd "$library" | sed -n 's/^\t\(.*\) => not found/\1/p' | tr '\n' ' ')"
  [[ -z "$why" ]] || { why="$package needs $why" && return 1; }
}

mkdir -p "$work"
line variation passed failed skipped seconds ""
wanted usual && varies usual
for lanes in 4 8 16; do wanted "lanes=$lanes" && varies "lanes=$lanes" WEFT_CPU_LANES "$lanes"; done
for level in v2 v3 v4; do wanted "level=$level" && varies "level=$level" WEFT_CPU_LEVEL "x86-64-$level"; done
for threads in 1 2 7; do wanted "threads=$threads" && varies "threads=$threads" WEFT_THREADS "$threads"; done
for version in 15 16 19 newest; do
  wanted "llvm=$version" || continue
  if library_of "$version"; then
    varies "llvm=$version" WEFT_LLVM "$library"
    echo "  $library"
  else
    leave_out "llvm=$version" "$why"
  fi
done
line all "$passed" "$failed" "$skipped" "$SECONDS" "variations left out: $left_out"
((failed == 0))
