#include "dump.h"

#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "pickle/builder.h"
#include "pickle/writer.h"

namespace postflight {
namespace {

struct Group {
  std::string name;
  std::string description;
  std::vector<int> ranks;
  std::int64_t sequence = 0;
};

struct Operation {
  const char* name;
  std::int64_t input;
  std::int64_t output;
};

constexpr Operation kOperations[] = {
    {"nccl:all_reduce", 4096, 4096},
    {"nccl:_all_gather_base", 1024, 8192},
    {"nccl:_reduce_scatter_base", 8192, 1024},
};

std::string rank_list(const std::vector<int>& ranks) {
  return fmt::format("[{}]", fmt::join(ranks, ", "));
}

std::vector<Group> groups_of(const DumpOptions& options) {
  Group all{"0", "default_pg", {}};
  Group tensor{"1", fmt::format("tp_{}", options.rank / 2), {}};
  for (int rank = 0; rank < options.world_size; ++rank) {
    all.ranks.push_back(rank);
    if (rank / 2 == options.rank / 2)
      tensor.ranks.push_back(rank);
  }
  return {all, tensor};
}

class DumpBuilder {
 public:
  explicit DumpBuilder(const DumpOptions& options)
      : options_(options), groups_(groups_of(options)) {}

  std::string write() {
    const Value dump = make_.dict();
    make_.set_item(dump, "version", text("2.10"));
    make_.set_item(dump, "pg_config", group_config());
    make_.set_item(dump, "comm_lib_version", text("2.28.9"));
    make_.set_item(dump, "entries", entries());
    Result<std::string> written =
        write_pickle(dump, {.dialect = Dialect::kRecorder});
    if (!written)
      std::abort();
    return *std::move(written);
  }

 private:
  Value text(std::string_view value) { return make_.interned(value); }

  Value group_config() {
    const Value config = make_.dict();
    for (const Group& group : groups_) {
      const Value entry = make_.dict();
      make_.set_item(entry, "name", text(group.name));
      make_.set_item(entry, "desc", text(group.description));
      make_.set_item(entry, "ranks", text(rank_list(group.ranks)));
      make_.set_item(config, group.name, entry);
    }
    return config;
  }

  Value frame(int line) {
    const Value made = make_.dict();
    make_.set_item(made, "name", text(fmt::format("forward_{}", line % 7)));
    make_.set_item(made, "filename",
                   text(fmt::format("/job/model/layer_{}.py", line % 5)));
    make_.set_item(made, "line", make_.integer(100 + line));
    return made;
  }

  // As in real stacks, the outer frames are few and the inner ones vary.
  Value stack(int entry) {
    if (frames_.empty())
      for (int line = 0; line < 4 * options_.frames; ++line)
        frames_.push_back(frame(line));
    const Value list = make_.list();
    for (int depth = 0; depth < options_.frames; ++depth) {
      const int variant = depth < 4 ? (entry + depth) % 4 : 0;
      make_.append(list,
                   frames_[static_cast<std::size_t>(4 * depth + variant)]);
    }
    return list;
  }

  Value sizes(std::int64_t elements) {
    return make_.list({make_.list({make_.integer(elements)})});
  }

  Value entries() {
    const Value list = make_.list();
    std::int64_t time = 1'794'726'391'811'411'348;
    for (int i = 0; i < options_.entries; ++i) {
      Group& group = groups_[i % 5 == 0 ? 1 : 0];
      const Operation& operation = kOperations[i % 3];
      time += 1'234'567 + i % 97;
      ++group.sequence;
      const Value entry = make_.dict();
      make_.set_item(entry, "frames", stack(i));
      make_.set_item(entry, "record_id", make_.integer(i));
      make_.set_item(entry, "pg_id", make_.integer(i % 5 == 0 ? 1 : 0));
      make_.set_item(entry, "process_group",
                     make_.tuple({text(group.name), text(group.description)}));
      make_.set_item(entry, "thread_name", text("python3"));
      make_.set_item(entry, "thread_id", text("140386913235264"));
      make_.set_item(entry, "collective_seq_id", make_.integer(group.sequence));
      make_.set_item(entry, "p2p_seq_id", make_.integer(0));
      make_.set_item(entry, "op_id", make_.integer(group.sequence));
      make_.set_item(entry, "profiling_name", text(operation.name));
      make_.set_item(entry, "time_created_ns", make_.integer(time));
      make_.set_item(entry, "input_sizes", sizes(operation.input));
      make_.set_item(entry, "input_dtypes", make_.list({text("BFloat16")}));
      make_.set_item(entry, "output_sizes", sizes(operation.output));
      make_.set_item(entry, "output_dtypes", make_.list({text("BFloat16")}));
      make_.set_item(entry, "state", text("completed"));
      make_.set_item(entry, "time_discovered_started_ns", Builder::none());
      make_.set_item(entry, "time_discovered_completed_ns",
                     make_.integer(time + 654'321));
      make_.set_item(entry, "retired", Builder::boolean(true));
      make_.set_item(entry, "timeout_ms", make_.integer(600'000));
      make_.set_item(entry, "is_p2p", Builder::boolean(false));
      make_.append(list, entry);
    }
    return list;
  }

  DumpOptions options_;
  std::vector<Group> groups_;
  std::vector<Value> frames_;
  Builder make_;
};

}  // namespace

std::string synthetic_dump(const DumpOptions& options) {
  return DumpBuilder(options).write();
}

}  // namespace postflight
