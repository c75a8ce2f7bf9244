#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/limits.h"
#include "pickle/memo.h"
#include "pickle/object.h"
#include "pickle/opcode.h"
#include "pickle/value.h"

namespace postflight {

// One pickle as read: its value and where it ended.
struct Pickle {
  Value root;
  std::uint64_t size = 0;  // bytes from the start up to and including STOP
  int protocol = 0;        // PROTO's argument; 0 without PROTO
};

// Reads pickles of protocols 0 to 5 without ever importing, calling or
// executing anything: globals, calls, extension codes and out-of-band buffers
// become inert values.
//
// Three things keep hostile input cheap. No opcode recurses, so nesting depth
// costs nothing. No count or index from the input is trusted before the bytes
// it refers to are checked. And every opcode creates at most about 50 bytes of
// values per byte of its own, which bounds memory to 64 times the input.
//
// A rejected opcode has no side effects: load() can be called again after it
// failed.
class Machine {
 public:
  explicit Machine(const Limits& limits = {}) : limits_(limits) {}

  // Reads the pickle at the start of `bytes`; more data may follow it. Its
  // values are valid as long as `bytes` and this machine, until reset().
  Result<Pickle> load(Bytes bytes);

  // For readers that take bytes from between the opcodes: asked after each
  // BUILD, with the object and the bytes behind it, how many of these it takes.
  using Embedded =
      std::function<Result<std::uint64_t>(const Object& object, Bytes rest)>;
  void read_embedded(Embedded embedded) { embedded_ = std::move(embedded); }

  // Discards all values made so far but keeps their memory for the next load.
  void reset() { arena_.reset(); }

  // All globals and calls that the latest load() met, including those that are
  // not part of the result and those before an error: Python would have
  // imported and called them by then.
  std::span<const Global* const> globals() const { return globals_; }
  std::span<const Object* const> objects() const { return objects_; }

  // What the latest load() read: up to STOP, or up to the opcode at which it
  // failed.
  Bytes seen() const {
    return {reinterpret_cast<const std::byte*>(begin_),
            static_cast<std::size_t>(at_ - begin_)};
  }
  // The result of the latest load(); nullptr if it failed.
  const Value* root() const { return is_loaded_ ? &root_ : nullptr; }

  // The stack when load() failed, split at the marks: each part but the last
  // ends with the container that the next part was meant for.
  std::vector<std::span<const Value>> unfinished() const;
  // The memory of all values, the stack and the memo.
  std::uint64_t memory_bytes() const;

 private:
  enum class Pace { kBlocks, kOneByOne };
  template <Pace kPace>
  Result<Pickle> run();
  // The rare and the complex opcodes; they work on next_ and top_.
  Result<> run_rare(Opcode opcode);
  Result<> run_bare(Opcode opcode);
  Result<> run_counted(const OpcodeInfo& info);
  Result<> run_text(Opcode opcode);
  void push_global(std::string_view module, std::string_view name);
  void push_object(const Object& object);
  void record(const Object* object);
  Result<> make_object();  // with keywords
  Result<> skip_embedded();
  void begin_object();     // NEWOBJ and four more
  void call_with_tuple();  // MEMOIZE and four more
  Result<> make_instance(Value* first, Value callable, const Value* arguments);
  Result<> get(std::uint64_t key);
  Result<> put(std::uint64_t key);

  // The items of `target`, a list, set or object. Any other value is replaced
  // by an object that records the operation.
  Items<Value>* items_of(Value& target, Kind container);
  Items<Pair>* pairs_of(Value& target);
  Object* object_of(Value& target);
  Object::More* more_of(Value& target);
  void add_state(Object* object, Value state);

  template <class T>
  void append(Items<T>& items, const T* from, std::size_t count) {
    const std::size_t needed = items.size + count;
    if (needed > items.capacity)
      grow(items, needed);
    copy_items(from, count, items.data + items.size);
    items.size = static_cast<std::uint32_t>(needed);
  }
  template <class T>
  void grow(Items<T>& items, std::size_t needed);
  template <class T>
  void reserve_one(Items<T>& items);

  // Removes the topmost mark and returns the first item above it; nullptr if
  // there is no mark.
  Value* pop_mark();
  Result<Value*> mark_of(Opcode opcode);
  // A tuple's items: a copy of the stack from `first` up to `last`.
  const Value* keep(const Value* first, const Value* last);
  bool has(std::size_t count) const {
    return static_cast<std::size_t>(top_ - fence_) >= count;
  }
  void push(Value value) { *top_++ = value; }
  void reserve_stack();  // makes room for a block's pushes

  Result<std::string_view> take_line(Opcode opcode);
  Result<std::string_view> take_name(Opcode opcode,
                                     std::optional<std::string_view> module);
  Result<Value> take_text(const OpcodeInfo& info, std::uint64_t size);
  Result<std::uint64_t> take_count(const OpcodeInfo& info);
  std::uint64_t left() const {
    return static_cast<std::uint64_t>(end_ - next_);
  }

  tl::unexpected<Error> too_short(Opcode opcode, std::uint64_t wanted);
  tl::unexpected<Error> underflow(Opcode opcode);
  tl::unexpected<Error> no_value(Opcode opcode);
  tl::unexpected<Error> broken(ErrorKind kind, std::string_view what);

  struct Free {
    void operator()(Value* memory) const { std::free(memory); }
  };

  Limits limits_;
  Embedded embedded_;
  Arena arena_;
  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* at_ = nullptr;  // the opcode being run
  const std::uint8_t* next_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  int protocol_ = 0;
  std::uint32_t buffers_ = 0;
  bool is_loaded_ = false;
  Value root_;

  // Grown by realloc, which remaps the pages of large stacks instead of copying
  // them. A mark takes a slot and holds the depth of the previous fence; items
  // below fence_, the item above the topmost mark, must not be popped.
  std::unique_ptr<Value, Free> stack_;
  std::size_t stack_capacity_ = 0;
  Value* top_ = nullptr;
  Value* fence_ = nullptr;

  Memo memo_;
  std::vector<const Global*> globals_;
  std::vector<const Object*> objects_;
};

}  // namespace postflight
