#include <cstdlib>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "pickle/builder.h"
#include "pickle/writing/writer.h"
#include "synthetic/recorder.h"

namespace postflight::synthetic {
namespace {

class PickledDump {
 public:
  PickledDump(const Shown& shown, const Schedule& schedule,
              const Topology& topology, const RecorderOptions& options)
      : shown_(shown),
        schedule_(schedule),
        topology_(topology),
        options_(options) {}

  std::string write() {
    const int minor = options_.minor_version();
    const Value dump = make_.dict();
    make_.set_item(dump, "version", text(options_.version));
    make_.set_item(dump, "pg_config", groups());
    const std::string_view library = options_.gloo() ? "" : "2.28.9";
    if (minor >= 10)
      make_.set_item(dump, "comm_lib_version", text(library));
    else if (minor >= 6)
      make_.set_item(dump, "nccl_version", text(library));
    if (minor >= 3)
      make_.set_item(dump, "pg_status", statuses());
    const Value list = make_.list();
    for (const ShownEntry& shown : shown_.entries)
      make_.append(list, entry(shown));
    make_.set_item(dump, "entries", list);
    Result<std::string> written =
        write_pickle(dump, {.dialect = Dialect::kRecorder});
    if (!written)
      std::abort();  // the dialect can express everything built here
    return *std::move(written);
  }

 private:
  Value text(std::string_view value) { return make_.interned(value); }
  Value number(std::int64_t value) { return make_.integer(value); }

  Value group(std::string_view name, std::string_view description,
              const std::string& members) {
    const Value made = make_.dict();
    make_.set_item(made, "name", text(name));
    make_.set_item(made, "desc", text(description));
    make_.set_item(made, "ranks", text(members));
    return made;
  }

  Value groups() {
    const Value made = make_.dict();
    if (options_.gloo()) {
      const bool world = !shown_.groups.empty() && shown_.groups[0] == 0;
      make_.set_item(
          made, text(""),
          group("", "",
                world ? member_text(topology_.groups[0].members) : "[]"));
      return made;
    }
    for (const int index : shown_.groups) {
      const JobGroup& from = topology_.groups[static_cast<std::size_t>(index)];
      make_.set_item(
          made, text(from.name),
          group(from.name, from.description, member_text(from.members)));
    }
    return made;
  }

  Value statuses() {
    const Value made = make_.dict();
    for (const ShownStatus& status : shown_.statuses) {
      const Value one = make_.dict();
      make_.set_item(one, "last_enqueued_collective", number(status.enqueued));
      make_.set_item(one, "last_started_collective", number(status.started));
      make_.set_item(one, "last_completed_collective",
                     number(status.completed));
      make_.set_item(made, text(fmt::format("{}", status.local_id)), one);
    }
    return made;
  }

  Value frame(const SourceLine& line) {
    const auto [found, is_new] = frames_.try_emplace(
        {line.function.data(), line.file.data(), line.line}, Builder::none());
    if (is_new) {
      found->second = make_.dict();
      make_.set_item(found->second, "name", text(line.function));
      make_.set_item(found->second, "filename", text(line.file));
      make_.set_item(found->second, "line", number(line.line));
    }
    return found->second;
  }

  Value stack(SiteId site) {
    const auto [found, is_new] = stacks_.try_emplace(site);
    if (is_new)
      for (const SourceLine& line : schedule_.sites()[site].stack)
        found->second.push_back(frame(line));
    return make_.list(found->second);
  }

  Value sizes(const std::vector<Tensor>& tensors) {
    const Value made = make_.list();
    for (const Tensor& tensor : tensors) {
      const Value shape = make_.list();
      for (const std::int64_t size : tensor.shape)
        make_.append(shape, number(size));
      make_.append(made, shape);
    }
    return made;
  }

  Value dtypes(const std::vector<Tensor>& tensors) {
    const Value made = make_.list();
    for (const Tensor& tensor : tensors)
      make_.append(made, text(tensor.dtype));
    return made;
  }

  Value time(std::int64_t value) {
    return value == 0 ? Builder::none() : number(value);
  }

  Value entry(const ShownEntry& shown) {
    const Record& record = *shown.record;
    const CallSite& site = schedule_.sites()[record.site];
    const auto axis = static_cast<std::size_t>(record.axis);
    const Topology::Place& place = topology_.place(shown_.rank);
    const JobGroup& group =
        topology_.groups[static_cast<std::size_t>(place.group[axis])];
    const bool closing = record.kind == RecordKind::kClosing;
    const std::vector<Tensor> outputs =
        entry_outputs(record, site, place.position[axis],
                      static_cast<int>(group.members.size()));
    const std::vector<Tensor>& inputs = closing ? outputs : site.inputs;

    const Value made = make_.dict();
    if (options_.stacks)
      make_.set_item(made, "frames", stack(record.site));
    make_.set_item(made, "record_id", number(shown.record_id));
    make_.set_item(made, "pg_id", number(place.local_id[axis]));
    make_.set_item(made, "process_group",
                   make_.tuple({text(group.name), text(group.description)}));
    if (options_.minor_version() >= 9) {
      const ThreadText thread = thread_of(record, site, shown_.rank);
      make_.set_item(made, "thread_name", text(thread.name));
      make_.set_item(made, "thread_id", text(thread.id));
    }
    make_.set_item(made, "collective_seq_id", number(record.sequence));
    make_.set_item(made, "p2p_seq_id", number(record.p2p_sequence));
    make_.set_item(made, "op_id", number(record.operation_id));
    make_.set_item(
        made, "profiling_name",
        text(entry_name(record, site, place.position[axis], options_)));
    make_.set_item(made, "time_created_ns", number(shown.created));
    if (shown.duration_ms >= 0)
      make_.set_item(made, "duration_ms", make_.floating(shown.duration_ms));
    make_.set_item(made, "input_sizes", sizes(inputs));
    make_.set_item(made, "input_dtypes", dtypes(inputs));
    make_.set_item(made, "output_sizes", sizes(outputs));
    make_.set_item(made, "output_dtypes", dtypes(outputs));
    make_.set_item(made, "state", text(shown.state));
    make_.set_item(made, "time_discovered_started_ns", time(shown.started));
    make_.set_item(made, "time_discovered_completed_ns", time(shown.completed));
    make_.set_item(made, "retired", Builder::boolean(shown.retired));
    make_.set_item(made, "timeout_ms", number(options_.timeout_ms));
    make_.set_item(made, "is_p2p", Builder::boolean(record.point_to_point()));
    return made;
  }

  const Shown& shown_;
  const Schedule& schedule_;
  const Topology& topology_;
  const RecorderOptions& options_;
  Builder make_;
  std::map<std::tuple<const char*, const char*, int>, Value> frames_;
  std::unordered_map<SiteId, std::vector<Value>> stacks_;
};

}  // namespace

std::string pickle_dump(const Shown& shown, const Schedule& schedule,
                        const Topology& topology,
                        const RecorderOptions& options) {
  return PickledDump(shown, schedule, topology, options).write();
}

}  // namespace postflight::synthetic
