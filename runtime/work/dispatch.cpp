// Packs the arguments of a launch, finds what it accesses, and issues its dispatches.
#include "dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "../../frontend/support/error.h"
#include "capture.h"
#include "work.h"

namespace weft::detail {

namespace {

void pack_array(std::byte* block, const ir::Param& p, const ArrayBase& a) {
  std::byte* at = block + p.offset;
  const std::uint64_t address = a.address();
  std::memcpy(at, &address, 8);
  at += 8;
  if (!p.strided) {
    for (int k = 0; k < p.ndim; ++k, at += 4) {
      const std::int32_t n = std::int32_t(a.shape(k));
      std::memcpy(at, &n, 4);
    }
    return;
  }
  for (int k = 0; k < p.ndim; ++k, at += 8) {
    const std::int64_t n = a.shape(k);
    std::memcpy(at, &n, 8);
  }
  for (int k = 0; k < p.ndim; ++k, at += 8) {
    const std::int64_t n = a.stride(k);
    std::memcpy(at, &n, 8);
  }
}

// See tracing::thread_coordinate: q = mul_hi(2 n, multiplier) >> shift.
void pack_extents(std::byte* block, const ir::Interface& i, const Extent& threads) {
  for (int k = 1; k < int(i.tid_rank); ++k) {
    const std::uint32_t d = std::uint32_t(threads[k]);
    const int shift = std::bit_width(d - 1);  // ceil(log2 d)
    const std::uint64_t multiplier = ((1ull << (31 + shift)) + d - 1) / d;
    const std::uint32_t packed[] = {d, std::uint32_t(multiplier), std::uint32_t(shift)};
    static_assert(sizeof packed == ir::Interface::kExtentBytes);
    std::memcpy(block + i.extent_offset(k), packed, sizeof packed);
  }
}

// Returns the argument's array if the kernel accesses it, else null.
inline const ArrayBase* pack_argument(std::byte* block, const ir::Param& p, const HostArg& arg) {
  if (!arg.array) {
    // Most values have 4 bytes. They take one move, whereas a length that is not known takes a call.
    if (p.bytes == 4)
      std::memcpy(block + p.offset, arg.value, 4);
    else
      std::memcpy(block + p.offset, arg.value, p.bytes);
    return nullptr;
  }
  if (p.kind == ir::Param::Kind::absent) return nullptr;
  pack_array(block, p, *arg.array);
  return p.access == ir::Access::none ? nullptr : arg.array;
}

// Memory for elements that are written before they are read: initialising all ranges would cost each launch some 50 ns.
// Up to `few` elements, which are enough for nearly all launches, need no heap memory.
template <class T, std::size_t few>
class Room {
 public:
  explicit Room(std::size_t size) {
    if (size > few) [[unlikely]] {
      many_ = std::make_unique_for_overwrite<T[]>(size);
      first_ = many_.get();
    }
  }
  Room(const Room&) = delete;
  T* data() { return first_; }
  const T* data() const { return first_; }

 private:
  alignas(T) std::byte few_[few * sizeof(T)];
  std::unique_ptr<T[]> many_;
  T* first_ = std::launder(reinterpret_cast<T*>(few_));
};

}  // namespace

// The name is that of the module's parameter, see Trace::begin_part.
std::string argument_name(const HostArg& arg) {
  std::string name = fmt::format("argument {}", arg.argument);
  if (arg.field_name) name += arg.field_name(arg.field);
  return arg.part == 0 ? name : fmt::format("{}, indices of dimension {}", name, arg.part - 1);
}

PackedLaunch pack(const ir::Interface& call, std::span<const HostArg> args, const Extent& threads, std::int64_t count) {
  PackedLaunch packed;
  packed.block.resize(call.args_bytes);
  for (std::size_t k = 0; k < args.size(); ++k)
    if (const ArrayBase* a = pack_argument(packed.block.data(), call.params[k], args[k]))
      packed.arrays.push_back({a, k, call.params[k].access});
  pack_extents(packed.block.data(), call, threads);
  const std::uint32_t n = std::uint32_t(count);
  std::memcpy(packed.block.data(), &n, 4);
  return packed;
}

namespace {

// The access to memory that elements lead to: what a kernel changes there is not known, so it may read and write all.
constexpr ir::Access kAnything = ir::Access::read | ir::Access::write | ir::Access::atomic;

// The memory that a launch works on beyond its arguments.
struct Beyond {
  References held, held_read;  ///< reached from elements of changed arguments, and of read ones
  References by_handles;
  std::vector<View> changed;     ///< views of all of `held`, for its watchers
  std::vector<Access> accesses;  ///< of the arguments, then of the memory above

  bool same(const Beyond& other) const {
    return held == other.held && held_read == other.held_read && by_handles == other.by_handles;
  }
};

// One launch: its argument block, its accesses, and the dispatches that it takes.
//
// A launch is refused before watchers are told that elements change. What a kernel does through an address that it has
// loaded is noted for all of its arrays (mark_accesses). If it changes no argument that leads to other arrays, it
// therefore changes nothing there.
class KernelWork final : DeviceWork::Words {
 public:
  explicit KernelWork(const Dispatch& launch)
      : launch_(launch),
        call_(*launch.program.call),
        block_(call_.args_bytes),
        accesses_(launch.args.size()),
        max_ranges_(std::max(launch.args.size() + kOthers, kFew)),
        ranges_(max_ranges_) {}

  void run() {
    StreamState& on = launch_.on;
    pack_arguments();
    if (beyond_)
      submit_beyond();
    else
      submit(on, work({accesses_.data(), num_arrays_}), [&] { return issue(); });
    if (on.capture)
      on.capture->launched({.dispatches = dispatches_,
                            .program = launch_.program.program,
                            .call = launch_.program.call,
                            .threads = launch_.threads},
                           launch_.args, launch_.uses, launch_.moves_elements);
  }

 private:
  // The number of ranges beside those of arguments: the report buffer, what elements lead to (changed, or read), and
  // what handles lead to.
  static constexpr std::size_t kOthers = 4, kFew = 68;

  DeviceWork work(std::span<const Access> accesses) const {
    return {.name = call_.name.c_str(), .accesses = accesses, .words = this};
  }

  // Other threads may assign arrays to elements between the look at what these lead to and the launch. Watchers are
  // told without a lock; so the look is repeated under it, and everything begins again if it finds other memory.
  void submit_beyond() {
    std::vector<Beyond> earlier;  // may be the last to refer to memory, which must not end under the lock
    std::unique_lock<std::recursive_mutex> lock;
    find_beyond();
    const auto issue_if_same = [&]() -> std::optional<backend::Ticket> {
      lock = launch_.on.device->lock_elements();
      earlier.push_back(std::exchange(*beyond_, {}));
      find_beyond();
      if (beyond_->same(earlier.back())) return issue();
      lock.unlock();
      return {};
    };
    while (!try_submit(launch_.on, work(beyond_->accesses), issue_if_same)) {
    }
  }

  // Calls f, and adds the kernel's name and place to errors that have none.
  template <class F>
  auto named(const F& f) const {
    try {
      return f();
    } catch (const Error& e) {
      throw with_kernel(e, "");
    }
  }
  Error with_kernel(const Error& e, const std::string& what) const {
    if (e.kind() != ErrorKind::invalid_argument || !e.kernel().empty()) return e;
    return Error(e.kind(), what.empty() ? e.message() : fmt::format("{}: {}", what, e.message()), call_.name,
                 call_.loc);
  }

  void pack_arguments() {
    const std::span<const HostArg> args = launch_.args;
    if (call_.by_handles) beyond_.emplace();
    const bool moves = launch_.moves_elements;
    for (std::size_t k = 0; k < args.size(); ++k) {
      const ir::Param& p = call_.params[k];
      const ArrayBase* const a = pack_argument(block_.data(), p, args[k]);
      if (!a) continue;
      Storage& storage = *a->storage();
      storage.check_present();
      const bool changes = any(p.access, ir::kChanges);
      accesses_.data()[num_arrays_] = {&storage, changes, changes && !moves ? a : nullptr, p.name.c_str()};
      ranges_.data()[num_arrays_] = {a->address(), a->extent_bytes(), p.access};
      ++num_arrays_;
      if (storage.may_hold_arrays && !moves && !beyond_) beyond_.emplace();
    }
    num_ranges_ = num_arrays_;
    pack_extents(block_.data(), call_, launch_.threads);
  }

  void find_beyond() {
    auto& [held, held_read, by_handles, changed, accesses] = *beyond_;
    bool changes_held = false;
    for (const Access& a : std::span(accesses_.data(), num_arrays_)) {
      if (!a.storage->may_hold_arrays || launch_.moves_elements) continue;
      a.storage->reach(a.changes ? held : held_read);
      changes_held |= a.changes;
    }
    if (!held.empty()) std::erase_if(held_read, [&](const auto& s) { return std::ranges::binary_search(held, s); });
    for (const References* list : {&held, &held_read})
      refuse_freed(*list, "an array was freed that the elements of its arguments may hold: assign all of those anew");
    if (call_.by_handles) {
      by_handles = named([&] { return launch_.on.device->handles.all(launch_.on); });
      refuse_freed(by_handles, "an array was freed that a structure stands on which kernels find by its handle");
    }
    accesses.assign(accesses_.data(), accesses_.data() + num_arrays_);
    changed.reserve(held.size());  // accesses point to its elements, which must not move
    for (const std::shared_ptr<Storage>& s : held) {
      changed.push_back(View::all_of(s));
      accesses.push_back({s.get(), true, s->bytes ? &changed.back() : nullptr});
    }
    for (const References* list : {&held_read, &by_handles})
      for (const std::shared_ptr<Storage>& s : *list) accesses.push_back({s.get(), false});
    num_ranges_ = num_arrays_;  // in each round of submit_beyond()
    // Elements and handles may refer to other memory when the graph runs.
    if (launch_.on.capture) {
      ranges_.data()[num_ranges_++] = {0, ~0ull, changes_held ? kAnything : ir::Access::read};
      return;
    }
    add_ranges(held, kAnything, 3);
    add_ranges(held_read, ir::Access::read, 2);
    add_ranges(by_handles, ir::Access::read, 1);
  }

  // Adds the ranges of a list, or one range of all memory if they are too many.
  // \param room  ranges to leave free: for the report buffer, and one for each list that is to come
  void add_ranges(const References& list, ir::Access access, std::size_t room) {
    if (num_ranges_ + list.size() + room > max_ranges_) {
      ranges_.data()[num_ranges_++] = {0, ~0ull, access};
      return;
    }
    for (const std::shared_ptr<Storage>& s : list)
      ranges_.data()[num_ranges_++] = {s->allocation.address, s->bytes, access};
  }

  void refuse_freed(const References& list, const char* message) const {
    for (const std::shared_ptr<Storage>& s : list)
      if (s->is_freed()) throw Error(ErrorKind::invalid_argument, message, call_.name, call_.loc);
  }

  Error refusal(const Error& why, std::size_t access) const override {
    if (access < num_arrays_) {
      std::size_t argument = 0;
      for (std::size_t k = 0; k < launch_.args.size(); ++k)
        if (accesses_.data()[access].through == call_.params[k].name.c_str()) argument = k;
      return with_kernel(why, argument_name(launch_.args[argument]));
    }
    const std::size_t by_elements = num_arrays_ + beyond_->held.size() + beyond_->held_read.size();
    if (access < by_elements) return with_kernel(why, "what elements of its arguments hold");
    if (access < by_elements + beyond_->by_handles.size()) return with_kernel(why, "what it finds by handles");
    return why;
  }

  backend::Ticket issue() {
    // A mesh whose indices the launch changes needs its rebuild by now.
    if (call_.by_handles) named([&] { launch_.on.device->handles.refuse_unbuilt(); });
    const bool by_rows = call_.tid_rank > 0;
    const std::int64_t all = by_rows ? launch_.threads[0] : launch_.count;
    const std::int64_t rest = launch_.count / all;
    backend::Ticket ticket = 0;
    for (std::int64_t start = 0; start < all; start += launch_.steps) {
      if (start > 0 && launch_.between) launch_.between();
      const std::int64_t n = std::min(launch_.steps, all - start) * rest;
      if (call_.wide && by_rows) std::memcpy(block_.data() + call_.tid_offset, &start, 8);
      for (std::int64_t first = 0; first < n; first += std::min(n, launch_.lanes), ++dispatches_)
        ticket = record(std::uint32_t(std::min(n - first, launch_.lanes)), first, start * rest + first);
    }
    return ticket;
  }

  // Records one dispatch of n threads. Its first thread is number `first` of the step, and `number` of the launch.
  backend::Ticket record(std::uint32_t n, std::int64_t first, std::int64_t number) {
    std::byte* const block = block_.data();
    std::memcpy(block, &n, 4);
    if (launch_.first_thread < launch_.args.size()) {
      const std::uint32_t first_thread = std::uint32_t(first);
      std::memcpy(block + call_.params[launch_.first_thread].offset, &first_thread, 4);
    }
    StreamState& on = launch_.on;
    const StreamState::Held s = on.hold();
    if (call_.report_offset == 0) return give(*s, n, num_ranges_);
    ReportBuffer& reports = on.report_buffer();
    const ReportBuffer::Launch about{
        launch_.program.call, {launch_.threads.n.data(), std::size_t(launch_.threads.rank)}, number, launch_.launched};
    ranges_.data()[num_ranges_] = reports.begin(*s, about, block + call_.report_offset);
    const backend::Ticket ticket = give(*s, n, num_ranges_ + 1);
    if (on.capture)
      on.capture->operations().list.back().report_at = call_.report_offset;
    else
      reports.recorded(ticket);
    return ticket;
  }

  // Gives a dispatch to the stream, which is locked; in parts if there is a budget.
  backend::Ticket give(backend::Stream& s, std::uint32_t n, std::size_t num_ranges) {
    DeviceState& device = *launch_.on.device;
    const std::uint32_t groups = (n + call_.block - 1) / call_.block;
    const std::uint32_t limit = device.device->info().max_groups;
    // Rows are as even as possible, so that the last one has few idle workgroups. Most launches have one row, and skip
    // the divisions, which cost as much as a large part of this function.
    const std::uint32_t rows = groups <= limit ? 1 : (groups + limit - 1) / limit;
    const backend::Grid grid{rows == 1 ? groups : (groups + rows - 1) / rows, rows, 1};
    const auto launch = [&](const backend::Grid& part) {
      return s.launch(*launch_.program.program, part, {block_.data(), call_.args_bytes}, {ranges_.data(), num_ranges});
    };
    const double budget = device.dispatch_budget.load(std::memory_order_relaxed);
    if (budget == 0 || launch_.on.capture) [[likely]]
      return launch(grid);
    Pacer::Parts parts(launch_.on.pacer(), s, launch_.program.pace, {groups, call_.block, limit, budget}, grid);
    while (parts.next()) parts.given(launch(parts.grid()));
    return parts.ticket();
  }

  const Dispatch& launch_;
  const ir::Interface& call_;
  Room<std::byte, 512> block_;
  // The arrays that the kernel accesses, gathered once because each is looked at several times.
  Room<Access, 64> accesses_;
  std::size_t num_arrays_ = 0;
  const std::size_t max_ranges_;
  Room<backend::MemoryRange, kFew> ranges_;
  std::size_t num_ranges_ = 0;
  std::optional<Beyond> beyond_;
  std::size_t dispatches_ = 0;
};

}  // namespace

void dispatch(const Dispatch& launch) { KernelWork(launch).run(); }

}  // namespace weft::detail
