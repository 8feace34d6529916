#!/usr/bin/env bash
# Builds weft for Windows with MinGW-w64 and runs its tests and examples under Wine, which uses the system's Vulkan.
# First builds the libraries that weft needs, from Debian's sources. Takes half an hour on two cores; run by hand.
# Usage: run.sh [FOLDER] (build/windows; parts that were built before are not built again). Needs Debian 12, and either
# root or the packages of packages_needed.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
mkdir -p "${1:-$root/build/windows}"
folder="$(cd "${1:-$root/build/windows}" && pwd)"
prefix="$folder/prefix"
packages_needed=(g++-mingw-w64-x86-64-posix libz-mingw-w64-dev wine wine64 xvfb xauth dpkg-dev)

bash "$root/cmake/install_packages.sh"
missing=()
for package in "${packages_needed[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
((${#missing[@]} == 0)) || DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"

# fetch PACKAGE: gets the sources of a Debian package, within the folder alone; the system's lists stay as they are.
fetch() {
  local apt="$folder/apt"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$folder/src"
  local mirror
  # shellcheck disable=SC2016
  mirror="$(apt-get indextargets --format '$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' \
    'Component: main' | sed -n 's/^bookworm|//p' | head -n 1)"
  echo "deb-src $mirror bookworm main" >"$apt/sources.list"
  local options=(-q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache")
  [[ -n "$(find "$apt/lists" -name '*Sources*' -print -quit)" ]] || apt-get "${options[@]}" update
  (cd "$folder/src" && apt-get "${options[@]}" source --only-source "$1")
}

# library NAME SOURCE_PACKAGE OPTIONS_OF_CMAKE...
library() {
  local name="$1" package="$2"
  shift 2
  [[ ! -e "$folder/$name.built" ]] || return 0
  [[ -n "$(find "$folder/src" -maxdepth 1 -type d -name "$package-*" 2>/dev/null)" ]] || fetch "$package"
  cmake -S "$(find "$folder/src" -maxdepth 1 -type d -name "$package-*" -print -quit)" -B "$folder/libraries/$name" \
    -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" -DWEFT_WINDOWS_PREFIX="$prefix" \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF "$@"
  cmake --build "$folder/libraries/$name"
  cmake --install "$folder/libraries/$name"
  touch "$folder/$name.built"
}

# Headers that are the same for all systems come from the packages installed here.
mkdir -p "$prefix/include" "$prefix/lib" "$prefix/share/cmake" "$folder/spirv-headers/include"
for header in vulkan vk_video volk.h volk.c spirv xxhash.h xxh3.h fast_float nlohmann dlpack CLI stb; do
  ln -sfn "/usr/include/$header" "$prefix/include/$header"
done
ln -sfn /usr/include/spirv "$folder/spirv-headers/include/spirv"
cp -r /usr/share/cmake/nlohmann_json /usr/share/cmake/CLI11 "$prefix/share/cmake/"
library fmt fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF
library googletest googletest -DBUILD_GMOCK=OFF
library spirv-tools spirv-tools -DSPIRV_SKIP_TESTS=ON -DSPIRV_SKIP_EXECUTABLES=ON -DSPIRV_WERROR=OFF \
  "-DSPIRV-Headers_SOURCE_DIR=$folder/spirv-headers"
library spirv-cross spirv-cross -DSPIRV_CROSS_CLI=OFF -DSPIRV_CROSS_ENABLE_TESTS=OFF -DSPIRV_CROSS_SHARED=OFF
library glslang glslang -DENABLE_OPT=OFF -DENABLE_CTEST=OFF
if [[ ! -e "$prefix/lib/libxxhash.a" ]]; then
  echo '#include <xxhash.h>' | x86_64-w64-mingw32-gcc-posix -DXXH_STATIC_LINKING_ONLY -DXXH_IMPLEMENTATION -O2 \
    -I "$prefix/include" -x c -c - -o "$folder/xxhash.o"
  x86_64-w64-mingw32-ar rcs "$prefix/lib/libxxhash.a" "$folder/xxhash.o"
fi
if [[ ! -e "$prefix/lib/libvulkan-1.dll.a" ]]; then
  {
    printf 'LIBRARY vulkan-1.dll\nEXPORTS\n'
    grep -ohE 'VKAPI_CALL vk[A-Za-z0-9]+[a-z0-9]\(' /usr/include/vulkan/vulkan_core.h | sed 's/.* //; s/($//'
  } >"$folder/vulkan-1.def"
  x86_64-w64-mingw32-dlltool -d "$folder/vulkan-1.def" -l "$prefix/lib/libvulkan-1.dll.a"
fi

cmake -S "$root" -B "$folder/weft" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$here/toolchain.cmake" \
  -DWEFT_WINDOWS_PREFIX="$prefix" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DWEFT_BUILD_BENCH=OFF
cmake --build "$folder/weft"

windows_path() { printf 'Z:%s' "${1//\//\\}"; }
wine="$(command -v wine64 || echo /usr/lib/wine/wine64)"
compiler="$(dirname "$(x86_64-w64-mingw32-g++-posix -print-libgcc-file-name)")"
export WINEPREFIX="$folder/wine" WINEDEBUG=-all WINEDLLOVERRIDES=winedbg.exe=d # no dialogue when a program fails
WINEPATH="$(windows_path "$folder/weft");$(windows_path "$compiler");$(windows_path /usr/x86_64-w64-mingw32/lib)"
export WINEPATH
export WEFT_VALIDATION=0 # there is no such layer
Xvfb :177 -screen 0 640x480x24 >/dev/null 2>&1 &
trap 'kill %1' EXIT
export DISPLAY=:177

# These are left out: MinGW's sin, cos, tan, pow and fma, which use the oldest part of the processor, miss the limits
# that the interpreter takes from the C library. Vulkan's results are compared with them there.
left_out='*Float64Functions.*:On/Operations.on_float*_agree_with_their_meaning/*'
status=0
for program in unit_tests golden_tests random_tests fuzz_tests device_tests; do
  WEFT_CACHE_DIR="$(windows_path "$folder/kernel_cache")" "$wine" "$folder/weft/tests/$program.exe" --gtest_brief=1 \
    --gtest_filter="-$left_out" >"$folder/$program.txt" 2>&1 || status=1
  grep -vE 'Skipped.?$|^there is no GPU here' "$folder/$program.txt" || true
done
mkdir -p "$folder/pictures"
for arguments in "$root"/examples/*/test.args; do
  example="$(basename "$(dirname "$arguments")")"
  # shellcheck disable=SC2046
  (cd "$folder/pictures" &&
    "$wine" "$folder/weft/examples/$example.exe" $(sed 's/--validate//' "$arguments") >"$example.txt" 2>&1) ||
    { echo "$example failed: $folder/pictures/$example.txt" && status=1; }
done
((status == 0)) && echo "weft for Windows: all passed"
exit "$status"
