// An ONNX model is a message of protocol buffers, whose fields may come in any
// order. Its weights may be in other files, which are named by external_data.

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/torch/known_formats.h"

namespace postflight {
namespace {

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
enum class Part {
  kModel,
  kTraining,
  kGraph,
  kNode,
  kAttribute,
  kSparse,
  kTensor,
  kEntry,
};

std::optional<Part> part_below(Part part, std::uint64_t number) {
  using enum Part;
  constexpr std::array<std::tuple<Part, std::uint64_t, Part>, 20> kParts = {
      {{kModel, 7, kGraph},
       {kModel, 20, kTraining},
       {kModel, 25, kGraph},  // a function has nodes, too
       {kTraining, 1, kGraph},
       {kTraining, 2, kGraph},
       {kGraph, 1, kNode},
       {kGraph, 7, kNode},  // a function's nodes
       {kGraph, 5, kTensor},
       {kGraph, 15, kSparse},
       {kNode, 5, kAttribute},
       {kAttribute, 5, kTensor},
       {kAttribute, 6, kGraph},
       {kAttribute, 10, kTensor},
       {kAttribute, 11, kGraph},
       {kAttribute, 22, kSparse},
       {kAttribute, 23, kSparse},
       {kGraph, 11, kAttribute},  // a function's defaults
       {kSparse, 1, kTensor},
       {kSparse, 2, kTensor},
       {kTensor, 13, kEntry}}};
  for (const auto& [above, field, below] : kParts)
    if (above == part && field == number)
      return below;
  return std::nullopt;
}

// A version of the format, a graph, and nothing that is no field.
bool is_model(Bytes rest) {
  // A field of the model: its wire type and a small number.
  if (rest.size() < 8 || (rest[0] & std::byte{7}) > std::byte{2})
    return false;
  bool has_version = false;
  bool has_graph = false;
  while (!rest.empty()) {
    const auto field = read_field(rest);
    constexpr std::uint64_t kMostFields = 64;
    constexpr std::uint64_t kMostVersions = 32;
    if (!field || field->number > kMostFields)
      return false;
    has_version = has_version || (field->number == 1 && field->value > 0 &&
                                  field->value < kMostVersions);
    has_graph = has_graph || (field->number == 7 && !field->bytes.empty());
  }
  return has_version && has_graph;
}

void judge_location(std::string_view location, std::vector<Reason>& doubts) {
  constexpr std::size_t kMostDoubts = 100;
  constexpr std::size_t kShown = 200;
  const bool absolute = location.starts_with('/') ||
                        location.starts_with('\\') ||
                        (location.size() > 1 && location[1] == ':');
  if ((absolute || location.find("..") != location.npos) &&
      doubts.size() < kMostDoubts)
    doubts.push_back(
        {Safety::kDangerous, "external_data",
         fmt::format("loading it would read {}, outside its folder",
                     location.substr(0, kShown)),
         ""});
}

// What a message consists of; false if it is damaged.
bool judge_part(Part part, Bytes rest, std::vector<Reason>& doubts,
                std::vector<std::pair<Part, Bytes>>& left) {
  bool is_location = false;
  std::vector<std::string_view> values;
  while (!rest.empty()) {
    const auto field = read_field(rest);
    if (!field)
      return false;
    if (const auto below = part_below(part, field->number))
      left.push_back({*below, field->bytes});
    else if (part == Part::kEntry && field->number == 1)
      is_location = is_location || as_text(field->bytes) == "location";
    else if (part == Part::kEntry && field->number == 2)
      values.push_back(as_text(field->bytes));
  }
  if (is_location)
    for (const std::string_view value : values)
      judge_location(value, doubts);
  return true;
}

}  // namespace

std::optional<KnownFormat> onnx_model(Bytes bytes) {
  if (!is_model(bytes))
    return std::nullopt;
  KnownFormat format{"an ONNX model, which holds no pickles", {}};
  std::vector<std::pair<Part, Bytes>> left = {{Part::kModel, bytes}};
  bool whole = true;
  while (!left.empty()) {
    const auto [part, rest] = left.back();
    left.pop_back();
    whole = judge_part(part, rest, format.doubts, left) && whole;
  }
  if (!whole)
    format.doubts.push_back(
        doubt("onnx_damaged", "a part of its model is damaged"));
  return format;
}

}  // namespace postflight
