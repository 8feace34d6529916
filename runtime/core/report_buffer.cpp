// Reads the report buffer, and words its messages.
#include "report_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "../../frontend/ir/number.h"
#include "../../frontend/support/error.h"
#include "../../frontend/support/platform.h"
#include "../../frontend/types/half.h"
#include "../report.h"
#include "state.h"

namespace weft {

namespace layout = ir::report;

// ---- The sink and the size

namespace {

// The mutex is recursive, because a sink may print through weft's own functions. Lines of one wait stay together.
std::recursive_mutex g_sink_mutex;
PrintSink g_sink;

std::atomic<std::uint64_t>& report_bytes() {
  static std::atomic<std::uint64_t> bytes = platform::environment_number("WEFT_REPORT_BYTES", 1 << 20);
  return bytes;
}

std::uint32_t capacity_now() { return std::uint32_t(std::clamp<std::uint64_t>(report_bytes(), 4096, 1ull << 30) / 4); }

}  // namespace

PrintSink set_print_sink(PrintSink sink) {
  std::lock_guard lock(g_sink_mutex);
  return std::exchange(g_sink, sink);
}

void set_report_bytes(std::uint64_t bytes) { report_bytes() = bytes; }

namespace detail {

void Reports::add(Reports&& more) {
  lines.insert(lines.end(), std::move_iterator(more.lines.begin()), std::move_iterator(more.lines.end()));
  if (failures == 0) first = std::move(more.first);
  failures += more.failures;
  more = {};
}

void Reports::show() {
  if (lines.empty()) return;
  std::lock_guard lock(g_sink_mutex);
  if (g_sink.write) {
    for (const std::string& line : lines) g_sink.write(g_sink.context, line);
  } else {
    for (std::string& line : lines) {
      line += '\n';
      std::fwrite(line.data(), 1, line.size(), stdout);
    }
    std::fflush(stdout);
  }
  lines.clear();
}

namespace {
std::string text_of(const Reports::Failure& first, std::uint64_t failures) {
  std::string text = first.message;
  if (failures > 1) text += fmt::format(" ({} more failure{})", failures - 1, failures == 2 ? "" : "s");
  if (first.launched) text += fmt::format(" (launched at {}:{})", first.launched.file, first.launched.line);
  return text;
}
}  // namespace

void Reports::deliver() {
  show();
  if (failures == 0) return;
  throw Error(first.kind, text_of(first, failures), first.kernel, first.loc);
}

void Reports::deliver_quietly() noexcept {
  try {
    deliver();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "weft: %s\n", e.what());
  }
}

// ---- Recording

ReportBuffer::~ReportBuffer() {
  if (memory_.bytes) device_.free(memory_);
  if (copy_.bytes) device_.free(copy_);
}

// Makes a buffer of the size that is now requested. The host reads it without a copy, which would wait for everything
// that the queue was given before. Kernels write there only when they report.
void ReportBuffer::make_room() {
  const std::uint32_t wanted = capacity_now();
  if (capacity_ == wanted) return;
  if (memory_.bytes) device_.free(std::exchange(memory_, {}));
  capacity_ = 0;
  memory_ = device_.allocate((std::size_t(layout::kPrints) + wanted) * 4, backend::MemoryKind::readback);
  capacity_ = wanted;
  clean_ = false;
}

std::array<std::uint32_t, layout::kHeaderWords> ReportBuffer::empty_header() const {
  std::array<std::uint32_t, layout::kHeaderWords> header{};
  header[layout::kPrintCapacity] = capacity_;
  return header;
}

void ReportBuffer::clear_header(backend::Stream& stream) {
  if (clean_) return;
  stream.upload(memory_.address, empty_header().data(), sizeof empty_header());
  clean_ = true;
}

// Kernels beyond the number of counters share the last one.
std::uint32_t ReportBuffer::slot_of(const Kernel& kernel) {
  const auto known = std::ranges::find(kernels_, kernel);
  if (known == kernels_.end() && kernels_.size() < layout::kLostSlots) {
    kernels_.push_back(kernel);
    return std::uint32_t(kernels_.size() - 1);
  }
  return known == kernels_.end() ? layout::kLostSlots - 1 : std::uint32_t(known - kernels_.begin());
}

backend::MemoryRange ReportBuffer::begin(backend::Stream& stream, const Launch& launch, std::byte* arguments) {
  if (runs_.empty()) {
    make_room();
    if (!of_graph_) clear_header(stream);
    launches_ = 0;
    first_ = last_ = 0;
    kernels_.clear();
  }
  const std::uint32_t number = launches_++, slot = slot_of(launch.kernel);
  std::memcpy(arguments, &memory_.address, 8);
  std::memcpy(arguments + 8, &number, 4);
  std::memcpy(arguments + 12, &slot, 4);
  const auto same = [&](const Run& before) {
    return before.kernel == launch.kernel && before.first_thread == launch.first &&
           before.launched.file == launch.launched.file && before.launched.line == launch.launched.line &&
           std::ranges::equal(before.threads, launch.threads);
  };
  if (runs_.empty() || !same(runs_.back()))
    runs_.push_back(
        {launch.kernel, number, launch.first, launch.launched, {launch.threads.begin(), launch.threads.end()}});
  // Dispatches only append, so they need no order among themselves.
  return {memory_.address, memory_.bytes, ir::Access::atomic, true};
}

void ReportBuffer::recorded(backend::Ticket ticket) {
  if (first_ == 0) first_ = ticket;
  last_ = ticket;
}

void ReportBuffer::number(std::span<backend::Operation> operations) {
  const std::vector<Run> captured = std::exchange(runs_, {});
  launches_ = 0;
  const Run* last = nullptr;
  for (backend::Operation& o : operations) {
    if (o.report_at == 0) continue;
    std::uint32_t number;
    std::memcpy(&number, o.args.data() + o.report_at + 8, 4);
    const Run* const run = &*std::prev(std::ranges::upper_bound(captured, number, {}, &Run::first));
    if (run != last) {
      runs_.push_back(*run);
      runs_.back().first = launches_;
      last = run;
    }
    number = launches_++;
    std::memcpy(o.args.data() + o.report_at + 8, &number, 4);
  }
}

void ReportBuffer::record_into(backend::Operations& operations) {
  of_recording_ = true;
  const bool prints = std::ranges::any_of(runs_, [](const Run& run) {
    return std::ranges::any_of(run.kernel->messages,
                               [](const ir::Message& m) { return m.kind == ir::Message::Kind::print; });
  });
  copy_ = device_.allocate(prints ? memory_.bytes : std::size_t(layout::kPrints) * 4, backend::MemoryKind::readback);
  const auto header = empty_header();
  const backend::Allocation kept = device_.allocate(sizeof header, backend::MemoryKind::upload);
  operations.uploads.push_back(kept);
  std::memcpy(kept.host, header.data(), sizeof header);
  backend::Operation empty;
  empty.kind = backend::Operation::Kind::copy;
  empty.to = memory_.address;
  empty.from = kept.address;
  empty.bytes = sizeof header;
  operations.list.insert(operations.list.begin(), std::move(empty));
  backend::Operation keep;
  keep.kind = backend::Operation::Kind::copy;
  keep.to = copy_.address;
  keep.from = memory_.address;
  keep.bytes = copy_.bytes;
  operations.list.push_back(std::move(keep));
}

void ReportBuffer::restart(backend::Stream& stream) {
  first_ = last_ = 0;
  clear_header(stream);
}

// ---- Reading

const ReportBuffer::Run* ReportBuffer::run_of(std::uint32_t launch) const {
  const auto after = std::ranges::upper_bound(runs_, launch, {}, &Run::first);
  return after == runs_.begin() || launch >= launches_ ? nullptr : &*std::prev(after);
}

// The launches must have run.
std::vector<std::uint32_t> ReportBuffer::read(std::uint32_t first, std::uint32_t count) const {
  std::vector<std::uint32_t> words(count);
  const backend::Allocation& memory = copy_.bytes ? copy_ : memory_;
  const std::size_t from = std::size_t(first) * 4, bytes = std::size_t(count) * 4;
  if (count && from < memory.bytes) std::memcpy(words.data(), memory.host + from, std::min(bytes, memory.bytes - from));
  return words;
}

bool ReportBuffer::parse(std::span<const std::uint32_t> words, std::vector<Record>& into) const {
  const std::size_t before = into.size();
  bool whole = true;
  while (!words.empty() && words[0] != layout::kEnd) {
    whole = false;
    if (words.size() < layout::kRecordHead) break;
    const std::uint32_t launch = words[1];
    const Run* const run = run_of(launch);
    if (!run) break;
    const std::vector<ir::Message>& messages = run->kernel->messages;
    if (words[0] >= messages.size()) break;
    const ir::Message& message = messages[words[0]];
    const std::uint32_t length = message.words();
    if (length > words.size()) break;
    into.push_back({launch, words[2], words.data() + layout::kRecordHead, run, &message});
    words = words.subspan(length);
    whole = true;
  }
  // Records of one thread are in the order in which it made them.
  std::stable_sort(into.begin() + std::ptrdiff_t(before), into.end(), [](const Record& a, const Record& b) {
    return a.launch != b.launch ? a.launch < b.launch : a.thread < b.thread;
  });
  return whole;
}

namespace {

/// Takes the values of a record one by one.
class Values {
 public:
  explicit Values(const std::uint32_t* words) : next_(words) {}

  std::string scalar(ir::Type type) {
    std::uint64_t bits = *next_++;
    if (ir::bits(type) == 64) bits |= std::uint64_t(*next_++) << 32;
    if (type == ir::Type::f16) bits = half_bits(std::bit_cast<float>(std::uint32_t(bits)));
    return ir::number_text(type, bits);
  }

  std::string piece(const ir::MessagePiece& piece) {
    if (piece.is_text()) return piece.text;
    if (!piece.composite) return scalar(piece.type);
    std::string text = "[";
    for (std::uint32_t i = 0; i < piece.rows; ++i) {
      if (i) text += ", ";
      if (piece.columns == 1) {
        text += scalar(piece.type);
        continue;
      }
      text += '[';
      for (std::uint32_t j = 0; j < piece.columns; ++j) text += (j ? ", " : "") + scalar(piece.type);
      text += ']';
    }
    return text + "]";
  }

 private:
  const std::uint32_t* next_;
};

std::string line_of(const ir::Message& message, const std::uint32_t* words) {
  Values values(words);
  std::string line;
  for (std::size_t k = 0; k < message.pieces.size(); ++k) {
    if (k && !message.pieces[k].joined) line += ' ';
    line += values.piece(message.pieces[k]);
  }
  return line;
}

std::string index_text(const ir::Message& message, const std::uint32_t* words) {
  Values values(words);
  const std::size_t dimensions = (message.pieces.size() - 1) / 2;
  std::string element, outside;
  for (std::size_t k = 0; k < dimensions; ++k) {
    const ir::MessagePiece& index = message.pieces[1 + 2 * k];
    const std::string i = values.scalar(index.type), n = values.scalar(message.pieces[2 + 2 * k].type);
    element += (k ? ", " : "") + i;
    const bool below = i[0] == '-';
    const bool above = !below && (i.size() != n.size() ? i.size() > n.size() : i >= n);
    if (outside.empty() && (below || above))
      outside = fmt::format("index {} is outside dimension {} of {}, which has {} element{}", i, k,
                            message.pieces[0].text, n, n == "1" ? "" : "s");
  }
  return dimensions > 1 ? fmt::format("{} (element ({}))", outside, element) : outside;
}

std::string not_finite_text(const ir::Message& message, const std::uint32_t* words) {
  Values values(words);
  std::string indices;
  for (std::size_t k = 1; k + 1 < message.pieces.size(); ++k)
    indices += (k > 1 ? ", " : "") + values.piece(message.pieces[k]);
  const std::string value = values.piece(message.pieces.back());
  if (message.pieces[0].text.empty()) return fmt::format("{} is stored", value);
  return fmt::format("{} is stored to element ({}) of {}", value, indices, message.pieces[0].text);
}

std::string failure_text(const ir::Message& message, const std::uint32_t* words) {
  switch (message.kind) {
    case ir::Message::Kind::index: return index_text(message, words);
    case ir::Message::Kind::not_finite: return not_finite_text(message, words);
    case ir::Message::Kind::range: {
      Values values(words);
      std::string v[4];
      for (std::size_t k = 0; k < 4; ++k) v[k] = values.piece(message.pieces[k + 1]);
      return fmt::format("the range [{}, {}) with step {} is not one of a dimension of {}, which has {} elements", v[0],
                         v[1], v[2], message.pieces[0].text, v[3]);
    }
    case ir::Message::Kind::division:
      return fmt::format("{} of {} by zero", message.pieces[0].text, Values(words).piece(message.pieces[1]));
    case ir::Message::Kind::gradient: return line_of(message, words);
    default: break;
  }
  const std::string text = line_of(message, words);
  return text.empty() ? "an assertion failed" : "an assertion failed: " + text;
}

// The thread in the kernel's coordinates; the last one runs fastest.
std::string thread_text(std::int64_t thread, std::span<const std::int64_t> extents) {
  if (extents.size() < 2) return fmt::format("thread {}", thread);
  std::string text;
  for (std::size_t k = extents.size(); k-- > 0;) {
    const std::int64_t n = std::max<std::int64_t>(extents[k], 1);
    text = fmt::format("{}{}{}", k ? thread % n : thread, text.empty() ? "" : ", ", text);
    thread /= n;
  }
  return fmt::format("thread ({})", text);
}

}  // namespace

Reports::Failure ReportBuffer::failure(const Record& r) const {
  const std::string thread = thread_text(r.run->first_thread + r.thread, r.run->threads);
  return {fmt::format("{}: {}", thread, failure_text(*r.message, r.words)), r.run->kernel->name, r.message->loc,
          r.message->kind == ir::Message::Kind::gradient ? ErrorKind::not_differentiable : ErrorKind::kernel_fault,
          r.run->launched};
}

void ReportBuffer::collect(backend::Stream& stream, backend::Ticket waited, Reports& into) {
  if (of_recording_ ? !pending() || !stream.done(last_) : !is_read_by(waited)) return;
  stream.wait(last_);
  const std::vector<std::uint32_t> header = read(0, layout::kHeaderWords);
  const std::uint32_t used = std::min(header[layout::kPrintsUsed], capacity_);
  const std::uint32_t failures_used = std::min(header[layout::kFailuresUsed], layout::kFailureCapacity);
  const std::vector<std::uint32_t> prints = read(layout::kPrints, used);
  const std::vector<std::uint32_t> failures = read(layout::kFailures, failures_used);

  Reports found;
  std::vector<Record> lines, failed;
  bool whole = parse(prints, lines);
  whole = parse(failures, failed) && whole;
  for (const Record& r : lines) found.lines.push_back(line_of(*r.message, r.words));
  for (std::uint32_t slot = 0; slot < layout::kLostSlots; ++slot) {
    const std::uint32_t lost = header[layout::kPrintsLost + slot];
    if (lost == 0) continue;
    const bool shared = slot + 1 == layout::kLostSlots || slot >= kernels_.size();
    found.lines.push_back(fmt::format(
        "weft: {} line{} of print() in {} lost: the stream's report buffer of {} bytes is full; enlarge it by "
        "WEFT_REPORT_BYTES or set_report_bytes(), or wait more often",
        lost, lost == 1 ? "" : "s",
        (shared ? std::string("some kernels") : fmt::format("kernel \"{}\"", kernels_[slot]->name)) +
            (lost == 1 ? " was" : " were"),
        std::uint64_t(capacity_) * 4));
  }
  if (!failed.empty()) {
    found.first = failure(failed.front());
    found.failures = failed.size() + header[layout::kFailuresLost];
  }
  if (!whole) found.add({{}, {"a kernel wrote over the report buffer of its stream: what it held is lost", {}, {}}, 1});

  clean_ = header[layout::kPrintsUsed] == 0 && header[layout::kFailuresUsed] == 0;
  if (of_graph_)
    last_ = 0;
  else
    runs_.clear();
  into.add(std::move(found));
}

}  // namespace detail
}  // namespace weft
