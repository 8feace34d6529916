// A kernel of weft and its counterparts in GLSL: checked, then timed.
#pragma once
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "harness.h"
#include "peers/glsl.h"

namespace weft::bench {

/// The content of results before a kernel runs, by which a result that it leaves out is seen.
inline constexpr float kUnwritten = std::numeric_limits<float>::quiet_NaN();

/// Several ways to the same results.
struct Contest {
  std::function<void()> reset = [] {};         ///< brings the results to where each side starts from
  std::function<std::vector<float>()> result;  ///< reads them
  std::function<float(std::size_t)> expected;  ///< by the host
  std::function<void()> weft;                  ///< one launch
  std::vector<GlslKernel> glsl;                ///< the fastest is the reference
  double tolerance = 1e-5;                     ///< relative; absolute below 1
  double outliers = 0;                         ///< share of the results that may differ by more
};

/// Brings the results to where each side starts from, runs `launch` and reads them.
std::vector<float> result_of(const Contest& contest, Stream& stream, const std::function<void()>& launch);
/// Compares every step-th result with the wanted one.
/// Errors: std::runtime_error naming `who` and the first wrong result.
void check(const Contest& contest, const std::string& who, const std::vector<float>& got,
           const std::function<float(std::size_t)>& wanted, std::size_t step = 1);
/// The same against the host's results, at some hundred places.
void check_with_host(const Contest& contest, const std::string& who, const std::vector<float>& got);

/// Checks the results of all sides, then times them against each other and reports the row.
/// Errors: std::runtime_error naming the side and the first wrong result.
void race(Run& run, const Contest& contest);

/// Adds a case of suite codegen, which is left out where the device does not take GLSL.
void add_against_glsl(Harness& harness, const std::string& name, const std::function<void(Run&)>& body);

/// The memory that a GLSL kernel touches, for GlslKernel.
backend::MemoryRange reads(const ArrayBase& array);
backend::MemoryRange writes(const ArrayBase& array);
backend::MemoryRange updates(const ArrayBase& array);

/// Workgroups of `block` threads for n threads.
std::uint32_t groups(std::int64_t n, std::int64_t block);

/// The text of a GLSL kernel: the extensions, the workgroup ("local_size_x = 256"), names for arrays at an address
/// (Floats, Ints, Vec3s, Vec4s; ConstFloats, ConstInts, ConstVec4s and ConstMats, of row-major mat4, are read only),
/// then `rest`.
std::string glsl_kernel(const std::string& local_size, const std::string& rest);

/// Random numbers, the same in each run.
std::vector<float> random_floats(std::size_t n, float lo, float hi, unsigned seed);

/// Copies bytes into elements of another type.
template <class T>
std::vector<T> packed(const std::vector<float>& values) {
  std::vector<T> out(values.size() * sizeof(float) / sizeof(T));
  std::memcpy(static_cast<void*>(out.data()), values.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace weft::bench
