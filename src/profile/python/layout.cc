#include "profile/python/layout.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace postflight {
namespace {

// The offsets below were computed by a C compiler from the headers of 3.9.18,
// 3.10.13, 3.11.2, 3.11.7, 3.12.1 and 3.13.0; they do not change within a
// minor version.
PythonLayout layout_3_9() {
  return {
      .runtime = {.interpreters = 32},
      .interpreter = {.next = 0, .threads = 8, .collecting = 816},
      .thread = {.next = 8, .interpreter = 16, .frame = 24, .thread_id = 176},
      .frame = {.code = 32,
                .previous = 24,
                .instruction = 104,
                .size = 112,
                .locals = 360},
      .instruction_unit = 1,
      .code = {.filename = 104,
               .name = 112,
               .first_line = 40,
               .line_table = 120,
               .local_names = {72, 88, 80}},
      .lines = LineTableKind::kDeltas,
      .ascii_header = 48,
      .compact_header = 72};
}

PythonLayout layout_3_10() {
  PythonLayout layout = layout_3_9();
  layout.frame.instruction = 96;
  layout.frame.locals = 352;
  layout.instruction_unit = 2;
  layout.lines = LineTableKind::kRanges;
  return layout;
}

PythonLayout layout_3_11() {
  return {.runtime = {.interpreters = 40},
          .interpreter = {.next = 0, .threads = 16, .collecting = 848},
          .thread = {.next = 8,
                     .interpreter = 16,
                     .frame = 56,
                     .thread_id = 152,
                     .native_thread_id = 160,
                     .stack_chunk = 296},
          .top_frame = 8,
          .frame = {.code = 32,
                    .previous = 48,
                    .instruction = 56,
                    .owner = 69,
                    .is_entry = 68,
                    .size = 72,
                    .locals = 72},
          .code = {.filename = 112,
                   .name = 128,
                   .first_line = 72,
                   .line_table = 136,
                   .instructions = 184,
                   .local_names = {96}},
          .ascii_header = 48,
          .compact_header = 72,
          .small_dict_keys = true};
}

PythonLayout layout_3_12() {
  return {.runtime = {.interpreters = 40},
          .interpreter = {.next = 0, .threads = 72, .collecting = 312},
          .thread = {.next = 8,
                     .interpreter = 16,
                     .frame = 56,
                     .thread_id = 136,
                     .native_thread_id = 144,
                     .stack_chunk = 232},
          .top_frame = 0,
          .frame = {.code = 0,
                    .previous = 8,
                    .instruction = 56,
                    .owner = 70,
                    .size = 72,
                    .locals = 72},
          .first_shim_owner = 3,
          .code = {.filename = 112,
                   .name = 128,
                   .first_line = 68,
                   .line_table = 136,
                   .instructions = 192,
                   .local_names = {96}},
          .ascii_header = 40,
          .compact_header = 56,
          .tagged_integers = true,
          .small_dict_keys = true};
}

// Where _Py_DebugOffsets describes each structure, counted in 64-bit words from
// the front of the runtime. Every structure begins with its size.
struct Description {
  std::size_t interpreter = 0;
  std::size_t thread = 0;
  std::size_t frame = 0;
  std::size_t code = 0;
  std::size_t tuple = 0;
  std::size_t unicode = 0;
  std::size_t garbage = 0;  // 0: not known
};
constexpr std::size_t kRuntimeWord = 3;

// The versions of Python 3 whose frames can be read, in order. To add one, add
// a row.
struct KnownVersion {
  std::uint32_t minor = 0;
  // The offsets, up to 3.12. Later versions describe them themselves.
  PythonLayout (*layout)() = nullptr;
  Description description = {};
  bool tagged_code = false;  // see PythonLayout
};
constexpr std::array kVersions = {
    KnownVersion{.minor = 9, .layout = layout_3_9},
    KnownVersion{.minor = 10, .layout = layout_3_10},
    KnownVersion{.minor = 11, .layout = layout_3_11},
    KnownVersion{.minor = 12, .layout = layout_3_12},
    KnownVersion{.minor = 13, .description = {6, 19, 28, 34, 50, 67, 71}},
    KnownVersion{.minor = 14,
                 .description = {6, 22, 31, 39, 56, 77},
                 .tagged_code = true},
};

Result<KnownVersion> find_version(const PythonVersion& version) {
  const auto known =
      std::ranges::find(kVersions, version.minor, &KnownVersion::minor);
  if (version.major == 3 && known != kVersions.end())
    return *known;
  return fail(ErrorKind::kUnsupported,
              "Python {}.{} is not supported; 3.{} to 3.{} are", version.major,
              version.minor, kVersions.front().minor, kVersions.back().minor);
}

// Reads words of a description. An offset beyond the size of its structure
// makes all of it implausible.
class Words {
 public:
  explicit Words(Bytes bytes) : bytes_(bytes) {}

  std::uint64_t word(std::size_t index) const {
    return load_little_endian<std::uint64_t>(bytes_.data() + 8 * index);
  }
  // The field `field` words behind the size of the structure.
  std::uint32_t field(std::size_t structure, std::size_t field) {
    const std::uint64_t size = word(structure);
    const std::uint64_t offset = word(structure + field);
    if (size > kMostBytes || offset >= size)
      plausible_ = false;
    return static_cast<std::uint32_t>(offset);
  }
  // The same for an array at the end, which may have no items.
  std::uint32_t end_or_field(std::size_t structure, std::size_t field) {
    const std::uint64_t size = word(structure);
    const std::uint64_t offset = word(structure + field);
    if (size > kMostBytes || offset > size)
      plausible_ = false;
    return static_cast<std::uint32_t>(offset);
  }
  bool plausible() const { return plausible_; }

 private:
  // The interpreter of 3.12, the largest structure known, has 384 kB.
  static constexpr std::uint64_t kMostBytes = 16 << 20;

  Bytes bytes_;
  bool plausible_ = true;
};

PythonLayout layout_from(Words& words, const Description& at) {
  PythonLayout layout;
  layout.runtime.interpreters = words.field(kRuntimeWord, 2);
  layout.interpreter = {.next = words.field(at.interpreter, 2),
                        .threads = words.field(at.interpreter, 3)};
  // Not needed for frames, so it need not be there.
  if (at.garbage != 0 && words.word(at.garbage + 1) < words.word(at.garbage) &&
      words.word(at.interpreter + 4) < words.word(at.interpreter))
    layout.interpreter.collecting = static_cast<std::uint32_t>(
        words.word(at.interpreter + 4) + words.word(at.garbage + 1));
  layout.thread = {.next = words.field(at.thread, 2),
                   .interpreter = words.field(at.thread, 3),
                   .frame = words.field(at.thread, 4),
                   .thread_id = words.field(at.thread, 5),
                   .native_thread_id = words.field(at.thread, 6),
                   .stack_chunk = words.field(at.thread, 7)};
  layout.frame = {.code = words.field(at.frame, 2),
                  .previous = words.field(at.frame, 1),
                  .instruction = words.field(at.frame, 3),
                  .owner = words.field(at.frame, 5)};
  layout.frame.size =
      std::max({layout.frame.code + 8, layout.frame.previous + 8,
                layout.frame.instruction + 8, *layout.frame.owner + 1});
  layout.frame.locals = words.end_or_field(at.frame, 4);
  layout.first_shim_owner = 3;
  layout.code = {.filename = words.field(at.code, 1),
                 .name = words.field(at.code, 3),
                 .first_line = words.field(at.code, 5),
                 .line_table = words.field(at.code, 4),
                 .instructions = words.field(at.code, 9),
                 .local_names = {words.field(at.code, 7)}};
  layout.ascii_header = static_cast<std::uint32_t>(words.word(at.unicode + 3));
  // A compact string that is not ASCII has a length and a pointer more.
  layout.compact_header = layout.ascii_header + 16;
  layout.tuple_items = words.end_or_field(at.tuple, 1);
  layout.tagged_integers = true;
  layout.small_dict_keys = true;
  return layout;
}

}  // namespace

PythonVersion python_version(std::uint64_t hex) {
  return {static_cast<std::uint32_t>(hex >> 24 & 0xff),
          static_cast<std::uint32_t>(hex >> 16 & 0xff),
          static_cast<std::uint32_t>(hex >> 8 & 0xff)};
}

std::string version_text(const PythonVersion& version) {
  if (version.micro == PythonVersion::kUnknown)
    return fmt::format("{}.{}", version.major, version.minor);
  return fmt::format("{}.{}.{}", version.major, version.minor, version.micro);
}

Result<PythonLayout> python_layout(const PythonVersion& version,
                                   Bytes runtime) {
  const KnownVersion known = TRY(find_version(version));
  if (known.layout != nullptr)
    return known.layout();
  if (runtime.size() < kDescribedBytes ||
      as_text(runtime.first(8)) != "xdebugpy")
    return fail(ErrorKind::kUnsupported, "Python {} has no _Py_DebugOffsets",
                version_text(version));
  Words words(runtime);
  if (python_version(words.word(1)) != version)
    return fail(ErrorKind::kUnsupported,
                "Python {} has the _Py_DebugOffsets of Python {}",
                version_text(version),
                version_text(python_version(words.word(1))));
  if (words.word(2) != 0)
    return fail(ErrorKind::kUnsupported,
                "free-threaded Python {} is not supported",
                version_text(version));
  PythonLayout layout = layout_from(words, known.description);
  layout.tagged_code = known.tagged_code;
  const std::uint32_t ascii = layout.ascii_header;
  if (!words.plausible() || ascii < 32 || ascii > 64 || layout.frame.size > 256)
    return fail(ErrorKind::kUnsupported,
                "Python {} has implausible _Py_DebugOffsets",
                version_text(version));
  return layout;
}

}  // namespace postflight
