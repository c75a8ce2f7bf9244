#include "report/flight/entry_fields_json.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "report/flight/entry_text.h"

namespace postflight {
namespace {

void write_dtypes(std::string_view name, const Job& job, DtypesId dtypes,
                  JsonWriter& json) {
  json.array(name, job.tables.dtypes(dtypes),
             [&job](TextId id) { return job.text(id); });
}

void write_sizes(std::string_view name, const Job& job, SizesId sizes,
                 JsonWriter& json) {
  json.array(name);
  const auto shapes = job.tables.shapes(sizes);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    json.array();
    for (const std::int64_t size : shapes[i])
      json.value(size);
    json.end();
  }
  json.end();
}

// Dumps have 0 for a time that was not recorded.
std::optional<std::int64_t> time_or_null(std::int64_t time) {
  return time == 0 ? std::nullopt : std::optional(time);
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
  text = json_text([&](JsonWriter& json) {
    json.object();
    json.field("group_id", call.group.value);
    json.field("group", job_.text(call.group_name));
    json.field("group_description", job_.text(call.group_description));
    json.id("local_group", call.local_group);
    json.field("name", job_.text(call.name));
    json.field("backend", operation.backend);
    json.field("operation", operation.name);
    json.field("point_to_point", call.point_to_point != 0);
    write_sizes("input_sizes", job_, call.inputs, json);
    write_dtypes("input_dtypes", job_, call.input_dtypes, json);
    write_sizes("output_sizes", job_, call.outputs, json);
    write_dtypes("output_dtypes", job_, call.output_dtypes, json);
    json.field("timeout_ms", call.timeout_ms);
    json.end();
  });
  return text;
}

const std::string& EntryFieldsJson::stack(StackId id) {
  std::string& text = stacks_[id.value];
  if (text.empty())
    text = json_text([&](JsonWriter& json) {
      json.object();
      if (stacks_inline_)
        write_stack(job_, id, json);
      else
        json.field("stack_id", id.value);
      json.end();
    });
  return text;
}

void EntryFieldsJson::write(const RankDump& dump, std::uint32_t position,
                            JsonWriter& json) {
  const Entry entry = dump.entries[position];
  const Thread& thread = job_.tables.thread(entry.thread);
  json.field("rank", dump.rank.value);
  json.field("position", position);
  json.id("record_id", entry.record_id);
  json.members(call(entry.call));
  json.field("sequence", entry.sequence);
  json.field("p2p_sequence", entry.p2p_sequence);
  json.id("operation_id", entry.operation_id);
  json.field("state", state_name(entry.state));
  json.field("retired", entry.retired);
  json.time("created_ns", time_or_null(entry.created));
  json.time("started_ns", time_or_null(entry.started));
  json.time("completed_ns", time_or_null(entry.completed));
  if (entry.duration_ms == -1)
    json.field("duration_ms", nullptr);
  else
    json.field("duration_ms", entry.duration_ms);
  json.field("thread_name", job_.text(thread.name));
  json.field("thread_id", job_.text(thread.id));
  json.members(stack(entry.stack));
  std::vector<Extra> extras;
  for (auto own = std::ranges::lower_bound(dump.entry_extras, position, {},
                                           &EntryExtra::entry);
       own != dump.entry_extras.end() && own->entry == position; ++own)
    extras.push_back(own->extra);
  write_extras(job_, extras, json);
}

void write_extras(const Job& job, const std::vector<Extra>& extras,
                  JsonWriter& json) {
  if (extras.empty())
    return;
  json.array("extras");
  for (const Extra& extra : extras) {
    json.object();
    json.field("key", job.text(extra.key));
    json.field("value", job.text(extra.value));
    json.end();
  }
  json.end();
}

void write_stack(const Job& job, StackId stack, JsonWriter& json) {
  json.array("stack");
  for (const FrameId id : job.tables.stack(stack)) {
    const Frame& frame = job.tables.frame(id);
    json.object();
    json.field("function", job.text(frame.function));
    json.field("file", job.text(frame.file));
    json.field("line", frame.line);
    json.end();
  }
  json.end();
}

}  // namespace postflight
