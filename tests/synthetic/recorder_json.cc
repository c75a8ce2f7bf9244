// torch's JSON sorts its keys, has no frames and no null, and gives the numbers
// of pg_status as text.
#include <iterator>

#include <fmt/format.h>

#include "synthetic/recorder.h"

namespace postflight::synthetic {
namespace {

std::string sizes(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& tensor : tensors)
    text += fmt::format("{}[{}]", text.empty() ? "" : ",",
                        fmt::join(tensor.shape, ","));
  return "[" + text + "]";
}

std::string dtypes(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& tensor : tensors)
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ",", tensor.dtype);
  return "[" + text + "]";
}

std::string entry(const ShownEntry& shown, int rank, const Schedule& schedule,
                  const Topology& topology, const RecorderOptions& options) {
  const Record& record = *shown.record;
  const CallSite& site = schedule.sites()[record.site];
  const auto axis = static_cast<std::size_t>(record.axis);
  const Topology::Place& place = topology.place(rank);
  const JobGroup& group =
      topology.groups[static_cast<std::size_t>(place.group[axis])];
  const std::vector<Tensor> outputs =
      entry_outputs(record, site, place.position[axis],
                    static_cast<int>(group.members.size()));
  const std::vector<Tensor>& inputs =
      record.kind == RecordKind::kClosing ? outputs : site.inputs;
  std::string text;
  const auto add = [&](std::string_view key, const auto& value) {
    fmt::format_to(std::back_inserter(text), "{}\"{}\":{}",
                   text.empty() ? "" : ",", key, value);
  };
  const auto quoted = [](std::string_view value) {
    return fmt::format("\"{}\"", value);
  };
  add("collective_seq_id", record.sequence);
  if (shown.duration_ms >= 0)
    add("duration_ms", shown.duration_ms);
  add("input_dtypes", dtypes(inputs));
  add("input_sizes", sizes(inputs));
  add("is_p2p", record.point_to_point());
  add("op_id", record.operation_id);
  add("output_dtypes", dtypes(outputs));
  add("output_sizes", sizes(outputs));
  add("p2p_seq_id", record.p2p_sequence);
  add("pg_id", place.local_id[axis]);
  add("process_group",
      fmt::format("[\"{}\",\"{}\"]", group.name, group.description));
  add("profiling_name",
      quoted(entry_name(record, site, place.position[axis], options)));
  add("record_id", shown.record_id);
  add("retired", shown.retired);
  add("state", quoted(shown.state));
  if (options.minor_version() >= 9) {
    const ThreadText thread = thread_of(record, site, rank);
    add("thread_id", quoted(thread.id));
    add("thread_name", quoted(thread.name));
  }
  add("time_created_ns", shown.created);
  add("time_discovered_completed_ns", shown.completed);
  add("time_discovered_started_ns", shown.started);
  add("timeout_ms", options.timeout_ms);
  return "{" + text + "}";
}

std::string groups(const Shown& shown, const Topology& topology,
                   const RecorderOptions& options) {
  const auto group = [](std::string_view name, std::string_view description,
                        const std::string& members) {
    return fmt::format(
        "\"{}\":{{\"desc\":\"{}\",\"name\":\"{}\",\"ranks\":\"{}\"}}", name,
        description, name, members);
  };
  if (options.gloo()) {
    const bool world = !shown.groups.empty() && shown.groups[0] == 0;
    return group("", "",
                 world ? member_text(topology.groups[0].members) : "[]");
  }
  std::string text;
  for (const int index : shown.groups) {
    const JobGroup& from = topology.groups[static_cast<std::size_t>(index)];
    text += (text.empty() ? "" : ",") +
            group(from.name, from.description, member_text(from.members));
  }
  return text;
}

}  // namespace

std::string json_dump(const Shown& shown, const Schedule& schedule,
                      const Topology& topology,
                      const RecorderOptions& options) {
  const int minor = options.minor_version();
  const std::string_view library = options.gloo() ? "" : "2.28.9";
  std::string text = "{";
  if (minor >= 10)
    text += fmt::format("\"comm_lib_version\":\"{}\",", library);
  if (!shown.entries.empty()) {
    text += "\"entries\":[";
    for (const ShownEntry& each : shown.entries)
      text += (&each == shown.entries.data() ? "" : ",") +
              entry(each, shown.rank, schedule, topology, options);
    text += "],";
  }
  text += "\"nccl_comm_state\":{},";
  if (minor >= 6 && minor < 10)
    text += fmt::format("\"nccl_version\":\"{}\",", library);
  text += fmt::format("\"pg_config\":{{{}}}", groups(shown, topology, options));
  if (minor >= 3) {
    std::string statuses;
    for (const ShownStatus& status : shown.statuses)
      statuses += fmt::format(
          "{}\"{}\":{{\"last_completed_collective\":\"{}\","
          "\"last_enqueued_collective\":\"{}\","
          "\"last_started_collective\":\"{}\"}}",
          statuses.empty() ? "" : ",", status.local_id, status.completed,
          status.enqueued, status.started);
    text += fmt::format(",\"pg_status\":{{{}}}", statuses);
  }
  return text + fmt::format(",\"version\":\"{}\"}}", options.version);
}

}  // namespace postflight::synthetic
