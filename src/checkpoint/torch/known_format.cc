// Formats that people hand around beside pickles. Each is looked into as far as
// something in it could run code; what is not looked into is a doubt.

#include "checkpoint/torch/known_format.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/ascii.h"
#include "checkpoint/torch/known_formats.h"
#include "json/json_value.h"

namespace postflight {
namespace {

constexpr std::uint64_t kMostSafetensorsHeader = 100'000'000;

bool begins_with(Bytes bytes, std::string_view magic) {
  return as_text(bytes).starts_with(magic);
}

Bytes trimmed_front(Bytes bytes) {
  const std::size_t begin = as_text(bytes).find_first_not_of(kSpaces);
  return bytes.subspan(std::min(begin, bytes.size()));
}

// ------------------------------------------------------------- safetensors

bool is_safetensors_file(Bytes bytes) {
  if (bytes.size() < 10 || bytes[8] != std::byte{'{'})
    return false;
  const auto size = load_little_endian<std::uint64_t>(bytes.data());
  return size <= kMostSafetensorsHeader && size <= bytes.size() - 8;
}

KnownFormat safetensors_format(Bytes bytes) {
  KnownFormat format{"a safetensors file, which holds no pickles", {}};
  const auto size = load_little_endian<std::uint64_t>(bytes.data());
  const std::uint64_t room = bytes.size() - 8 - size;
  Builder builder;
  const Result<Value> root = parse_json(bytes.subspan(8, size), builder);
  std::uint64_t end = 0;
  std::set<std::string_view> names;
  bool understood = root && root->is(Kind::kDict);
  for (const Pair& pair :
       understood ? root->pairs() : std::span<const Pair>()) {
    const Value* const offsets =
        pair.value.is(Kind::kDict) ? pair.value.find("data_offsets") : nullptr;
    if (!names.insert(pair.key.text()).second)
      format.doubts.push_back(
          doubt("duplicate_name",
                "two of its tensors have the same name, and "
                "readers differ in which they take"));
    if (pair.key.text() == "__metadata__")
      continue;
    if (offsets == nullptr || !offsets->is(Kind::kList) ||
        offsets->items().size() != 2 ||
        !offsets->items()[1].is(Kind::kInteger) ||
        offsets->items()[1].integer() < 0) {
      understood = false;
      continue;
    }
    end = std::max(end,
                   static_cast<std::uint64_t>(offsets->items()[1].integer()));
  }
  if (!understood)
    format.doubts.push_back(
        doubt("safetensors_header", "its safetensors header is damaged"));
  else if (end < room)
    format.doubts.push_back(
        doubt("unaccounted_bytes",
              fmt::format("{} bytes follow the last tensor", room - end)));
  return format;
}

// ------------------------------------------------------------------- others

struct NativeCode {
  std::string_view magic;
  std::string_view what;
};
constexpr std::array kNativeCode = {
    NativeCode{"\x7f"
               "ELF",
               "a program or library"},
    NativeCode{"\xcf\xfa\xed\xfe", "a program or library of macOS"},
    NativeCode{"\xca\xfe\xba\xbe", "a program or library of macOS"},
    NativeCode{"!<arch>\n", "a library"},
};

bool is_windows_program(Bytes bytes) {
  constexpr std::size_t kOffset = 0x3c;
  if (!begins_with(bytes, "MZ") || bytes.size() < kOffset + 4)
    return false;
  const auto at = load_little_endian<std::uint32_t>(bytes.data() + kOffset);
  return at < bytes.size() && begins_with(bytes.subspan(at), "PE");
}

std::optional<std::string_view> native_code(Bytes bytes) {
  for (const NativeCode& code : kNativeCode)
    if (begins_with(bytes, code.magic))
      return code.what;
  if (is_windows_program(bytes))
    return "a program or library of Windows";
  return std::nullopt;
}

// ------------------------------------------------------------ of no pickles

struct Magic {
  std::string_view bytes;
  std::string_view what;
};

// Other files that people try.
constexpr std::array kOtherFormats = {
    Magic{"\x1f\x8b", "a gzip file; unpack it first (gzip -d)"},
    Magic{"\x28\xb5\x2f\xfd", "a zstd file; unpack it first (zstd -d)"},
    Magic{"BZh", "a bzip2 file; unpack it first (bzip2 -d)"},
    Magic{"\xfd"
          "7zXZ",
          "an xz file; unpack it first (xz -d)"},
    Magic{"\x93NUMPY", "a NumPy file"},
    Magic{"\x89HDF", "an HDF5 file, which holds no pickles"},
    Magic{"GGUF", "a GGUF file, which holds no pickles"},
    Magic{"\x7f"
          "ELF",
          "a program or library"},
    Magic{"PYTORCH1", "a preview archive that torch itself refuses"},
    Magic{"version https://git-lfs",
          "a Git LFS pointer; fetch the file itself (git lfs pull)"},
    Magic{"<", "a web page or XML; was it downloaded from the right address?"},
    Magic{"{", "JSON"},
};

}  // namespace

std::optional<KnownFormat> known_format(Bytes bytes, std::string_view name) {
  if (is_safetensors_file(bytes))
    return safetensors_format(bytes);
  if (begins_with(bytes, "\x89HDF\r\n\x1a\n"))
    return keras_weights(bytes);
  if (begins_with(bytes, "GGUF"))
    return gguf_file(bytes);
  if (const auto what = native_code(bytes))
    return KnownFormat{
        *what,
        {doubt("native_code",
               fmt::format("it is {}, which is not looked into", *what))}};
  if (auto model = onnx_model(bytes))
    return model;
  if (begins_with(trimmed_front(bytes), "{"))
    return settings_in_json(bytes);
  return settings_by_name(bytes, name);
}

std::string_view guess_format(Bytes file) {
  if (file.size() > 9 && file[8] == std::byte{'{'} &&
      load_little_endian<std::uint64_t>(file.data()) < file.size())
    return "a safetensors file, which holds no pickles";
  if (file.size() > 262 && as_text(file).substr(257, 5) == "ustar")
    return "a tar file; unpack it first (tar -x)";
  for (const Magic& magic : kOtherFormats)
    if (as_text(file).starts_with(magic.bytes))
      return magic.what;
  return "something else";
}

}  // namespace postflight
