#include "report/flight/entry_text.h"

#include <ctime>

#include "base/escape.h"
#include "flight/diagnosis/stack_story.h"
#include "report/flight/call_text.h"

namespace postflight {

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

}  // namespace postflight
