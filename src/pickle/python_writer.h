#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/pointer_map.h"
#include "pickle/builder.h"
#include "pickle/emitter.h"
#include "pickle/value.h"
#include "pickle/writer.h"

namespace postflight {

// Writes one pickle as CPython does; see write_pickle().
//
// CPython's pickler recurses: it writes a value's parts one after the other and
// puts opcodes between them. Here each value that has parts is a Frame with
// the number of the part to write next, and between() writes the opcodes that
// go before it.
//
// A list, dict, set or object is in the memo before its parts are written, so
// a reference from inside finds it there. A tuple has to be written before it
// can be memoised. One that holds itself, through a list say, is written again
// inside that list, which is in the memo by then; the outer one, half written,
// finds itself in the memo when it ends, drops its parts and takes that one.
//
// An object made by a call can hold itself through the call's arguments in the
// same way. But what set([node]) makes depends on the list being whole when it
// is called: a list that only the outer, dropped call used is written again.
class PythonWriter {
 public:
  explicit PythonWriter(const WriteOptions& options)
      : options_(options), emitter_(options.protocol, options.max_bytes) {}

  Result<std::string> write(const Value& root) &&;

 private:
  enum class Form : std::uint8_t {
    kTuple,
    kFrozenSet,
    kList,
    kSet,
    kDict,
    kObject,
    kInstance,  // a tuple of callable and arguments, then as kObject
    kPersistent,
  };
  struct Frame {
    Value value;  // what the memo knows
    Value shape;  // what is written, the value itself unless that is lowered
    std::size_t next = 0;
    Form form{};
  };
  enum class After : std::uint8_t { kGoOn, kDone };
  // How a container's parts come in batches.
  struct Batches {
    Opcode lone;
    Opcode many;
    // Python's loops over its own containers write a list's or dict's last
    // batch of one like any other; those over iterators write the lone form.
    bool exact;
    // ... and end only on a batch that is not full, be it empty.
    bool until_short;
  };

  Result<> visit(const Value& value);
  Result<> write_text(const Value& value);
  Result<> write_name(std::string_view name);
  Result<> write_global(const Value& value);
  void write_extension(std::int64_t code);
  void open(const Value& value);
  void open_fixed(const Value& value, Form form);
  void open_growing(const Value& value, Form form, Opcode empty);
  void open_object(const Value& value);
  void push_object(const Frame& frame);
  void forget_arguments(const Value& value, std::size_t outer);

  // Writes what stands before part `next` of the frame, or after the last.
  After between(Frame& frame);
  After between_object(const Frame& frame);
  void between_batches(const Batches& batches, std::size_t count,
                       std::size_t next);
  void end_fixed(const Frame& frame);
  After made(const Value& value);

  // The call that Python writes for what the protocol has no opcode for.
  bool is_lowered(const Value& value) const;
  Value call_for(const Value& value);
  Value call_for_bytes(std::string_view bytes);
  Value call_for_new(const Object& object);
  Value builtin(std::string_view name);

  // The index in the memo plus one; 0 if it is not there.
  std::uint32_t recall(const Value& value) const;
  void remember(const Value& value);

  WriteOptions options_;
  Emitter emitter_;
  std::vector<Frame> frames_;
  // Apart, as an empty text in an arena has the address of what comes next.
  PointerMap texts_;
  PointerMap objects_;
  std::vector<bool> was_got_;  // by index in the memo plus one
  // Where the frame of an object lies that is not made yet, plus one.
  PointerMap unmade_;
  // Forgetting ends, even for a value no Python could make: each time more
  // must be in the memo than at the last, not counting what was forgotten.
  PointerMap kept_at_last_;
  std::uint32_t forgotten_ = 0;

  Builder builder_;
  // The call for a set is made once: its list must be the same one, and in the
  // memo, when a set that holds itself is met again.
  PointerMap set_call_numbers_;
  std::vector<Value> set_calls_;
};

}  // namespace postflight
