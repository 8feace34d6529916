// The state of one translation, shared by emit.cpp (the function as a whole), launch.cpp (which threads it runs),
// values.cpp, control.cpp, ops.cpp, convert.cpp, memory.cpp, blocks.cpp, records.cpp, quads.cpp, again.cpp,
// atomics.cpp, group.cpp (arrays of the kernel, subgroups) and pieces.cpp (barriers).
#pragma once
#include <array>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../frontend/ir/module.h"
#include "../frontend/passes/shapes.h"
#include "emit.h"
#include "real.h"
#include "text.h"

namespace weft::llvm {

/// Writes the entry function of a kernel in normal form, without calls.
class Emitter {
 public:
  /// \param shapes  find_shapes(); for a function those of real.cpp
  Emitter(const ir::Module& kernel, const Target& target, ir::Shapes shapes);
  Code run();
  /// The definition of a function of the IR whose inputs and result are values in all lanes, and what it calls.
  std::vector<RealFunction> function(const std::string& name);

 private:
  using Id = ir::Id;
  using Inst = ir::Inst;
  using Op = ir::Op;
  using Type = ir::Type;
  using Texts = std::vector<std::string>;
  using Operands = std::span<const std::string>;

  // ---- The kernel as a whole: emit.cpp

  void survey(ir::RegionId region);
  void lay_out_arrays();

  // ---- The threads that the function runs: launch.cpp

  /// How vectors cover threads whose number need not be a multiple of the lanes.
  enum class Tail : std::uint8_t {
    none,   ///< the number is a multiple
    apart,  ///< full vectors have code of their own
    masked  ///< one code, with a mask
  };
  /// Finds the values that are visible everywhere, and reads arguments.
  void sources();
  void arrays();
  void run_threads();
  void run_rows();
  void run_groups();
  /// Runs `body` for each vector of the positions from `begin` to `end` - 1, given the position of its first lane. All
  /// are texts of i64.
  void vectors(const std::string& begin, const std::string& end, Tail tail,
               const std::function<void(const std::string&)>& body);
  /// The mask of the lanes at `position` that are less than `end`.
  std::string lanes_before(const std::string& position, const std::string& end);
  /// Gives values the number of lane 0, an i64.
  void set_number(std::span<const Id> ids, const std::string& number);
  /// Runs `body` for each vector of the present workgroup.
  void vectors_of_group(const std::function<void()>& body);
  void lone_vector(const std::function<void(const std::string&)>& body);
  Tail tail() const;

  // ---- Values: values.cpp

  const ir::Shape& shape(Id id) const { return shapes_.of[id]; }
  bool varies(Id id) const { return shape(id).kind == ir::Shape::Kind::varying; }
  bool is_affine(Id id) const { return shape(id).kind == ir::Shape::Kind::affine; }
  /// The value of a uniform one; that of the first lane of an affine one.
  std::string scalar(Id id);
  std::string vector(Id id);
  /// One of both, as its shape tells.
  std::string held(Id id) { return varies(id) ? vector(id) : scalar(id); }
  std::uint32_t held_lanes(Id id) const { return varies(id) ? lanes_ : 1; }
  void put_scalar(Id id, const std::string& value);
  void put_vector(Id id, const std::string& value);
  void put(Id id, const std::string& value, std::uint32_t lanes) {
    lanes == 1 ? put_scalar(id, value) : put_vector(id, value);
  }
  /// Makes a value visible that another piece of the kernel has defined.
  void fetch(Id id);
  /// Ends the visibility of what was put or spread since it began.
  class Scope {
   public:
    explicit Scope(Emitter& emitter) : emitter_(emitter), begin_(emitter.visible_.size()) {}
    Scope(const Scope&) = delete;
    ~Scope();

   private:
    Emitter& emitter_;
    std::size_t begin_;
  };
  std::string spread(Type type, const std::string& value) { return spread(type_name(type), value); }
  std::string spread(const std::string& type, const std::string& value);

  // Masks: the text of <lanes x i1>; empty for all lanes.
  std::string mask_text(const std::string& mask) const { return mask.empty() ? all_lanes_ : mask; }
  std::string both(const std::string& mask, const std::string& condition);
  std::string opposite(const std::string& mask);
  /// The mask as an integer, lane 0 in bit 0.
  std::string mask_bits(const std::string& mask);
  /// The same of the present mask in 64 bits; a number where all lanes run.
  std::string mask_word();
  std::string any(const std::string& mask);
  /// Number of the first active lane, or of the last one, as i64.
  std::string first_lane();
  std::string last_lane();

  // ---- Control flow: control.cpp

  /// Writes a region; returns its yield, or kNone.
  Id region(ir::RegionId region);
  void instruction(Id id);
  void part_block();
  /// A value as a phi takes it, and as it comes out of one; the type there. Truth values of lanes are wider where masks
  /// have no registers.
  std::string crossing_type(Type type, std::uint32_t lanes) const;
  std::string to_cross(Type type, const std::string& value, std::uint32_t lanes);
  std::string crossed(Type type, const std::string& value, std::uint32_t lanes);
  bool crosses_wide(Type type, std::uint32_t lanes) const;
  std::string widened(const std::string& mask);
  std::string narrowed(const std::string& mask);
  void branch(Id id);
  void uniform_branch(Id id);
  void divergent_branch(Id id);
  /// Writes one side of a divergent branch, which is left out when no lane takes it.
  Texts side(Id id, ir::RegionId region, const std::string& mask, const Texts& before);
  /// Number of instructions of a region and of those inside, as far as a side may be written twice; sets `accesses` if
  /// memory is among what they use.
  std::size_t size_of(ir::RegionId region, bool& accesses) const;
  /// Whether a side has code of its own for vectors that take it as a whole. The mask is the side's.
  bool has_whole_side(ir::RegionId region) const;
  /// Whether what accesses memory by the present mask may be written once more without it.
  bool pays_twofold() const;
  /// Whether a region is so little work that all lanes may do it.
  bool is_light(ir::RegionId region) const;
  struct Loop;
  void loop(Id id);
  void open_loop(Loop& loop);
  void close_loop(Loop& loop, Id yield);
  const std::vector<Id>& results(Id id) const { return results_[id]; }
  Id yielded(ir::RegionId region, std::uint64_t k) const;

  // ---- Pure operations, on `lanes` values each: ops.cpp

  void pure(Id id);
  /// \param from, to  types of the operands (of `select`: of the last two) and of the result
  std::string compute(Op op, Type from, Type to, Operands x, std::uint32_t lanes);
  std::string integer(Op op, Type t, Operands x, std::uint32_t lanes);
  std::string real(Op op, Type t, Operands x, std::uint32_t lanes);
  std::string half(Op op, Type to, Operands x, std::uint32_t lanes);
  std::string compare(Op op, Type t, Operands x, std::uint32_t lanes);
  std::string extremum(Op op, Type t, Operands x, std::uint32_t lanes);
  std::string fused(Type t, Operands x, std::uint32_t lanes);
  std::string quotient(Op op, Type t, Operands x, std::uint32_t lanes);
  std::string exact_quotient(Type t, const std::string& a, const std::string& b, std::uint32_t lanes);
  std::string real_function(Op op, Type t, Operands x, std::uint32_t lanes);
  std::string binary(const char* name, Type t, const std::string& a, const std::string& b, std::uint32_t lanes) {
    return out_.def("{} {} {}, {}", name, type_name(t, lanes), a, b);
  }
  std::string choose(Type t, const std::string& c, const std::string& a, const std::string& b, std::uint32_t lanes);

  // ---- Changes of type: convert.cpp

  std::string convert(Type from, Type to, const std::string& x, std::uint32_t lanes);
  std::string cast(const char* name, Type from, Type to, const std::string& x, std::uint32_t lanes);
  std::string integer_to_integer(Type from, Type to, const std::string& x, std::uint32_t lanes);
  std::string real_to_integer(Type from, Type to, std::string x, std::uint32_t lanes);
  std::string double_to_half(const std::string& x, std::uint32_t lanes);
  std::string reinterpret(Type from, Type to, const std::string& x, std::uint32_t lanes);
  /// float16 as float32, and back with one rounding.
  std::string up(const std::string& x, std::uint32_t lanes);
  std::string down(const std::string& x, std::uint32_t lanes);
  std::string up_by_bits(const std::string& x, std::uint32_t lanes);
  std::string down_by_bits(const std::string& x, std::uint32_t lanes);

  // ---- Memory: memory.cpp

  /// Where the lanes of an access lie.
  struct Place {
    enum class Kind : std::uint8_t {
      same,     ///< one address
      strided,  ///< `step` bytes from lane to lane, from `pointer` on
      apart     ///< anywhere
    };
    Kind kind = Kind::apart;
    std::int64_t step = 0;
    std::string pointer;   ///< that of lane 0; empty for `apart`
    std::string pointers;  ///< made when they are first needed
  };
  Place place(Id id);
  Place address_place(Id id);
  Place private_place(const Inst& inst, Id base, Id index);
  /// How many threads' private arrays lie interleaved, scalar by scalar.
  std::uint32_t private_lanes() const { return shapes_.lone ? 1 : lanes_; }
  std::string scalar_pointer(const Inst& inst, Id base, Id index);
  std::string first_index(Id index);
  std::string pointers_apart(const Inst& inst, Id base, Id index);
  const std::string& pointers(Place& place);
  std::string moved(const std::string& pointer, std::int64_t bytes);
  /// The pointers of one scalar of an access; part k lies k scalars further on.
  Place part(const Place& place, const Inst& inst, Id base, std::uint32_t k);
  std::string wide_index(Id index, std::uint32_t lanes);
  void load(Id id);
  void load_now(Id id);
  void load_same(Id id, const Place& place);
  void load_contiguous(Id id, const Place& place);
  void load_each(Id id, const Place& place);
  void load_apart(Id id, Place& place);
  void put_part(Id id, std::uint32_t k, const std::string& value, std::uint32_t lanes);
  void store(Id id);
  void store_now(Id id);
  void store_same(Id id, const Place& place);
  void store_contiguous(Id id, const Place& place);
  void store_apart(Id id, Place& place);
  bool is_contiguous(const Inst& inst, Id base, const Place& place) const;
  std::string repeated_mask(std::uint32_t times);
  /// Scalars that lie side by side, those alone whose bit of the mask is set; all without a mask.
  std::string read_vector(Type type, std::uint32_t count, const std::string& pointer, std::uint32_t align,
                          const std::string& mask);
  void write_vector(Type type, std::uint32_t count, const std::string& value, const std::string& pointer,
                    std::uint32_t align, const std::string& mask);
  /// Calls write(), once for all lanes and once for those of the mask where that pays. What it writes depends on the
  /// mask alone, and it puts no values.
  void write_by_mask(const std::function<void()>& write);
  /// Vectors of `lanes` lanes each as one, one after the other; their number is a power of two.
  std::string concatenated(Type type, Texts parts, std::uint32_t lanes);
  std::uint32_t alignment(const Inst& inst, Id base, std::uint32_t k) const;

  // ---- Accesses of several words a lane: blocks.cpp

  /// The words of a lane that a block consists of.
  struct BlockWords {
    Type part;
    std::uint32_t count;
  };
  bool is_block(Id id) const;
  void plan_blocks();
  BlockWords words_of(Id id) const;
  std::string block_at(Id id, const std::string& at);
  Texts words_of_each(Id id, const std::string& from);
  Texts words_of_one(Id id, const std::string& element);
  void put_words(Id id, const Texts& words);
  void save_places(Id index, std::uint32_t stride);
  /// Makes a load with the others of its element, which are the first one's to make.
  void load_blocks(Id id);
  void store_blocks(Id id, Place& place);
  Texts from_pairs(Type part, const Texts& rows);
  Texts to_pairs(Type part, const Texts& scalars);

  // ---- Parts of elements of several scalars: records.cpp

  /// Accesses that are made together, to parts of one element for each lane. The element has `stride` scalars; the
  /// parts lie between its scalars `begin` and `end` - 1. The place of a part is counted from `begin`.
  struct Record {
    std::vector<Id> members;
    std::vector<Id> passed;  ///< of loads: the stores that later members would come before
    std::uint32_t stride, begin, end;
    std::uint32_t width() const { return end - begin; }
  };
  enum class RecordForm : std::uint8_t {
    apart,    ///< each access by itself
    vectors,  ///< all elements as vectors, one after the other: records.cpp
    pieces,   ///< four scalars of a lane at a time, and all lanes run: quads.cpp
    groups    ///< the elements of a quarter of the lanes at a time: quads.cpp
  };
  static constexpr std::uint32_t kScalarBytes = 4, kQuad = 4;
  static constexpr std::uint32_t kFarthest = 1u << 12;  ///< scalars of an element
  /// A lane of a vector among several.
  struct FromLane {
    static constexpr std::uint32_t kNothing = ~0u;
    std::uint32_t source = kNothing, lane = 0;
  };
  void plan_records();
  std::uint32_t record_stride(Id id) const;
  bool same_elements(Id a, Id b) const;
  bool is_apart(Id id, const std::vector<Id>& others) const;
  bool joins(Record& record, Id id) const;
  std::uint32_t vectors_of(const Record& record) const;
  template <class F>
  void for_parts(const Record& record, F f) const;
  RecordForm form_of(const Record& record) const;
  std::string record_mask(const Record& record, std::uint32_t first, const std::vector<char>& is_part);
  std::string record_pointer(const Record& record);
  std::string assembled(Type type, const Texts& sources, const std::vector<FromLane>& lanes);
  void load_record(const Record& record, RecordForm form);
  void store_record(const Record& record, RecordForm form);
  /// Values by their place; those that are not wanted, or not written, are empty.
  Texts load_vectors(const Record& record, const std::vector<char>& wanted, const std::string& from);
  void store_vectors(const Record& record, const Texts& values, const std::string& to);
  /// Makes the access with those that belong to its record. Returns false if it is to be made alone.
  bool access_record(Id id);

  // ---- Four scalars of elements at a time: quads.cpp

  struct QuadLayout;
  RecordForm quads_of(const Record& record, const std::vector<char>& is_part) const;
  Texts from_quad(const QuadLayout& layout, Type type, const Texts& vectors);
  Texts from_pieces(Type type, const Texts& vectors);
  Texts to_quad(const QuadLayout& layout, Type type, Operands values);
  Texts to_pieces(Type type, Operands values);
  Texts load_pieces(const Record& record, const std::vector<char>& wanted, const std::string& from);
  std::vector<Texts> read_groups(const Record& record, const std::string& from, std::uint32_t begin, std::uint32_t end);
  Texts load_groups(const Record& record, const std::vector<char>& wanted, const std::string& from);
  void store_pieces(const Record& record, const Texts& values, const std::string& to);
  void store_groups(const Record& record, const Texts& values, const std::string& to);

  // ---- Elements that are accessed again: again.cpp

  struct OwnElement;
  bool is_own_element(Id id) const;
  Id part_value(Id access, std::uint64_t k) const;
  void plan_again();
  void plan_own(std::vector<OwnElement>& elements, Id id);
  std::string is_apart_from_others(Id id);
  void load_again(Id id);
  void store_unless_again(Id id);

  // ---- Atomic operations: atomics.cpp

  void atomic(Id id);
  bool combines_first(Id id) const;
  void atomic_of_all(Id id, const Place& place);
  void atomic_in_turn(Id id, Place& place);
  std::string no_change(const Inst& inst) const;
  std::pair<std::string, std::string> atomic_of_some(const Inst& inst, const std::string& pointers,
                                                     const std::string& value, const std::string& bits,
                                                     const std::string& lane, const std::string& done);
  void atomic_alone(Id id, const Place& place);
  std::string change(const Inst& inst, const std::string& pointer, const std::string& value,
                     const std::string& desired);
  std::string exchange_loop(const Inst& inst, const std::string& pointer, const std::string& value);

  // ---- Threads together: group.cpp

  std::string running_lanes();
  void subgroup(Id id);
  std::string reduce(Op op, Type t, std::string x);
  std::string reduce_bools(Op op, const std::string& x);
  std::string scan(Op op, Type t, std::string x);
  std::string shifted(Type t, const std::string& x, std::uint32_t by, const std::string& filler);
  std::string shuffle(Type t, const std::string& x, const std::string& from);
  std::uint64_t neutral(Op op, Type t) const;

  // ---- Barriers: pieces.cpp

  using Copies = std::vector<std::pair<Id, Id>>;
  struct Piece {
    enum class Kind : std::uint8_t { run, branch, loop };
    Kind kind = Kind::run;
    std::uint32_t number = 0;          ///< of a run
    std::vector<Id> insts;             ///< of a run
    Copies copies;                     ///< at the end of a run, all at once: values, and what they get
    Id control = ir::kNone;            ///< the branch or loop
    std::vector<Piece> first, second;  ///< then and else; condition and body
  };
  void find_barriers();
  bool has_barrier(Id id) const;
  void plan_pieces();
  std::vector<Piece> pieces(ir::RegionId region, Copies copies);
  Copies copies_to_results(Id id, ir::RegionId region) const;
  void number(const std::vector<Piece>& pieces);
  void number(Id id, std::uint32_t run);
  void cross(const std::vector<Piece>& pieces);
  void cross(Id id, std::uint32_t run);
  void use(Id id, std::uint32_t run);
  bool repeats(Id id, std::uint32_t& left) const;
  bool is_repeated(Id id) const;
  std::string slot(Id id);
  void save(Id id);
  void save_as(Id id, std::string value);
  void piece(const Piece& piece);
  void run_piece(const Piece& piece);
  std::string group_condition(Id id);

  const ir::Module& kernel_;
  const Target& target_;
  const std::uint32_t lanes_;
  ir::Shapes shapes_;
  ir::GroupUse group_use_;
  Text out_;
  Texts scalar_, vector_;  ///< by instruction, of visible values
  /// The values that are a number of the thread.
  enum Number : std::uint8_t { kThread, kLocal, kWorkgroup, kSubgroup, kLane };
  std::array<std::vector<Id>, 5> numbers_;
  bool is_entry_ = false;     ///< the entry function is written
  bool has_nowhere_ = false;  ///< lanes that rest write there
  bool has_places_ = false;   ///< where lanes read, see blocks.cpp
  std::int64_t further_ = 0;  ///< minus the parts of blocks that part_block() has begun
  Texts wide_;                ///< by instruction, of numbers of threads: the one of lane 0 as i64
  struct Visible {
    Id id;
    bool spread;  ///< only the vector is new, made of the scalar
  };
  std::vector<Visible> visible_;           ///< in the order in which they became so
  std::vector<std::vector<Id>> results_;   ///< by instruction: the `result`s that read it, in order
  std::vector<char> is_used_, is_placed_;  ///< placed: the place of the vector gives it
  static constexpr std::uint32_t kNoRecord = ~0u;
  std::vector<Record> records_;
  std::vector<std::uint32_t> record_of_;  ///< by instruction
  static constexpr std::uint32_t kNoBlocks = ~0u;
  std::vector<std::vector<Id>> blocks_;   ///< loads of blocks of one element, which are made together
  std::vector<std::uint32_t> blocks_of_;  ///< by instruction, of such loads
  /// By instruction, of accesses that can be left out if elements of these arrays are apart from theirs; and of such
  /// loads the access before, which has the values.
  std::vector<std::vector<Id>> apart_from_;
  std::vector<Id> before_;
  std::vector<FunctionModule> functions_;      ///< the real functions that are called
  std::map<std::string, std::string> called_;  ///< how they are declared, by name
  std::string mask_, all_lanes_;
  bool is_rest_ = false;       ///< some lanes never run in the code that is written
  std::uint32_t twofold_ = 0;  ///< see pays_twofold()
  std::uint64_t shared_bytes_ = 0, private_bytes_ = 0, slot_bytes_ = 0;
  std::vector<std::uint64_t> array_offsets_;
  std::string private_base_;  ///< of the vector that runs
  std::uint64_t arena_bytes_ = 0, slot_begin_ = 0, slot_align_ = 1;
  std::uint32_t group_vectors_;  ///< vectors of a workgroup
  // Texts of what the workgroup, and the vector, that run are.
  std::string group_first_, group_number_, group_end_, vector_number_, slot_base_;
  // Of kernels with barriers, the last four by instruction.
  bool has_barriers_ = false;
  std::vector<char> region_has_barrier_;
  std::vector<Piece> pieces_;
  std::uint32_t runs_ = 0;
  std::vector<std::uint32_t> home_;   ///< the run that defines it
  std::vector<std::uint64_t> slots_;  ///< its place among those of a vector, which begin at slot_begin_; ~0: none
  std::vector<Id> alias_;             ///< the value that it always equals, or kNone
};

}  // namespace weft::llvm
