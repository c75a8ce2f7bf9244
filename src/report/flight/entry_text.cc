#include "report/flight/entry_text.h"

#include <array>
#include <cstddef>
#include <ctime>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/escape.h"
#include "flight/diagnosis/call_stack.h"

namespace postflight {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 21>
    kShortNames{{
        {"Float", "f32"},
        {"Double", "f64"},
        {"Half", "f16"},
        {"BFloat16", "bf16"},
        {"Long", "i64"},
        {"Int", "i32"},
        {"Short", "i16"},
        {"Char", "i8"},
        {"Byte", "u8"},
        {"UInt16", "u16"},
        {"UInt32", "u32"},
        {"UInt64", "u64"},
        {"Bool", "bool"},
        {"ComplexFloat", "c64"},
        {"ComplexDouble", "c128"},
        {"Float8_e4m3fn", "f8e4m3"},
        {"Float8_e5m2", "f8e5m2"},
        {"Float8_e4m3fnuz", "f8e4m3fnuz"},
        {"Float8_e5m2fnuz", "f8e5m2fnuz"},
        {"Float8_e8m0fnu", "f8e8m0"},
        {"ComplexHalf", "c32"},
    }};

void append_shape(std::span<const std::int64_t> shape, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < shape.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  out += ']';
}

}  // namespace

std::string dtype_names(const Tables& tables, DtypesId dtypes) {
  std::string text;
  for (const TextId name : tables.dtypes(dtypes)) {
    if (!text.empty())
      text += ", ";
    text += tables.text(name);
  }
  return text;
}

std::string_view short_dtype(std::string_view recorded) {
  for (const auto& [name, brief] : kShortNames)
    if (name == recorded)
      return brief;
  return recorded;
}

std::string tensors_text(const Tables& tables, SizesId sizes, DtypesId dtypes) {
  const std::vector<std::span<const std::int64_t>> shapes =
      tables.shapes(sizes);
  const std::span<const TextId> names = tables.dtypes(dtypes);
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (i > 0)
      text += ' ';
    if (i < names.size())
      text += short_dtype(tables.text(names[i]));
    append_shape(shapes[i], text);
  }
  return text;
}

std::string call_text(const Job& job, const Call& call) {
  const std::string_view name = job.text(call.name);
  std::string text(name.substr(name.find(':') + 1));
  std::string tensors =
      tensors_text(job.tables, call.inputs, call.input_dtypes);
  if (tensors.empty())
    tensors = tensors_text(job.tables, call.outputs, call.output_dtypes);
  if (!tensors.empty())
    text += ' ' + tensors;
  return text;
}

std::string group_label(const Job& job, const Group& group) {
  return escape_for_terminal(
      job.text(group.description != TextId{} ? group.description : group.name));
}

std::int32_t job_rank(const Job& job, GroupId group, std::int32_t place) {
  const std::vector<Rank>& members = job.group(group).members;
  return place < 0 || static_cast<std::size_t>(place) >= members.size()
             ? place
             : members[static_cast<std::size_t>(place)].value;
}

std::string operation_label(const Job& job, const Entry& entry) {
  const Call& call = job.call(entry);
  const Operation operation = job.operation(call);
  if (operation.point_to_point())
    return fmt::format("{} {}->{}", escape_for_terminal(operation.name),
                       job_rank(job, call.group, operation.source),
                       job_rank(job, call.group, operation.destination));
  return fmt::format("{} #{}", escape_for_terminal(operation.name),
                     entry.sequence);
}

std::string tensors_label(const Job& job, const Call& call) {
  const auto shapes = job.tables.shapes(call.inputs);
  if (shapes.empty())
    return "";
  const auto dtypes = job.tables.dtypes(call.input_dtypes);
  std::string text = fmt::format(
      "{}[{}]",
      dtypes.empty() ? ""
                     : escape_for_terminal(short_dtype(job.text(dtypes[0]))),
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

std::string host_label(const Job& job, Rank rank) {
  const std::string_view host = job.host_of(rank);
  return host.empty() ? "" : fmt::format(" on {}", escape_for_terminal(host));
}

}  // namespace postflight
