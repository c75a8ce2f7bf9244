// Formats that people hand around beside pickles. Each is looked into as far as
// something in it could run code; what is not looked into is a doubt.

#include "checkpoint/torch/known_format.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/ascii.h"
#include "json/json_value.h"

namespace postflight {
namespace {

constexpr std::uint64_t kMostSafetensorsHeader = 100'000'000;

bool begins_with(Bytes bytes, std::string_view magic) {
  return as_text(bytes).starts_with(magic);
}

Reason doubt(std::string kind, std::string message) {
  return {Safety::kUnknown, std::move(kind), std::move(message), ""};
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
  bool understood = root && root->is(Kind::kDict);
  for (const Pair& pair :
       understood ? root->pairs() : std::span<const Pair>()) {
    const Value* const offsets =
        pair.value.is(Kind::kDict) ? pair.value.find("data_offsets") : nullptr;
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

// -------------------------------------------------------------------- Keras

// Whether a Keras configuration, or text that may contain one, has a layer
// whose code is in the file.
bool has_lambda_layer(std::string_view text) {
  constexpr std::string_view kKey = "\"class_name\"";
  for (std::size_t at = text.find(kKey); at != text.npos;
       at = text.find(kKey, at + 1)) {
    std::size_t next = text.find_first_not_of(kSpaces, at + kKey.size());
    if (next == text.npos || text[next] != ':')
      continue;
    next = text.find_first_not_of(kSpaces, next + 1);
    if (next != text.npos && (text.substr(next).starts_with("\"Lambda\"") ||
                              text.substr(next).starts_with("\"__lambda__\"")))
      return true;
  }
  return false;
}

Reason lambda_layer() {
  return {Safety::kRunsCode, "keras_lambda",
          "loading it with Keras would run the code of a Lambda layer", ""};
}

// Keras imports the classes of its configuration by module and name.
KnownFormat keras_configuration(Bytes bytes) {
  constexpr std::size_t kMostDoubts = 100;
  KnownFormat format{"the configuration of a Keras model", {}};
  Builder builder;
  const Result<Value> root = parse_json(bytes, builder);
  if (!root) {
    format.doubts.push_back(
        doubt("keras_configuration", "its Keras configuration is damaged"));
    return format;
  }
  std::vector<const Value*> left = {&*root};
  while (!left.empty()) {
    const Value& value = *left.back();
    left.pop_back();
    if (value.is(Kind::kList))
      for (const Value& item : value.items())
        left.push_back(&item);
    if (!value.is(Kind::kDict))
      continue;
    for (const Pair& pair : value.pairs()) {
      left.push_back(&pair.value);
      if (format.doubts.size() >= kMostDoubts)
        continue;
      if (pair.key.text() == "class_name" && pair.value.is(Kind::kString) &&
          (pair.value.text() == "Lambda" || pair.value.text() == "__lambda__"))
        format.doubts.push_back(lambda_layer());
      if (pair.key.text() != "module" || !pair.value.is(Kind::kString) ||
          value.find("class_name") == nullptr)
        continue;
      const std::string_view module = pair.value.text();
      if (module == "keras" || module.starts_with("keras.") ||
          module == "builtins" || module.empty())
        continue;
      format.doubts.push_back(
          {Safety::kRunsCode, "keras_module",
           fmt::format("loading it with Keras would import {}",
                       module.substr(0, 200)),
           ""});
    }
  }
  return format;
}

// --------------------------------------------------------------------- GGUF

// Reads the key-value pairs at the front of a GGUF file.
class Gguf {
 public:
  explicit Gguf(Bytes bytes) : cursor_(bytes) {}

  KnownFormat judge() {
    KnownFormat format{"a GGUF file, which holds no pickles", {}};
    if (!read(format.doubts))
      format.doubts.push_back(doubt(
          "gguf_damaged", "the key-value pairs at its front are damaged"));
    return format;
  }

 private:
  Result<> read(std::vector<Reason>& doubts) {
    TRY(cursor_.skip(4));
    const auto version = TRY(cursor_.little_endian<std::uint32_t>());
    if (version < 2 || version > 3)
      return fail(ErrorKind::kUnsupported, "version {}", version);
    TRY(cursor_.skip(8));  // the number of tensors
    const auto pairs = TRY(cursor_.little_endian<std::uint64_t>());
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const std::string_view key = TRY(text());
      const auto type = TRY(cursor_.little_endian<std::uint32_t>());
      if (type == kText && key.find("chat_template") != key.npos)
        judge_template(TRY(text()), doubts);
      else
        TRY(skip(type));
    }
    return {};
  }

  // Runtimes render it by Jinja. The sandbox of some is missing or has holes,
  // and what leaves it begins at an attribute with underscores.
  static void judge_template(std::string_view text,
                             std::vector<Reason>& doubts) {
    constexpr std::array kReaches = {
        std::string_view("__"),       std::string_view("\\x5f"),
        std::string_view("|attr"),    std::string_view("| attr"),
        std::string_view("popen"),    std::string_view("subprocess"),
        std::string_view("import os")};
    for (const std::string_view reach : kReaches)
      if (text.find(reach) != text.npos) {
        doubts.push_back(
            {Safety::kRunsCode, "chat_template",
             fmt::format("its chat template has '{}', by which a template "
                         "reaches Python",
                         reach),
             ""});
        return;
      }
  }

  Result<std::string_view> text() {
    const auto size = TRY(cursor_.little_endian<std::uint64_t>());
    return as_text(TRY(cursor_.take(size)));
  }

  Result<> skip(std::uint32_t type) {
    if (type == kText) {
      TRY(text());
      return {};
    }
    if (type != kArray)
      return cursor_.skip(TRY(size_of(type)));
    const auto inner = TRY(cursor_.little_endian<std::uint32_t>());
    const auto count = TRY(cursor_.little_endian<std::uint64_t>());
    if (inner == kArray)
      return fail(ErrorKind::kUnsupported, "arrays of arrays");
    if (inner == kText) {
      for (std::uint64_t i = 0; i < count; ++i)
        TRY(text());
      return {};
    }
    const auto bytes = checked_multiply(count, TRY(size_of(inner)));
    if (!bytes)
      return fail(ErrorKind::kCorrupt, "too long an array");
    return cursor_.skip(*bytes);
  }

  static Result<std::uint64_t> size_of(std::uint32_t type) {
    constexpr std::array<std::uint64_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4,
                                                      1, 0, 0, 8, 8, 8};
    if (type >= kSizes.size() || kSizes[type] == 0)
      return fail(ErrorKind::kCorrupt, "type {}", type);
    return kSizes[type];
  }

  static constexpr std::uint32_t kText = 8;
  static constexpr std::uint32_t kArray = 9;
  Cursor cursor_;
};

// --------------------------------------------------------------------- ONNX

// A field of a protocol buffer message.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a varint
  Bytes bytes = {};         // of a message or text
};

std::optional<std::uint64_t> read_varint(Bytes& rest) {
  std::uint64_t value = 0;
  constexpr unsigned kMostBits = 64;
  for (unsigned shift = 0; shift < kMostBits && !rest.empty(); shift += 7) {
    const auto byte = static_cast<std::uint64_t>(rest.front());
    rest = rest.subspan(1);
    value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0)
      return value;
  }
  return std::nullopt;
}

std::optional<Field> read_field(Bytes& rest) {
  const auto tag = read_varint(rest);
  if (!tag || *tag >> 3 == 0)
    return std::nullopt;
  Field field{.number = *tag >> 3};
  std::optional<std::uint64_t> size;
  switch (*tag & 7) {
    case 0:
      if (const auto value = read_varint(rest)) {
        field.value = *value;
        return field;
      }
      return std::nullopt;
    case 1:
      size = 8;
      break;
    case 2:
      size = read_varint(rest);
      break;
    case 5:
      size = 4;
      break;
    default:
      return std::nullopt;
  }
  if (!size || *size > rest.size())
    return std::nullopt;
  field.bytes = rest.first(*size);
  rest = rest.subspan(*size);
  return field;
}

// The messages of a model that lead to the files with its weights.
enum class OnnxPart { kModel, kGraph, kNode, kAttribute, kTensor, kEntry };

class Onnx {
 public:
  static bool recognises(Bytes bytes) {
    // The version of the format, then its producer.
    return bytes.size() > 8 && bytes[0] == std::byte{0x08} &&
           bytes[1] > std::byte{0} && bytes[1] < std::byte{32} &&
           (bytes[2] == std::byte{0x12} || bytes[2] == std::byte{0x3a}) &&
           is_whole(bytes);
  }

  static KnownFormat judge(Bytes model) {
    KnownFormat format{"an ONNX model, which holds no pickles", {}};
    std::vector<std::pair<OnnxPart, Bytes>> left = {{OnnxPart::kModel, model}};
    while (!left.empty()) {
      auto [part, rest] = left.back();
      left.pop_back();
      bool is_location = false;
      while (!rest.empty()) {
        const auto field = read_field(rest);
        if (!field) {
          format.doubts.push_back(
              doubt("onnx_damaged", "a part of its model is damaged"));
          break;
        }
        if (const auto below = part_below(part, field->number))
          left.push_back({*below, field->bytes});
        else if (part == OnnxPart::kEntry && field->number == 1)
          is_location = as_text(field->bytes) == "location";
        else if (part == OnnxPart::kEntry && field->number == 2 && is_location)
          judge_location(as_text(field->bytes), format.doubts);
      }
    }
    return format;
  }

 private:
  static bool is_whole(Bytes rest) {
    bool graph = false;
    while (!rest.empty()) {
      const auto field = read_field(rest);
      constexpr std::uint64_t kMostFields = 64;
      if (!field || field->number > kMostFields)
        return false;
      graph = graph || (field->number == 7 && !field->bytes.empty());
    }
    return graph;
  }

  static std::optional<OnnxPart> part_below(OnnxPart part,
                                            std::uint64_t number) {
    using enum OnnxPart;
    constexpr std::array<std::tuple<OnnxPart, std::uint64_t, OnnxPart>, 12>
        kParts = {{{kModel, 7, kGraph},
                   {kModel, 25, kGraph},  // a function has nodes, too
                   {kGraph, 1, kNode},
                   {kGraph, 7, kNode},  // a function's nodes
                   {kGraph, 5, kTensor},
                   {kNode, 5, kAttribute},
                   {kAttribute, 5, kTensor},
                   {kAttribute, 6, kGraph},
                   {kAttribute, 10, kTensor},
                   {kAttribute, 11, kGraph},
                   {kTensor, 13, kEntry},
                   {kGraph, 15, kTensor}}};
    for (const auto& [above, field, below] : kParts)
      if (above == part && field == number)
        return below;
    return std::nullopt;
  }

  static void judge_location(std::string_view location,
                             std::vector<Reason>& doubts) {
    const bool absolute = location.starts_with('/') ||
                          location.starts_with('\\') ||
                          (location.size() > 1 && location[1] == ':');
    if (absolute || location.find("..") != location.npos)
      doubts.push_back({Safety::kDangerous, "external_data",
                        fmt::format("loading it would read {}, outside its "
                                    "folder",
                                    location.substr(0, 200)),
                        ""});
  }
};

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

KnownFormat hdf5_format(Bytes bytes) {
  KnownFormat format{"an HDF5 file, which holds no pickles", {}};
  if (has_lambda_layer(as_text(bytes)))
    format.doubts.push_back(lambda_layer());
  else
    format.doubts.push_back(
        doubt("hdf5",
              "an HDF5 file: it was searched for Lambda layers of "
              "Keras, but not read"));
  return format;
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

bool is_keras_configuration(Bytes bytes, std::string_view name) {
  return name.ends_with(".json") && begins_with(bytes, "{") &&
         (as_text(bytes).find("\"class_name\"") != std::string_view::npos ||
          as_text(bytes).find("\\u") != std::string_view::npos);
}

}  // namespace

std::optional<KnownFormat> known_format(Bytes bytes, std::string_view name) {
  if (is_safetensors_file(bytes))
    return safetensors_format(bytes);
  if (begins_with(bytes, "\x89HDF\r\n\x1a\n"))
    return hdf5_format(bytes);
  if (begins_with(bytes, "GGUF"))
    return Gguf(bytes).judge();
  if (const auto what = native_code(bytes))
    return KnownFormat{
        *what,
        {doubt("native_code",
               fmt::format("it is {}, which is not looked into", *what))}};
  if (is_keras_configuration(bytes, name))
    return keras_configuration(bytes);
  if (Onnx::recognises(bytes))
    return Onnx::judge(bytes);
  return std::nullopt;
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
