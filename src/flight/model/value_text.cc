#include "flight/model/value_text.h"

#include <string_view>

#include "pickle/repr.h"

namespace postflight {
namespace {

constexpr std::size_t kLongest = 4096;
constexpr int kDeepest = 6;

void append(const Value& value, int depth, std::string& out);

void append_items(std::span<const Value> items, char open, char close,
                  int depth, std::string& out) {
  out += open;
  for (const Value& item : items) {
    if (&item != items.data())
      out += ", ";
    if (out.size() > kLongest) {
      out += "…";
      break;
    }
    append(item, depth + 1, out);
  }
  out += close;
}

void append_pairs(std::span<const Pair> pairs, int depth, std::string& out) {
  out += '{';
  for (const Pair& pair : pairs) {
    if (&pair != pairs.data())
      out += ", ";
    if (out.size() > kLongest) {
      out += "…";
      break;
    }
    append(pair.key, depth + 1, out);
    out += ": ";
    append(pair.value, depth + 1, out);
  }
  out += '}';
}

// The depth is bounded, so the recursion is.
void append(const Value& value, int depth, std::string& out) {
  if (depth > kDeepest) {
    out += "…";
    return;
  }
  switch (value.kind()) {
    case Kind::kNone:
      out += "None";
      return;
    case Kind::kBoolean:
      out += value.boolean() ? "True" : "False";
      return;
    case Kind::kInteger:
      out += std::to_string(value.integer());
      return;
    case Kind::kBigInteger:
      out += repr_integer(value.text());
      return;
    case Kind::kFloat:
      out += repr_float(value.floating());
      return;
    case Kind::kString:
    case Kind::kLegacyString:
      out += repr_string(value.text().substr(0, kLongest));
      return;
    case Kind::kBytes:
    case Kind::kByteArray:
      out += repr_bytes(value.text().substr(0, kLongest));
      return;
    case Kind::kTuple:
    case Kind::kFrozenSet:
      append_items(value.items(), '(', ')', depth, out);
      return;
    case Kind::kList:
      append_items(value.items(), '[', ']', depth, out);
      return;
    case Kind::kSet:
      append_items(value.items(), '{', '}', depth, out);
      return;
    case Kind::kDict:
      append_pairs(value.pairs(), depth, out);
      return;
    default:
      out += "…";
      return;
  }
}

}  // namespace

std::string value_text(const Value& value) {
  if (value.is(Kind::kString) || value.is(Kind::kLegacyString))
    return std::string(value.text());
  std::string out;
  append(value, 0, out);
  return out;
}

}  // namespace postflight
