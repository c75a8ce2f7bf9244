#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/error.h"

namespace postflight {

// Bytes of a PyThreadState, up to the last field that is read in any version.
constexpr std::size_t kThreadBytes = 512;

struct PythonVersion {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t micro = kUnknown;

  static constexpr std::uint32_t kUnknown = 1000;

  auto operator<=>(const PythonVersion&) const = default;
};

// From Py_Version, which is PY_VERSION_HEX: 0x030b02f0 is 3.11.2.
PythonVersion python_version(std::uint64_t hex);
std::string version_text(const PythonVersion& version);

enum class LineTableKind : std::uint8_t {
  kDeltas,     // 3.9: pairs of bytes, co_lnotab
  kRanges,     // 3.10: pairs of bytes with gaps, PEP 626
  kLocations,  // 3.11 and later: entries of varints, PEP 657
};

// Where CPython stores what we read: byte offsets in its structures, on x86-64
// Linux. Those without a value do not exist in that version.
struct PythonLayout {
  struct Runtime {
    std::uint32_t interpreters = 0;
  } runtime;
  struct Interpreter {
    std::uint32_t next = 0;
    std::uint32_t threads = 0;
    // An int that is not 0 while its garbage is collected.
    std::optional<std::uint32_t> collecting = {};
  } interpreter;
  struct Thread {
    std::uint32_t next = 0;
    std::uint32_t interpreter = 0;
    std::uint32_t frame =
        0;  // the topmost, or a structure with it, see top_frame
    std::uint32_t thread_id = 0;
    std::optional<std::uint32_t> native_thread_id = {};
    std::optional<std::uint32_t> stack_chunk = {};
  } thread;
  // 3.11 and 3.12 keep the topmost frame in a structure on the C stack.
  std::optional<std::uint32_t> top_frame = {};
  struct Frame {
    std::uint32_t code = 0;
    std::uint32_t previous = 0;
    std::uint32_t instruction = 0;  // a pointer, or an index before 3.11
    std::optional<std::uint32_t> owner = {};
    std::optional<std::uint32_t> is_entry = {};
    std::uint32_t size = 0;  // up to the end of the last of these
    std::uint32_t locals = 0;
  } frame;
  // Frames with this owner or a higher one are shims, which have no code of
  // their own and mark where C called Python.
  std::uint8_t first_shim_owner = 255;
  bool tagged_code = false;            // the pointer's low bits are a tag
  std::uint32_t instruction_unit = 1;  // bytes per index
  struct Code {
    std::uint32_t filename = 0;
    std::uint32_t name = 0;  // the qualified name, from 3.11
    std::uint32_t first_line = 0;
    std::uint32_t line_table = 0;
    std::optional<std::uint32_t> instructions = {};  // none: indices
    // Tuples of the names of the locals, in their order; 0: none.
    std::array<std::uint32_t, 3> local_names = {};

    // Up to the end of the last of these.
    std::uint32_t size() const {
      return std::max({filename + 8, name + 8, first_line + 8, line_table + 8});
    }
  } code;
  LineTableKind lines = LineTableKind::kLocations;
  std::uint32_t ascii_header = 0;    // before the characters of an ASCII string
  std::uint32_t compact_header = 0;  // and of others
  std::uint32_t tuple_items = 24;
  bool tagged_integers = false;  // from 3.12: length and sign in one word
  bool small_dict_keys = false;  // from 3.11: sizes as powers of two
};

// How many bytes of the runtime python_layout() reads.
constexpr std::size_t kDescribedBytes = 1024;
// The layout of a version. Up to 3.12 it is fixed; from 3.13 on
// _Py_DebugOffsets, at the front of `runtime`, describes it, which is checked
// against itself and rejected if it is not plausible.
Result<PythonLayout> python_layout(const PythonVersion& version, Bytes runtime);

}  // namespace postflight
