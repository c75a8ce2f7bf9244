#include "report/classic/database.h"

#include <array>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flight/classic/guid.h"
#include "pickle/builder.h"
#include "pickle/writing/writer.h"
#include "report/classic/report.h"
#include "report/classic/rows.h"

namespace postflight {
namespace {

constexpr std::string_view kModule =
    "torch.distributed.flight_recorder.components.types";

// Python's types, as the annotations of torchfrtrace's rows name them.
class TypeBuilder {
 public:
  explicit TypeBuilder(Builder& builder) : builder_(builder) {}

  Value row(std::string_view name) { return builder_.global(kModule, name); }
  Value plain(std::string_view name) {
    return builder_.global("builtins", name);
  }
  // list[argument], dict[first, second]
  Value generic(std::string_view name, std::initializer_list<Value> arguments) {
    return builder_.reduce(
        builder_.global("types", "GenericAlias"),
        builder_.tuple({plain(name), builder_.tuple(arguments)}));
  }
  Value sizes() { return generic("list", {generic("list", {plain("int")})}); }
  // Ref[row]
  Value reference(std::string_view name) {
    return builder_.reduce(builder_.global("_operator", "getitem"),
                           builder_.tuple({row("Ref"), row(name)}));
  }
  // type | None
  Value optional(Value type) {
    const Value none_type =
        builder_.reduce(plain("type"), builder_.tuple({Builder::none()}));
    return builder_.reduce(builder_.global("_functools", "reduce"),
                           builder_.tuple({builder_.global("_operator", "or_"),
                                           builder_.tuple({type, none_type})}));
  }

  struct Field {
    std::string_view name;
    Value type;
  };
  Value info(std::string_view name, std::initializer_list<Field> fields) {
    const Value list = builder_.list();
    for (const Field& field : fields)
      builder_.append(
          list, builder_.tuple({builder_.interned(field.name), field.type}));
    return builder_.new_object(row("TypeInfo"),
                               builder_.tuple({builder_.interned(name), list}));
  }

  Value all() {
    const Value integer = plain("int");
    const Value text = plain("str");
    const auto list_of = [&](std::string_view name) {
      return generic("list", {row(name)});
    };
    return builder_.list(
        {info("Database", {{"groups", list_of("Group")},
                           {"memberships", list_of("Membership")},
                           {"tracebacks", list_of("Traceback")},
                           {"collectives", list_of("Collective")},
                           {"ncclcalls", list_of("NCCLCall")}}),
         info("NCCLCall", {{"id", integer},
                           {"collective_id", reference("Collective")},
                           {"group_id", text},
                           {"global_rank", integer},
                           {"traceback_id", reference("Traceback")},
                           {"collective_type", text},
                           {"sizes", sizes()}}),
         info("Collective",
              {{"id", integer},
               {"group_id", text},
               {"pass_check", plain("bool")},
               {"collective_seq_id", integer},
               {"p2p_seq_id", integer},
               {"record_id", integer},
               {"pg_desc", text},
               {"collective_name", text},
               {"input_sizes", sizes()},
               {"output_sizes", sizes()},
               {"expected_ranks", generic("set", {integer})},
               {"collective_state", text},
               {"collective_frames",
                generic("list", {generic("dict", {text, text})})},
               {"input_numel", optional(integer)},
               {"output_numel", optional(integer)},
               {"missing_ranks", optional(generic("set", {integer}))},
               {"mismatch_collectives",
                optional(generic("dict", {integer, row("Collective")}))},
               {"type_of_mismatch", optional(row("MatchInfo"))}}),
         info("Traceback", {{"id", integer}, {"frames", text}}),
         info("Membership", {{"group_id", text}, {"global_rank", integer}}),
         info("Group", {{"id", text}, {"desc", text}, {"size", integer}})});
  }

 private:
  Builder& builder_;
};

class DatabaseBuilder {
 public:
  DatabaseBuilder(const Job& job, const ClassicAnalysis& analysis)
      : job_(job), analysis_(analysis), tracebacks_(job, analysis) {}

  Value build() {
    const Value types = TypeBuilder(builder_).all();
    const Value groups = builder_.list();
    const Value memberships = builder_.list();
    add_groups(groups, memberships);
    const Value tracebacks = builder_.list();
    for (std::size_t i = 0; i < tracebacks_.stacks().size(); ++i)
      builder_.append(
          tracebacks,
          row("Traceback", {builder_.integer(static_cast<std::int64_t>(i + 1)),
                            builder_.string(traceback_text(
                                job_, tracebacks_.stacks()[i]))}));
    const Value collectives = builder_.list();
    for (std::size_t i = 0; i < analysis_.collectives.size(); ++i)
      builder_.append(collectives, collective(i));
    const Value calls = builder_.list();
    for (std::size_t i = 0; i < analysis_.calls.size(); ++i)
      builder_.append(calls, call(i));
    const Value database =
        row("Database", {groups, memberships, tracebacks, collectives, calls});
    return builder_.tuple({types, database});
  }

 private:
  Value row(std::string_view name, std::initializer_list<Value> fields) {
    return builder_.new_object(builder_.global(kModule, name),
                               builder_.tuple(fields));
  }
  Value text(TextId id) { return builder_.interned(job_.text(id)); }
  Value number(std::int64_t value) { return builder_.integer(value); }

  void add_groups(Value groups, Value memberships) {
    for (const GroupId id : analysis_.groups) {
      const Group& group = job_.group(id);
      const Value guid =
          builder_.string(classic_guid(job_.text(group.name), group.members));
      builder_.append(groups, row("Group", {guid, text(group.description),
                                            number(static_cast<std::int64_t>(
                                                group.members.size()))}));
      for (const Rank member : group.members)
        builder_.append(memberships,
                        row("Membership", {guid, number(member.value)}));
    }
  }

  Value sizes(SizesId id) {
    const auto [found, is_new] = sizes_.try_emplace(id.value);
    if (is_new) {
      found->second = builder_.list();
      for (const std::span<const std::int64_t> shape : job_.tables.shapes(id)) {
        const Value list = builder_.list();
        for (const std::int64_t size : shape)
          builder_.append(list, number(size));
        builder_.append(found->second, list);
      }
    }
    return found->second;
  }

  Value ranks(const std::vector<Rank>& ranks) {
    std::vector<Value> numbers;
    numbers.reserve(ranks.size());
    for (const Rank rank : ranks)
      numbers.push_back(number(rank.value));
    return builder_.set(numbers);
  }

  Value frames(StackId id) {
    const auto [found, is_new] = frames_.try_emplace(id.value);
    if (is_new) {
      found->second = builder_.list();
      for (const FrameId frame_id : job_.tables.stack(id)) {
        const Frame& frame = job_.tables.frame(frame_id);
        const Value dict = builder_.dict();
        builder_.set_item(dict, "name", text(frame.function));
        builder_.set_item(dict, "filename", text(frame.file));
        builder_.set_item(dict, "line", number(frame.line));
        builder_.append(found->second, dict);
      }
    }
    return found->second;
  }

  Value expected(const ClassicCollective& collective) {
    if (collective.point_to_point)
      return ranks(expected_ranks(job_, collective));
    const auto [found, is_new] = members_.try_emplace(collective.group.value);
    if (is_new)
      found->second = ranks(job_.group(collective.group).members);
    return found->second;
  }

  Value match_info(const ClassicError& error) {
    const Value made = builder_.new_object(
        builder_.global(kModule, "MatchInfo"), builder_.tuple({}));
    const Value state = builder_.reduce(
        builder_.global("builtins", "getattr"),
        builder_.tuple({builder_.global(kModule, "MatchState"),
                        builder_.interned(mismatch_name(error.mismatch))}));
    const Value fields = builder_.dict();
    builder_.set_item(fields, "_state", state);
    builder_.set_item(
        fields, "culprit",
        error.text.empty() ? Builder::none() : builder_.string(error.text));
    builder_.add_state(made, fields);
    return made;
  }

  struct Verdict {
    Value pass_check;
    Value input_numel;
    Value output_numel;
    Value missing_ranks;
    Value mismatch_collectives;
    Value type_of_mismatch;
  };

  Value collective_row(std::size_t id, ClassicEntry where, Value members,
                       const Verdict& verdict) {
    const Entry entry = entry_at(job_, where);
    const Call& call = job_.call(entry);
    return row(
        "Collective",
        {number(static_cast<std::int64_t>(id)), text(call.group_name),
         verdict.pass_check, number(entry.sequence), number(entry.p2p_sequence),
         number(entry.record_id),
         builder_.interned(classic_group_text(job_, call)), text(call.name),
         sizes(call.inputs), sizes(call.outputs), members,
         builder_.interned(state_name(entry.state)), frames(entry.stack),
         verdict.input_numel, verdict.output_numel, verdict.missing_ranks,
         verdict.mismatch_collectives, verdict.type_of_mismatch});
  }

  Value collective(std::size_t id) {
    const ClassicCollective& collective = analysis_.collectives[id];
    const ClassicVerdictFields fields = verdict_fields(analysis_, collective);
    const Value members = expected(collective);
    Verdict verdict;
    verdict.pass_check = Builder::boolean(fields.pass_check);
    if (fields.input_numel)
      verdict.input_numel = number(*fields.input_numel);
    if (fields.output_numel)
      verdict.output_numel = number(*fields.output_numel);
    if (fields.missing_ranks != nullptr)
      verdict.missing_ranks = ranks(*fields.missing_ranks);
    if (fields.errors != nullptr) {
      verdict.mismatch_collectives = builder_.dict();
      for (const ClassicError& error : *fields.errors) {
        Verdict differing;
        differing.pass_check = Builder::boolean(false);
        differing.type_of_mismatch = match_info(error);
        builder_.set_item(verdict.mismatch_collectives,
                          number(job_.ranks[error.where.rank].rank.value),
                          collective_row(id, error.where, members, differing));
      }
    }
    return collective_row(id, collective.shown, members, verdict);
  }

  Value call(std::size_t id) {
    const ClassicCall& found = analysis_.calls[id];
    const ClassicCollective& collective =
        analysis_.collectives[found.collective];
    const Call& shown = job_.call(entry_at(job_, collective.shown));
    const Entry entry = entry_at(job_, found.where);
    return row(
        "NCCLCall",
        {number(static_cast<std::int64_t>(id)),
         collective.matched
             ? number(static_cast<std::int64_t>(found.collective))
             : Builder::none(),
         text(shown.group_name),
         number(job_.ranks[found.where.rank].rank.value),
         number(static_cast<std::int64_t>(tracebacks_.number(entry.stack))),
         text(shown.name), sizes(shown.inputs)});
  }

  const Job& job_;
  const ClassicAnalysis& analysis_;
  ClassicTracebacks tracebacks_;
  Builder builder_;
  std::unordered_map<std::uint32_t, Value> sizes_;
  std::unordered_map<std::uint32_t, Value> frames_;
  std::unordered_map<std::uint32_t, Value> members_;
};

}  // namespace

Result<std::string> classic_database(const Job& job,
                                     const ClassicAnalysis& analysis) {
  DatabaseBuilder builder(job, analysis);
  return write_pickle(builder.build(), {.protocol = 4});
}

}  // namespace postflight
