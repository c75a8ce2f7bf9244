#include "report/flight/entry_fields_json.h"

#include <algorithm>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/json_string.h"
#include "report/finding_text.h"
#include "report/flight/call_text.h"
#include "report/json_number.h"

namespace postflight {
namespace {

// "key":"text", with the mark for bytes that are no UTF-8.
std::string text_field(std::string_view key, std::string_view text) {
  std::string field;
  {
    Output out([&field](std::string_view piece) { field += piece; });
    write_json_field(key, text, out);
  }
  return field;
}

std::string dtypes_field(const Job& job, std::string_view key,
                         DtypesId dtypes) {
  std::string field = fmt::format("\"{}\":[", key);
  bool exact = true;
  bool first = true;
  for (const TextId name : job.tables.dtypes(dtypes)) {
    field += first ? "" : ",";
    first = false;
    exact = append_json_string(job.text(name), field) && exact;
  }
  return field + (exact ? "]" : fmt::format("],\"{}_escaped\":true", key));
}

std::string sizes_field(const Job& job, std::string_view key, SizesId sizes) {
  std::string field = fmt::format("\"{}\":[", key);
  const auto shapes = job.tables.shapes(sizes);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    field += i == 0 ? "[" : ",[";
    for (std::size_t j = 0; j < shapes[i].size(); ++j)
      field += (j == 0 ? "" : ",") + json_integer(shapes[i][j]);
    field += "]";
  }
  return field + "]";
}

}  // namespace

EntryFieldsJson::EntryFieldsJson(const Job& job, bool stacks_inline)
    : job_(job),
      stacks_inline_(stacks_inline),
      calls_(job.tables.call_count()),
      stacks_(job.tables.stack_count()) {}

const std::string& EntryFieldsJson::call(CallId id) {
  std::string& text = calls_[id.value];
  if (!text.empty())
    return text;
  const Call& call = job_.tables.call(id);
  const Operation operation = job_.operation(call);
  text = fmt::format(
      "\"group_id\":{},{},{},\"local_group\":{},{},{},{},\"point_to_point\":{},"
      "{},{},{},{},\"timeout_ms\":{}",
      call.group.value, text_field("group", job_.text(call.group_name)),
      text_field("group_description", job_.text(call.group_description)),
      json_id(call.local_group), text_field("name", job_.text(call.name)),
      text_field("backend", operation.backend),
      text_field("operation", operation.name), call.point_to_point != 0,
      sizes_field(job_, "input_sizes", call.inputs),
      dtypes_field(job_, "input_dtypes", call.input_dtypes),
      sizes_field(job_, "output_sizes", call.outputs),
      dtypes_field(job_, "output_dtypes", call.output_dtypes),
      json_integer(call.timeout_ms));
  return text;
}

const std::string& EntryFieldsJson::stack(StackId id) {
  std::string& text = stacks_[id.value];
  if (text.empty())
    text = stacks_inline_ ? frames_json(job_, id)
                          : fmt::format("\"stack_id\":{}", id.value);
  return text;
}

void EntryFieldsJson::write(const RankDump& dump, std::uint32_t position,
                            Output& out) {
  const Entry entry = dump.entries[position];
  const Thread& thread = job_.tables.thread(entry.thread);
  out += fmt::format(
      "\"rank\":{},\"position\":{},\"record_id\":{},{},\"sequence\":{},"
      "\"p2p_sequence\":{},\"operation_id\":{},\"state\":\"{}\",\"retired\":{},"
      "\"created_ns\":{},\"started_ns\":{},\"completed_ns\":{},"
      "\"duration_ms\":{},{},{},",
      dump.rank.value, position, json_id(entry.record_id), call(entry.call),
      json_integer(entry.sequence), json_integer(entry.p2p_sequence),
      json_id(entry.operation_id), state_name(entry.state), entry.retired,
      json_time(entry.created), json_time(entry.started),
      json_time(entry.completed),
      entry.duration_ms == -1 ? "null" : json_double(entry.duration_ms),
      text_field("thread_name", job_.text(thread.name)),
      text_field("thread_id", job_.text(thread.id)));
  out += stack(entry.stack);
  std::vector<Extra> extras;
  for (auto own = std::ranges::lower_bound(dump.entry_extras, position, {},
                                           &EntryExtra::entry);
       own != dump.entry_extras.end() && own->entry == position; ++own)
    extras.push_back(own->extra);
  write_extras_json(job_, extras, out);
}

void write_extras_json(const Job& job, const std::vector<Extra>& extras,
                       Output& out) {
  if (extras.empty())
    return;
  out += ",\"extras\":[";
  for (std::size_t i = 0; i < extras.size(); ++i) {
    out += i == 0 ? "{" : ",{";
    write_json_field("key", job.text(extras[i].key), out);
    out += ",";
    write_json_field("value", job.text(extras[i].value), out);
    out += "}";
  }
  out += "]";
}

std::string frames_json(const Job& job, StackId stack) {
  std::string text = "\"stack\":[";
  bool first = true;
  for (const FrameId id : job.tables.stack(stack)) {
    const Frame& frame = job.tables.frame(id);
    text += first ? "{" : ",{";
    first = false;
    text += fmt::format(
        "{},{},\"line\":{}}}", text_field("function", job.text(frame.function)),
        text_field("file", job.text(frame.file)), json_integer(frame.line));
  }
  return text + "]";
}

}  // namespace postflight
