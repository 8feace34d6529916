#!/usr/bin/env bash
# Packs tests (preset dev), and benchmarks and examples (preset release), for a machine that has a GPU and no compiler:
# build/gpu.tar.xz, with the libraries that they need. All of them get the library of preset release. run.sh beside this
# script runs it there, in a checkout of the same commit.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
cd "$root"
cmake --build --preset dev --target device_tests unit_tests
cmake --build --preset release --target weft_bench dem raycast collide embed
pack="build/gpu"
rm -rf "$pack"
mkdir -p "$pack"/{bin,lib,layers}

cp build/dev/tests/{device_tests,unit_tests} build/release/weft_bench "$pack/bin"
cp build/release/examples/{dem,raycast,collide,embed} "$pack/bin"
cp build/dev/tests/lib*.so "$pack/lib"
cp -P build/release/libweft*.so.* "$pack/lib"
cp -rL ../shared/data "$pack/data" 2>/dev/null || true
echo "$root" >"$pack/source_folder"
{ git rev-parse HEAD && git status --short; } >"$pack/commit" 2>/dev/null || true

# CUB is compiled here for all GPUs, because weft_bench asks for a compiler and is given this program instead.
nvcc="${WEFT_NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)}"
if [[ -n "$nvcc" ]]; then "$nvcc" -O3 -std=c++17 -arch=all-major -o "$pack/bin/cub" tests/bench/peers/cub.cu; fi

# Copies the system's libraries that a program names, except the C and C++ libraries, which run.sh expects on the other
# machine. Drivers of GPUs need X's and GL's, which a machine without a screen may lack.
copy_libraries() {
  ldd "$@" 2>/dev/null | sed -n 's/^[[:space:]]*\([^ ]*\) => \(\/[^ ]*\) .*/\1 \2/p' | sort -u |
    while read -r name path; do
      case "$name" in
        libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libgcc_s.so* | libstdc++.so* | libweft*) ;;
        *) [[ -e "$pack/lib/$name" ]] || cp -L "$path" "$pack/lib/$name" ;;
      esac
    done
}
for name in libvulkan.so.1 libX11.so.6 libXext.so.6 libGLX.so.0 libEGL.so.1 libgbm.so.1 libwayland-client.so.0; do
  path="$(ldconfig -p | sed -n "s|^[[:space:]]*$name (.*x86-64.*) => ||p" | head -n 1)"
  if [[ -n "$path" ]]; then
    cp -L "$path" "$pack/lib/$name"
    copy_libraries "$path"
  fi
done
copy_libraries "$pack"/bin/* "$pack"/lib/libweft*.so.*

manifest=/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json
if [[ -e "$manifest" ]]; then
  layer="$(ldconfig -p | sed -n 's|^[[:space:]]*libVkLayer_khronos_validation.so .* => ||p' | head -n 1)"
  layer="${layer:-/usr/lib/$(uname -m)-linux-gnu/libVkLayer_khronos_validation.so}"
  cp -L "$layer" "$pack/layers"
  copy_libraries "$layer"
  sed 's#"library_path": *"[^"]*"#"library_path": "./libVkLayer_khronos_validation.so"#' "$manifest" \
    >"$pack/layers/VkLayer_khronos_validation.json"
fi

find "$pack/bin" "$pack/lib" -type f -exec strip -g {} + 2>/dev/null || true
tar -C "$pack" -cf - . | xz -T0 -4 >build/gpu.tar.xz
rm -rf "$pack"
ls -l build/gpu.tar.xz
