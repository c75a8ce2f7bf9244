#include "report/entry_text.h"

#include <array>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/escape.h"
#include "flight/stack_story.h"

namespace postflight {
namespace {

// Names of c10's scalar types, as short as the field writes them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20>
    kShortNames{{{"Float", "f32"},
                 {"Double", "f64"},
                 {"Half", "f16"},
                 {"BFloat16", "bf16"},
                 {"Byte", "u8"},
                 {"Char", "i8"},
                 {"Short", "i16"},
                 {"Int", "i32"},
                 {"Long", "i64"},
                 {"Bool", "bool"},
                 {"UInt16", "u16"},
                 {"UInt32", "u32"},
                 {"UInt64", "u64"},
                 {"ComplexFloat", "c64"},
                 {"ComplexDouble", "c128"},
                 {"ComplexHalf", "c32"},
                 {"Float8_e4m3fn", "f8e4m3"},
                 {"Float8_e5m2", "f8e5m2"},
                 {"Float8_e4m3fnuz", "f8e4m3fnuz"},
                 {"Float8_e5m2fnuz", "f8e5m2fnuz"}}};

std::string dtype_label(std::string_view name) {
  for (const auto& [known, short_name] : kShortNames)
    if (known == name)
      return std::string(short_name);
  return escape_for_terminal(name);
}

}  // namespace

std::string group_label(const Job& job, const Group& group) {
  return escape_for_terminal(
      job.text(group.description != TextId{} ? group.description : group.name));
}

std::string operation_label(const Job& job, const Entry& entry) {
  const Call& call = job.call(entry);
  const Operation operation = job.operation(call);
  if (operation.point_to_point())
    return fmt::format("{} {}->{}", escape_for_terminal(operation.name),
                       operation.source, operation.destination);
  return fmt::format("{} #{}", escape_for_terminal(operation.name),
                     entry.sequence);
}

std::string tensors_label(const Job& job, const Call& call) {
  const auto shapes = job.tables.shapes(call.inputs);
  if (shapes.empty())
    return "";
  const auto dtypes = job.tables.dtypes(call.input_dtypes);
  std::string text = fmt::format(
      "{}[{}]", dtypes.empty() ? "" : dtype_label(job.text(dtypes[0])),
      fmt::join(shapes[0], ", "));
  if (shapes.size() > 1)
    text += fmt::format(" and {} more", shapes.size() - 1);
  return text;
}

std::string place_label(const Job& job, const Entry& entry) {
  const Frame* const frame = own_frame(job, entry.stack);
  return frame == nullptr ? "" : escape_for_terminal(frame_text(job, *frame));
}

std::string time_label(std::int64_t nanoseconds) {
  if (nanoseconds <= 0)
    return "";
  const std::time_t seconds = nanoseconds / 1'000'000'000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
                     parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace postflight
