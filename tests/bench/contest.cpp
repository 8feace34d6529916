// How a contest is held: correctness first, then time.
#include "contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <stdexcept>

namespace weft::bench {

namespace {

constexpr double kSampleSeconds = 0.04;  // long beside a submission and the wait for it
constexpr int kMostLaunches = 64;

double error_of(float value, float wanted) {
  const double scale = std::max(1.0, std::abs(double(wanted)));
  const double error = std::abs(double(value) - double(wanted)) / scale;
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

}  // namespace

std::vector<float> result_of(const Contest& contest, Stream& stream, const std::function<void()>& launch) {
  contest.reset();
  stream.synchronize();
  launch();
  stream.synchronize();  // launches on the native stream are unknown to the arrays: they would not wait for them
  return contest.result();
}

void check(const Contest& contest, const std::string& who, const std::vector<float>& got,
           const std::function<float(std::size_t)>& wanted, std::size_t step) {
  std::size_t wrong = 0, checked = 0, first = 0;
  for (std::size_t i = 0; i < got.size(); i += step, ++checked)
    if (error_of(got[i], wanted(i)) > contest.tolerance && wrong++ == 0) first = i;
  if (double(wrong) > contest.outliers * double(checked))
    throw std::runtime_error(fmt::format("{}: {} of {} results are wrong; result {} is {}, not {}", who, wrong, checked,
                                         first, got[first], wanted(first)));
}

void check_with_host(const Contest& contest, const std::string& who, const std::vector<float>& got) {
  check(contest, who, got, contest.expected, std::max<std::size_t>(1, got.size() / 257));
}

// Checks both sides before it times them: weft against the host at some hundred places, GLSL against weft everywhere.
void race(Run& run, const Contest& contest) {
  Stream stream = run.device().stream();
  backend::Stream& native = stream.native();
  const std::vector<float> ours = result_of(contest, stream, contest.weft);
  check_with_host(contest, "weft", ours);
  for (const GlslKernel& glsl : contest.glsl)
    check(contest, glsl.name(), result_of(contest, stream, [&] { glsl.launch(native); }),
          [&](std::size_t i) { return ours[i]; });

  const auto start = std::chrono::steady_clock::now();
  contest.glsl[0].launch(native);
  stream.synchronize();
  const double one = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int launches = std::clamp(int(std::ceil(kSampleSeconds / one)), 2, kMostLaunches);

  // Nothing is subtracted on either side: recording, submission and the wait are in both.
  auto repeat = [&](const std::function<void()>& launch_one) {
    return [=, &stream] {
      for (int k = 0; k < launches; ++k) launch_one();
      stream.synchronize();
    };
  };
  std::vector<std::function<void()>> candidates{repeat(contest.weft)};
  for (const GlslKernel& glsl : contest.glsl) candidates.push_back(repeat([&] { glsl.launch(native); }));
  std::vector<Timing> timings = interleave(candidates, run.rounds());
  for (Timing& t : timings) t.seconds /= launches;
  std::size_t best = 1;
  for (std::size_t k = 2; k < timings.size(); ++k)
    if (timings[k].seconds < timings[best].seconds) best = k;
  for (std::size_t k = 1; k < timings.size(); ++k)
    run.note(fmt::format("{:<20} {:10.4g} ms  {:.3f}", contest.glsl[k - 1].name(), timings[k].seconds * 1e3,
                         timings[0].seconds / timings[k].seconds));
  run.compare(timings[0], {contest.glsl[best - 1].name(), timings[best]}, "ms");
}

void add_against_glsl(Harness& harness, const std::string& name, const std::function<void(Run&)>& body) {
  harness.add("codegen", name, [body](Run& run) {
    if (!run.device().name().starts_with("vulkan:")) return run.leave_out("GLSL needs a device of Vulkan's");
    body(run);
  });
}

backend::MemoryRange reads(const ArrayBase& a) { return {a.address(), a.extent_bytes(), ir::Access::read}; }
backend::MemoryRange writes(const ArrayBase& a) { return {a.address(), a.extent_bytes(), ir::Access::write}; }
backend::MemoryRange updates(const ArrayBase& a) {
  return {a.address(), a.extent_bytes(), ir::Access::read | ir::Access::write};
}

std::vector<float> random_floats(std::size_t n, float lo, float hi, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(lo, hi);
  std::vector<float> values(n);
  for (float& v : values) v = uniform(random);
  return values;
}

std::uint32_t groups(std::int64_t n, std::int64_t block) { return std::uint32_t((n + block - 1) / block); }

std::string glsl_kernel(const std::string& local_size, const std::string& rest) {
  return fmt::format(
      "#version 460\n"
      "#extension GL_EXT_buffer_reference : require\n"
      "#extension GL_EXT_scalar_block_layout : require\n"
      "layout({}) in;\n"
      "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats {{ float v[]; }};\n"
      "layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer ConstFloats {{ float v[]; }};\n"
      "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Ints {{ int v[]; }};\n"
      "layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer ConstInts {{ int v[]; }};\n"
      "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Vec3s {{ vec3 v[]; }};\n"
      "layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Vec4s {{ vec4 v[]; }};\n"
      "layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer ConstVec4s {{ vec4 v[]; }};\n"
      "layout(buffer_reference, scalar, row_major, buffer_reference_align = 16) readonly buffer ConstMats {{ mat4 v[]; "
      "}};\n{}",
      local_size, rest);
}

}  // namespace weft::bench
