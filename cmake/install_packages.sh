#!/usr/bin/env bash
# Installs what weft needs to build, test and run, on Debian and Ubuntu; elsewhere it prints the list. Does nothing if
# all is installed.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
packages=(
  g++ cmake ninja-build python3
  libvulkan-dev libvulkan1 libvulkan-volk-dev vulkan-validationlayers mesa-vulkan-drivers
  spirv-headers spirv-tools libspirv-cross-c-shared-dev glslang-dev glslang-tools
  libfmt-dev libxxhash-dev libfast-float-dev nlohmann-json3-dev libcli11-dev libstb-dev
  libdlpack-dev zlib1g-dev
  libgtest-dev libbenchmark-dev
)

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  missing=()
  command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || missing+=("a C++20 compiler")
  for tool in cmake ninja python3; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  if ((${#missing[@]})); then
    {
      printf 'weft: missing:'
      printf ' %s;' "${missing[@]}"
      printf '\n'
      cat <<'TEXT'
weft: this system has no apt, so please install by its own means:
  a C++20 compiler (GCC 12 or Clang 16 on), CMake 3.25 on, Ninja, Python 3
  Vulkan loader and headers 1.3, volk, Vulkan validation layers, SPIRV-Headers, SPIRV-Tools, SPIRV-Cross, glslang
  fmt, xxHash, fast_float, nlohmann-json, CLI11, stb, DLPack, zlib, GoogleTest, Google Benchmark
  GLFW for windows
  LLVM's library (libLLVM), version 15 on, for the device "cpu"
  a Vulkan driver: the GPU's own; Mesa's lavapipe for the tests
TEXT
    } >&2
    exit 1
  fi
  exit 0  # CMake names each library that it does not find
fi

as_root() {
  if [[ "$(id -u)" == 0 ]]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    echo "weft: neither root nor sudo; please run as root: $*" >&2
    return 1
  fi
}

installed_version() {
  dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null | sed -n 's/^installed //p' || true
}

updated=0
update_lists() {
  if [[ "$updated" == 0 ]]; then
    as_root apt-get update -q
    updated=1
  fi
}

missing=()
for package in "${packages[@]}"; do
  [[ -n "$(installed_version "$package")" ]] || missing+=("$package")
done

codename="$(. /etc/os-release && echo "${ID:-}/${VERSION_CODENAME:-}")"
wanted_mesa=25.0
give_up="$root/build/.mesa-backports-failed"

# The keyring by which apt checks a source, which is given as apt names it: FILE.sources:STANZA or FILE.list:LINE.
keyring_of() {
  local file="${1%:*}" number="${1##*:}"
  case "$file" in
    *.sources) awk -v RS= -v n="$number" 'NR == n' "$file" | sed -n 's/^Signed-By: *\(\/[^ ]*\).*/\1/p' ;;
    *) sed -n "${number}s/.*signed-by=\(\/[^] ]*\).*/\1/p" "$file" ;;
  esac
}

# Adds bookworm-backports from the mirror that the machine's own sources name for bookworm, and installs Mesa from
# there: its software Vulkan is 4 to 12 times faster than that of Debian 12.
install_newer_mesa() {
  update_lists || return 1
  local source mirror entry keyring
  if ! apt-get indextargets --format '$(CODENAME)' 'Created-By: Packages' | grep -qx bookworm-backports; then
    source="$(apt-get indextargets --format '$(CODENAME)|$(REPO_URI)|$(SOURCESENTRY)' 'Created-By: Packages' \
      'Origin: Debian' 'Component: main' | sed -n 's/^bookworm|//p' | head -n 1)"
    [[ -n "$source" ]] || return 1
    mirror="${source%%|*}"
    entry="${source#*|}"
    keyring="$(keyring_of "$entry")"
    echo "deb ${keyring:+[signed-by=$keyring] }$mirror bookworm-backports main" |
      as_root tee /etc/apt/sources.list.d/weft-backports.list >/dev/null || return 1
    if ! as_root apt-get update -q; then
      as_root rm -f /etc/apt/sources.list.d/weft-backports.list
      return 1
    fi
  fi
  as_root apt-get install -q -y --no-install-recommends -t bookworm-backports mesa-vulkan-drivers
}

mesa="$(installed_version mesa-vulkan-drivers)"
if [[ "$codename" == debian/bookworm ]] && { [[ -z "$mesa" ]] || dpkg --compare-versions "$mesa" lt "$wanted_mesa"; }; then
  # A failure is remembered for a day, so that a machine without that source does not ask for it at every build.
  if [[ -z "$(find "$give_up" -mmin -1440 2>/dev/null)" ]]; then
    echo "weft: installing Mesa $wanted_mesa or later from bookworm-backports"
    if install_newer_mesa; then
      rm -f "$give_up"
    else
      echo "weft: bookworm-backports is out of reach; going on with Debian 12's own Mesa, which is slower" >&2
      mkdir -p "$root/build" && touch "$give_up"
    fi
  fi
fi

if ((${#missing[@]})); then
  echo "weft: installing ${missing[*]}"
  update_lists
  as_root apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

# Optional: with it, kernels run as machine code of the processor. Any version from 15 on will do.
llvm_packages=(libllvm22 libllvm21 libllvm20 libllvm19 libllvm18 libllvm17t64 libllvm17 libllvm16 libllvm15)
llvm=""
for package in "${llvm_packages[@]}"; do
  [[ -z "$(installed_version "$package")" ]] || llvm="$package"
done
if [[ -z "$llvm" ]] && ! apt-cache show "${llvm_packages[@]}" >/dev/null 2>&1; then update_lists || true; fi
for package in libllvm19 libllvm15 "${llvm_packages[@]}"; do
  [[ -z "$llvm" ]] || break
  apt-cache show "$package" >/dev/null 2>&1 || continue
  llvm="$package"
  as_root apt-get install -q -y --no-install-recommends "$package" ||
    echo "weft: going on without LLVM: the device \"cpu\" makes no machine code" >&2
done

# Optional: with it, examples open windows.
if [[ -z "$(installed_version libglfw3-dev)" ]] && apt-cache show libglfw3-dev >/dev/null 2>&1; then
  as_root apt-get install -q -y --no-install-recommends libglfw3-dev ||
    echo "weft: going on without GLFW: the examples open no windows" >&2
fi

# Optional: with it, a test opens a display.
if [[ -z "$(installed_version xvfb)" ]] && apt-cache show xvfb >/dev/null 2>&1; then
  as_root apt-get install -q -y --no-install-recommends xvfb xauth ||
    echo "weft: going on without Xvfb: no test opens a window" >&2
fi

# Optional: with it, tests and benchmarks compare rays and trees with Embree.
if [[ -z "$(installed_version libembree-dev)" ]] && apt-cache show libembree-dev >/dev/null 2>&1; then
  as_root apt-get install -q -y --no-install-recommends libembree-dev ||
    echo "weft: going on without Embree: rays and trees are not compared with its own" >&2
fi

# Optional: with it, volumes are read and written with the codec Blosc.
if [[ -z "$(installed_version libblosc-dev)" ]] && apt-cache show libblosc-dev >/dev/null 2>&1; then
  as_root apt-get install -q -y --no-install-recommends libblosc-dev ||
    echo "weft: going on without Blosc: files of volumes that need it are refused" >&2
fi

# Optional: with it, tests compare volumes with NanoVDB's own library.
if [[ -z "$(installed_version libnanovdb-dev)" ]] && apt-cache show libnanovdb-dev >/dev/null 2>&1; then
  as_root apt-get install -q -y --no-install-recommends libnanovdb-dev ||
    echo "weft: going on without NanoVDB: volumes are not compared with its library" >&2
fi

# Optional: with it, tests and the benchmark compare level sets with OpenVDB, and volumes go through NanoVDB's tools.
openvdb=(libopenvdb-dev libnanovdb-tools libboost-dev libtbb-dev libimath-dev)
if [[ -z "$(installed_version libopenvdb-dev)" || -z "$(installed_version libnanovdb-tools)" || -z "$(installed_version libboost-dev)" ]] &&
  apt-cache show "${openvdb[@]}" >/dev/null 2>&1; then
  as_root apt-get install -q -y --no-install-recommends "${openvdb[@]}" ||
    echo "weft: going on without OpenVDB: level sets are not compared with its own" >&2
fi

# Optional: with it, tests run the native device's code for AArch64.
if [[ -z "$(installed_version qemu-user-static)" ]] && apt-cache show qemu-user-static >/dev/null 2>&1; then
  as_root apt-get install -q -y --no-install-recommends qemu-user-static ||
    echo "weft: going on without QEMU: code for AArch64 is not run" >&2
fi

# Optional: with it, the package for Python is built and tested. Its own packages stand in a folder of the build, because
# Debian's Python takes none from pip.
python_packages=(python3-dev python3-venv)
if [[ -z "$(installed_version python3-dev)" || -z "$(installed_version python3-venv)" ]] &&
  apt-cache show "${python_packages[@]}" >/dev/null 2>&1; then
  as_root apt-get install -q -y --no-install-recommends "${python_packages[@]}" || true
fi
venv="$root/build/venv"
python_wanted=(nanobind==3.1.0 numpy pytest)
if [[ ! -e "$venv/.complete" || "$(cat "$venv/.complete")" != "${python_wanted[*]}" ]]; then
  echo "weft: making an environment for Python in $venv" >&2
  if python3 -m venv "$venv" && "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 1 --timeout 30 \
    "${python_wanted[@]}"; then
    echo "${python_wanted[*]}" > "$venv/.complete"
  else
    rm -rf "$venv"
    echo "weft: going on without nanobind: the package for Python is not built" >&2
  fi
fi
