// Forms of structures: how much they hold and where, as kernels are given it by value. Internal to the runtime.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "../../frontend/ir/module.h"

namespace weft::detail {

/// How much a structure holds, and in which memory: its host's members as numbers. Work that is given a structure by
/// value is right as long as the device holds it in that form.
struct Form {
  enum class Kind : std::uint8_t {
    none,  ///< nothing was built: there is nothing to find
    known,
    unknown,  ///< work that builds it may have run, or not
  };
  Kind kind = Kind::none;
  std::array<std::uint64_t, 8> built = {};  ///< by the last build
  std::array<std::uint64_t, 6> moved = {};  ///< what a refit exchanges, and kernels may read
  /// Serials of memory that is the structure's own, 0 where there is less. The first is that which a refit writes.
  std::array<std::uint64_t, 5> memory = {};
  std::string (*describe)(const Form&) = nullptr;

  /// For messages: "a hash grid of 100 points".
  std::string what() const { return describe ? describe(*this) : "a structure"; }
  bool is_built_as(const Form& other) const { return kind == other.kind && built == other.built; }
  bool operator==(const Form& other) const { return is_built_as(other) && moved == other.moved; }
};

/// The form of a structure that the device holds, by the work that it was given last. Whoever has captured work on the
/// structure keeps this, and the structure may go before. Thread-safe.
class FormCell {
 public:
  /// Before a build gives the device its work. \return  for set() and fail()
  std::uint64_t begin();
  /// Behind the work, which ends in that form: unless others have given theirs meanwhile.
  void set(const Form& form, std::uint64_t begun);
  /// The work may have been given in part: nobody knows what the device holds.
  void fail();
  bool holds(const Form& form) const;
  /// A refit is given the structure. Errors: as refuse_held(), but for what it exchanges.
  /// \return  whether the device holds that, too, as the host says
  bool check_built(const Form& host) const;

 private:
  friend class Forms;
  /// What a recording will leave, which was not submitted yet.
  struct Told {
    std::uint64_t recording = 0;  ///< see Forms::record()
    Form form;
  };
  /// What a recording finds that was not submitted yet: it comes behind those that were recorded before.
  const Form& found_by(std::uint64_t recording) const;

  mutable std::mutex mutex_;
  Form device_;
  std::uint64_t version_ = 0;  ///< how often that was set
  std::vector<Told> told_;     ///< in the order in which they were recorded
};

/// Errors: Error(invalid_argument) for a structure that the device holds in another form than the host says.
[[noreturn]] void refuse_held(const Form& host);

/// Captured work is given a structure.
struct FormUse {
  std::shared_ptr<FormCell> cell;
  Form form;
  bool refit = false;  ///< which needs nothing of what it exchanges
};

/// Which forms captured work needs when it runs, and which ones it leaves. A launch of it holds lock().
class Forms {
 public:
  // ---- In a capture
  void launched(std::size_t launch, const std::shared_ptr<const ir::Interface>& kernel, std::span<const FormUse> uses);
  /// By a refit.
  void need(const FormUse& use) { need(use, SIZE_MAX, nullptr); }
  /// The work builds the structure, or exchanges what a refit does.
  /// \param before    its form by then
  /// \param launches  so many came before
  void make(const std::shared_ptr<FormCell>& cell, const Form& before, const Form& after, std::size_t launches);
  /// Around the work of a condition, which is done or not.
  void begin_condition();
  /// \param again  or done several times
  /// Errors: Error(invalid_argument) for a structure that has another form then than before: behind the condition
  /// nobody could tell which it is.
  void end_condition(bool again);
  struct Mark {
    std::size_t needs, made, conditions;
  };
  Mark mark() const { return {needs_.size(), made_.size(), conditions_.size()}; }
  void back_to(const Mark& mark);

  // ---- Of what was captured
  /// The capture has come to its end.
  void settle();
  /// The launch is given these in place of what it used; check_given() comes before.
  void give(std::size_t launch, const std::vector<FormUse>& uses, const std::shared_ptr<const ir::Interface>& kernel);
  /// Errors: Error(invalid_argument) for a structure that the work has made in another form by then.
  /// \param what  for messages: "arguments are set with"
  void check_given(std::size_t launch, std::span<const FormUse> uses, const char* what) const;
  /// From before check() until behind made() or recorded(): the device gets the work of those who do this in the order
  /// of the forms.
  std::vector<std::unique_lock<std::mutex>> lock() const;
  /// Before the first check() of work that others will submit.
  void record();
  /// Before a run. Errors: Error(invalid_argument) for a structure that the device holds in another form by now.
  /// \param what, again  for messages, see CapturedMemory
  void check(const char* what, const char* again) const;
  /// The device gets the work.
  void made();
  /// The work is recorded: what it leaves is found by recordings from now on, and by none else until made().
  void recorded();
  /// What was recorded is submitted, or will never be.
  void forget();

 private:
  struct Need {
    FormUse use;
    bool or_none = false;  ///< a structure that was never built will do, too
    std::size_t launch = SIZE_MAX;
    std::shared_ptr<const ir::Interface> kernel;  ///< of messages
    bool operator==(const Need& other) const {
      return use.cell == other.use.cell && use.refit == other.use.refit && or_none == other.or_none &&
             use.form == other.use.form;
    }
  };
  using Conditions = std::vector<int>;  ///< from the outermost to the innermost, each with a number of its own
  struct Made {
    std::shared_ptr<FormCell> cell;
    Form before, form;
    std::size_t launches = 0;
    Conditions conditions;
  };
  /// The form in which the work has made it for sure by the time of that launch, in these conditions, or null.
  const Form* made_before(std::size_t launch, const FormCell& cell, const Conditions& conditions) const;
  void need(const FormUse& use, std::size_t launch, const std::shared_ptr<const ir::Interface>& kernel);
  /// What the work leaves of a structure that is `device` before.
  Form left(const FormCell& cell, Form device) const;

  Conditions conditions_;
  std::vector<std::size_t> begun_;  ///< what was made before each of them
  int num_conditions_ = 0;
  std::vector<Need> needs_;
  std::vector<Made> made_;
  std::vector<Need> asked_;       ///< the needs, each once
  std::vector<FormCell*> cells_;  ///< of needs and of what is made, in one order for everybody
  std::vector<FormCell*> makes_;  ///< of what is made
  std::uint64_t recording_ = 0;   ///< which it is of all; 0: it is none, or was submitted
};

}  // namespace weft::detail
