#include "synthetic/cluster/snapshot.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "pickle/builder.h"
#include "pickle/writing/writer.h"

namespace postflight::synthetic::cluster {
namespace {

constexpr std::int64_t kStart = 1'794'726'000'000'000'000;
constexpr std::int64_t kPoll = 100'000'000;

// How a rank's recorder was set up, and when it was asked.
struct Recorder {
  std::string backend = "nccl";
  std::string version = "2.10";
  std::size_t ring = 2000;
  bool timing = false;
  bool only_active = false;
  bool stacks = true;
  bool aborted = false;  // the watchdog has given up on what is pending
  std::int64_t timeout_ms = 600'000;
  std::int64_t asked_at = 0;
  std::int64_t clock_offset = 0;
  std::int64_t watchdog_ends = -1;  // it hangs along from then on

  bool gloo() const { return backend == "gloo"; }
};

class Dump {
 public:
  Dump(int rank, const Program& program, const std::vector<Kept>& kept,
       const Recorder& recorder)
      : rank_(rank), program_(program), kept_(kept), recorder_(recorder) {}

  std::string write() {
    const Value dump = make_.dict();
    make_.set_item(dump, "version", text(recorder_.version));
    make_.set_item(dump, "comm_lib_version",
                   text(recorder_.gloo() ? "" : "2.28.9"));
    const Value list = make_.list();
    std::int64_t count = 0;
    for (const Kept& one : kept_)
      count += shows(one) ? 1 : 0;
    const std::int64_t first = std::max<std::int64_t>(
        0, count - static_cast<std::int64_t>(recorder_.ring));
    std::int64_t id = 0;
    for (const Kept& one : kept_)
      if (shows(one) && id++ >= first)
        add(one, id - 1, list);
    make_.set_item(dump, "pg_config", groups());
    make_.set_item(dump, "pg_status", statuses());
    make_.set_item(dump, "entries", list);
    Result<std::string> written =
        write_pickle(dump, {.dialect = Dialect::kRecorder});
    return written ? *std::move(written) : "";
  }

 private:
  Value text(std::string_view value) { return make_.interned(value); }
  Value number(std::int64_t value) { return make_.integer(value); }

  bool shows(const Kept& one) const {
    return one.created <= recorder_.asked_at &&
           !(recorder_.gloo() && one.of_transfers);
  }
  // The next time after `when` at which the watchdog looks; nothing if it does
  // so no more before the dump.
  std::optional<std::int64_t> seen(std::int64_t when) const {
    const std::int64_t phase = rank_ * 17'919'137LL % kPoll;
    const std::int64_t poll = (when - phase + kPoll) / kPoll * kPoll + phase;
    const bool dead =
        recorder_.watchdog_ends >= 0 && poll > recorder_.watchdog_ends;
    return poll > recorder_.asked_at || dead ? std::nullopt
                                             : std::optional(poll);
  }
  std::int64_t local_id(int group) const {
    std::int64_t id = 0;
    for (int g = 0; g < group; ++g)
      id += std::ranges::binary_search(
                program_.groups[static_cast<std::size_t>(g)].members, rank_)
                ? 1
                : 0;
    return id;
  }

  void add(const Kept& one, std::int64_t id, Value list) {
    const Kept& judge = kept_[static_cast<std::size_t>(one.judge)];
    const bool judge_shown = judge.created <= recorder_.asked_at;
    bool completed = judge_shown && judge.completed != kNever &&
                     judge.completed <= recorder_.asked_at;
    bool started = recorder_.timing && judge_shown && judge.ready != kNever &&
                   judge.ready <= recorder_.asked_at;
    bool retired = false;
    std::int64_t end = 0;
    std::string_view state = "scheduled";
    if (recorder_.gloo()) {
      retired = completed;
    } else if (one.kind == EntryKind::kMember && one.of_transfers) {
      started = false;
    } else if (one.unlaunched ||
               (one.kind == EntryKind::kMember && !completed)) {
      state = "completed";  // events that were never recorded have passed
      end = recorder_.asked_at;
      completed = true;
    } else if (completed) {
      state = "completed";
      const std::optional<std::int64_t> noticed = seen(judge.completed);
      retired = noticed.has_value();
      end = noticed.value_or(recorder_.asked_at);
    } else {
      retired = recorder_.aborted;
      if (started)
        state = "started";
    }
    if (recorder_.only_active && completed)
      return;
    const CallSite& site = program_.sites[one.site];
    const Group& group = program_.groups[static_cast<std::size_t>(one.group)];
    const bool closing = one.kind == EntryKind::kClosing;
    std::string name = fmt::format("{}:{}", recorder_.backend, site.name);
    if (closing)
      name = recorder_.backend + ":coalesced";
    else if (one.of_transfers)
      name = fmt::format("{}:{} {}{}{}", recorder_.backend,
                         one.send ? "send" : "recv", group.position(rank_),
                         one.send ? "->" : "<-", group.position(one.peer));
    const bool p2p = one.of_transfers && !closing;
    const std::int64_t offset = kStart + recorder_.clock_offset;
    const auto time = [&](std::int64_t value) {
      return value == 0 ? Builder::none() : number(value + offset);
    };
    const Value made = make_.dict();
    if (recorder_.stacks)
      make_.set_item(made, "frames", stack(one.site));
    make_.set_item(made, "record_id", number(id));
    make_.set_item(made, "pg_id", number(local_id(one.group)));
    make_.set_item(made, "process_group",
                   make_.tuple({text(group.name), text(group.description)}));
    make_.set_item(made, "collective_seq_id", number(one.sequence));
    make_.set_item(made, "p2p_seq_id", number(one.p2p_sequence));
    make_.set_item(made, "op_id", number(one.operation_id));
    make_.set_item(made, "profiling_name", text(name));
    make_.set_item(made, "time_created_ns", number(one.created + offset));
    if (recorder_.timing && retired && judge.completed != kNever &&
        judge.completed <= recorder_.asked_at)
      make_.set_item(
          made, "duration_ms",
          make_.floating(static_cast<double>(judge.completed - judge.ready) /
                         1e6));
    const bool empty = closing && one.of_transfers;
    const auto sizes = [&](const std::vector<Tensor>& tensors, bool dtypes) {
      const Value all = make_.list();
      if (empty || closing)
        return all;
      for (const Tensor& tensor : tensors) {
        const bool none = tensor.shape == std::vector<std::int64_t>{0};
        if (dtypes) {
          make_.append(all, text(none ? "UNKNOWN_SCALAR" : tensor.dtype));
          continue;
        }
        const Value shape = make_.list();
        for (const std::int64_t size : tensor.shape)
          make_.append(shape, number(size));
        make_.append(all, shape);
      }
      return all;
    };
    make_.set_item(made, "input_sizes", sizes(site.inputs, false));
    make_.set_item(made, "input_dtypes", sizes(site.inputs, true));
    make_.set_item(made, "output_sizes", sizes(site.outputs, false));
    make_.set_item(made, "output_dtypes", sizes(site.outputs, true));
    make_.set_item(made, "state", text(state));
    make_.set_item(made, "time_discovered_started_ns",
                   time(started ? (end != 0 ? end : recorder_.asked_at) : 0));
    make_.set_item(made, "time_discovered_completed_ns",
                   time(recorder_.gloo() ? 0 : end));
    make_.set_item(made, "retired", Builder::boolean(retired));
    make_.set_item(made, "timeout_ms", number(recorder_.timeout_ms));
    make_.set_item(made, "is_p2p", Builder::boolean(p2p));
    make_.append(list, made);
  }

  Value stack(SiteId site) {
    const auto [found, is_new] = stacks_.try_emplace(site);
    if (is_new)
      for (const SourceLine& line : program_.sites[site].stack) {
        const Value frame = make_.dict();
        make_.set_item(frame, "name", text(line.function));
        make_.set_item(frame, "filename", text(line.file));
        make_.set_item(frame, "line", number(line.line));
        found->second.push_back(frame);
      }
    return make_.list(found->second);
  }

  bool uses(int group) const {
    return std::ranges::any_of(kept_, [&](const Kept& one) {
      return one.group == group && one.created <= recorder_.asked_at;
    });
  }

  Value groups() {
    const Value made = make_.dict();
    if (recorder_.gloo()) {
      const Value one = make_.dict();
      make_.set_item(one, "name", text(""));
      make_.set_item(one, "desc", text(""));
      make_.set_item(one, "ranks", text("[]"));
      make_.set_item(made, text(""), one);
      return made;
    }
    for (std::size_t g = 0; g < program_.groups.size(); ++g) {
      const Group& group = program_.groups[g];
      if (!std::ranges::binary_search(group.members, rank_) ||
          !uses(static_cast<int>(g)))
        continue;
      const Value one = make_.dict();
      make_.set_item(one, "name", text(group.name));
      make_.set_item(one, "desc", text(group.description));
      make_.set_item(one, "ranks",
                     text(fmt::format("[{}]", fmt::join(group.members, ", "))));
      make_.set_item(made, text(group.name), one);
    }
    return made;
  }

  Value statuses() {
    struct Status {
      std::int64_t enqueued = -1;
      std::int64_t started = -1;
      std::int64_t completed = -1;
    };
    std::map<int, Status> all;
    for (const Kept& one : kept_) {
      if (one.created > recorder_.asked_at || one.unlaunched ||
          one.kind == EntryKind::kMember)
        continue;
      Status& status = all[one.group];
      const std::int64_t number =
          one.of_transfers ? one.p2p_sequence : one.sequence;
      status.enqueued = number;
      if (recorder_.timing && one.ready != kNever &&
          one.ready <= recorder_.asked_at)
        status.started = number;
      if (one.completed != kNever && seen(one.completed))
        status.completed = number;
    }
    const Value made = make_.dict();
    for (const auto& [group, status] : all) {
      const Value one = make_.dict();
      make_.set_item(one, "last_enqueued_collective", number(status.enqueued));
      make_.set_item(one, "last_started_collective", number(status.started));
      make_.set_item(one, "last_completed_collective",
                     number(status.completed));
      make_.set_item(made, text(fmt::format("{}", local_id(group))), one);
    }
    return made;
  }

  const int rank_;
  const Program& program_;
  const std::vector<Kept>& kept_;
  const Recorder& recorder_;
  Builder make_;
  std::unordered_map<SiteId, std::vector<Value>> stacks_;
};

// How the job was run and dumped.
struct Setting {
  bool moving = false;
  ProgramOptions program;
  RunOptions run;
  Recorder recorder;
  bool wraps = false;
  std::int64_t window_ns = 0;  // between the first dump and the last
  std::int64_t hangs_for_ns = 0;
  std::int64_t skew_ns = 0;
  int ranks_per_node = 4;
  int early = 0;    // innocent ranks that dumped before the hang
  int missing = 0;  // dumps
};

Setting draw_setting(Layout layout, bool moving, bool held, Random& random) {
  Setting drawn;
  drawn.moving = moving;
  ProgramOptions& program = drawn.program;
  program.layout = layout;
  constexpr int kWorlds[] = {8, 8, 12, 16, 16, 24, 32, 64, 128};
  program.world = kWorlds[random.below(std::size(kWorlds))];
  if (held && random.chance(6))
    program.world = random.chance(50) ? 512 : 1024;
  const bool large = program.world > 64;
  program.steps = static_cast<int>(random.between(5, large ? 7 : 16));
  program.layers = static_cast<int>(random.between(2, large ? 2 : 5));
  program.microbatches = static_cast<int>(random.between(2, large ? 3 : 6));
  // From a toy to layers that take a second.
  constexpr std::int64_t kPaces[] = {300'000,    2'000'000,   10'000'000,
                                     40'000'000, 150'000'000, 600'000'000};
  program.compute_ns = kPaces[random.below(std::size(kPaces))];
  program.compute_ns += random.between(0, program.compute_ns * (held ? 4 : 1));
  if (random.chance(30))
    program.load_ns = program.compute_ns * random.between(1, held ? 12 : 5);
  program.uneven =
      random.chance(50) ? 0 : static_cast<int>(random.between(10, 120));
  program.sync_often = random.chance(30);
  program.seed = random.next() >> 8;
  drawn.run.blocking = layout == Layout::kGloo;
  drawn.run.eager = random.chance(40);
  drawn.run.transfer_ns = random.between(50'000, 3'000'000);
  drawn.run.seed = random.next() >> 8;
  Recorder& recorder = drawn.recorder;
  recorder.backend = layout == Layout::kGloo ? "gloo" : "nccl";
  recorder.timing = layout != Layout::kGloo && random.chance(40);
  recorder.only_active = layout != Layout::kGloo && random.chance(8);
  recorder.stacks = random.chance(70);
  drawn.wraps = random.chance(20);
  constexpr std::int64_t kTimeouts[] = {120'000, 600'000, 1'800'000};
  recorder.timeout_ms = kTimeouts[random.below(std::size(kTimeouts))];
  constexpr std::int64_t kWindows[] = {2, 30, 300, 2'000, 10'000, 30'000};
  drawn.window_ns = kWindows[random.below(std::size(kWindows))] * 1'000'000;
  // By the watchdog, or by somebody who has waited for a while.
  drawn.hangs_for_ns = random.chance(60)
                           ? recorder.timeout_ms * 1'000'000
                           : random.between(30, 300) * 1'000'000'000;
  recorder.aborted = !moving && random.chance(15);
  if (random.chance(25))
    drawn.skew_ns = random.between(1, held ? 20'000 : 5'000) * 1'000'000;
  if (!moving && random.chance(15))
    drawn.early =
        static_cast<int>(random.between(1, std::max(1, program.world / 6)));
  if (random.chance(10))
    drawn.missing = static_cast<int>(random.between(1, 2));
  return drawn;
}

class Photographer {
 public:
  Photographer(std::size_t index, Setting setting, const Program& program,
               const Plan& plan, const Ran& ran, Random& random)
      : index_(index),
        setting_(std::move(setting)),
        program_(program),
        plan_(plan),
        ran_(ran),
        random_(random) {}

  void shoot(Snapshot& into) {
    if (setting_.wraps) {
      std::size_t most = 0;
      for (int rank = 0; rank < program_.world(); ++rank)
        most = std::max(most, ran_.kept[static_cast<std::size_t>(rank)].size());
      setting_.recorder.ring = std::max<std::size_t>(
          12, most * static_cast<std::size_t>(random_.between(20, 60)) / 100);
    }
    std::set<int> taken(plan_.involved.begin(), plan_.involved.end());
    taken.insert(plan_.truth.culprits.begin(), plan_.truth.culprits.end());
    for (const Answer& other : plan_.truth.also)
      taken.insert(other.culprits.begin(), other.culprits.end());
    const auto pick = [&](int count) {
      std::set<int> picked;
      for (int attempt = 0;
           attempt < 50 && static_cast<int>(picked.size()) < count; ++attempt) {
        const int rank = static_cast<int>(random_.below(program_.ranks.size()));
        if (taken.insert(rank).second)
          picked.insert(rank);
      }
      return picked;
    };
    const std::set<int> missing = pick(setting_.missing);
    const std::set<int> early = pick(setting_.early);
    const std::int64_t begin =
        setting_.moving
            ? random_.between(ran_.end / 3,
                              std::max(ran_.end / 3,
                                       ran_.end * 9 / 10 - setting_.window_ns))
            : ran_.end + setting_.hangs_for_ns;
    const std::int64_t window = setting_.moving
                                    ? std::min(setting_.window_ns, ran_.end / 2)
                                    : setting_.window_ns;
    std::map<int, std::int64_t> offsets;
    for (int rank = 0; rank < program_.world(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      Recorder recorder = setting_.recorder;
      recorder.asked_at = begin + random_.between(0, window);
      const bool hit = std::ranges::count(plan_.early, rank) > 0 &&
                       ran_.struck[at] != kNever;
      if (hit)
        recorder.asked_at =
            ran_.struck[at] + random_.between(1, 40) * 1'000'000;
      else if (early.contains(rank))
        recorder.asked_at = random_.between(ran_.end / 3, ran_.end);
      if (hit || early.contains(rank))
        recorder.aborted = false;
      const int node = rank / setting_.ranks_per_node;
      const auto [offset, is_new] = offsets.try_emplace(node, 0);
      if (is_new)
        offset->second =
            random_.between(-setting_.skew_ns, setting_.skew_ns) / 2;
      recorder.clock_offset = offset->second;
      if (std::ranges::count(plan_.no_dump, rank) > 0 || missing.contains(rank))
        continue;
      into.dumps[rank] = Dump(rank, program_, ran_.kept[at], recorder).write();
    }
    into.truth = plan_.truth;
    into.truth.no_dump = plan_.no_dump;
    into.truth.no_dump.insert(into.truth.no_dump.end(), missing.begin(),
                              missing.end());
    into.truth.doubtful.assign(missing.begin(), missing.end());
  }

 private:
  const std::size_t index_;
  Setting setting_;
  const Program& program_;
  const Plan& plan_;
  const Ran& ran_;
  Random& random_;
};

// Of several faults, those count that happened before the job stood still. A
// rank that stopped while it waited itself is a right answer, not the only one.
bool strike(const Ran& ran, Plan& plan) {
  const auto struck = [&](int rank) {
    return ran.struck[static_cast<std::size_t>(rank)] != kNever;
  };
  Truth& truth = plan.truth;
  if (truth.culprits.size() > 1 && truth.kind == "never_joined") {
    std::vector<int> all;
    std::vector<int> first;
    for (const int rank : truth.culprits)
      if (struck(rank)) {
        all.push_back(rank);
        if (ran.open[static_cast<std::size_t>(rank)] == 0)
          first.push_back(rank);
      }
    if (first.empty())
      return false;
    truth.culprits = first;
    truth.also.push_back({truth.kind, all});
  }
  if (truth.culprits.size() > 1 && truth.kind == "device_stalled")
    std::erase_if(truth.culprits, [&](int rank) { return !struck(rank); });
  std::erase_if(truth.also, [&](const Answer& other) {
    return other.kind == "device_stalled" && !struck(other.culprits[0]);
  });
  if (truth.kind == "never_joined" && truth.culprits.size() == 1 &&
      !struck(truth.culprits[0]) && !truth.also.empty()) {
    truth.kind = truth.also[0].kind;
    truth.culprits = truth.also[0].culprits;
    truth.also.clear();
  }
  return true;
}

}  // namespace

Result<> Snapshot::write(const std::filesystem::path& folder) const {
  for (const auto& [rank, bytes] : dumps) {
    std::ofstream file(folder / fmt::format("nccl_trace_rank_{}", rank),
                       std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.good())
      return fail(ErrorKind::kIo, "{}: can't be written", folder.string());
  }
  return {};
}

namespace {

// A watchdog lets nothing last longer than its time-out.
std::int64_t longest_ms(const Ran& ran) {
  std::int64_t longest = 0;
  for (const std::vector<Kept>& kept : ran.kept)
    for (const Kept& one : kept)
      if (one.completed != kNever)
        longest = std::max(longest, one.completed - one.created);
  return longest / 1'000'000;
}

bool is_doubtful(const Setting& setting, const Ran& ran) {
  if (setting.moving)
    return setting.skew_ns > 0 &&
           (setting.recorder.gloo() || setting.run.late_ns < 3 * kPoll);
  if (setting.recorder.timing || setting.recorder.aborted)
    return false;
  // Whether its ranks used to be without a sign of life at most moments.
  std::int64_t ended = 0;
  for (const std::vector<Kept>& kept : ran.kept)
    ended += std::ranges::count_if(
        kept, [](const Kept& one) { return one.completed != kNever; });
  const auto ranks = static_cast<std::int64_t>(ran.kept.size());
  return setting.recorder.only_active || setting.recorder.gloo() ||
         ran.end * ranks > ended * kPoll / 2;
}

}  // namespace

Snapshot make_snapshot(std::size_t index) {
  Random random(0xc1a5e * (index + 1));
  const bool held = is_held_back(index);
  while (true) {
    Snapshot made;
    // Half of the jobs have no fault and move.
    made.moving = index % 2 == 0;
    made.layout = static_cast<Layout>(random.below(kLayouts));
    made.trouble = Trouble::kNone;
    if (made.moving && random.chance(25))
      made.trouble =
          random.chance(50) ? Trouble::kSlowLink : Trouble::kStraggler;
    if (!made.moving)
      made.trouble = static_cast<Trouble>(3 + random.below(kTroubles - 3));
    Setting setting = draw_setting(made.layout, made.moving, held, random);
    if (made.trouble == Trouble::kStraggler) {
      setting.program.load_ns =
          std::max<std::int64_t>(setting.program.load_ns, 1'000'000);
      setting.recorder.only_active = setting.wraps = false;
      setting.program.steps = 16;
    }
    Program program = make_program(setting.program);
    std::optional<Plan> plan =
        make_trouble(made.trouble, setting.recorder.timing, program, random);
    const bool gloo = made.layout == Layout::kGloo;
    if (!plan ||
        (gloo && !made.moving && made.trouble != Trouble::kHostStops &&
         made.trouble != Trouble::kKilled &&
         made.trouble != Trouble::kSeveralStop &&
         made.trouble != Trouble::kType && made.trouble != Trouble::kNodeStops))
      continue;
    setting.run.differing = plan->differing;
    setting.run.slow_group = plan->slow_group;
    setting.run.slow_ns = setting.program.compute_ns * random.between(2, 8);
    setting.run.late_rank = plan->late_rank;
    // Of its step, from an eighth to twice as long.
    setting.run.late_ns =
        std::max(setting.program.compute_ns * setting.program.layers *
                     random.between(2, 20) / 8,
                 random.between(20, 90) * 1'000'000);
    Ran ran = run_program(program, setting.run);
    if (ran.cut || ran.hung != !made.moving || !strike(ran, *plan))
      continue;
    if (longest_ms(ran) * 5 / 4 > setting.recorder.timeout_ms)
      continue;
    // The call that was never launched reads completed, and is not listed.
    if (setting.recorder.only_active &&
        made.trouble == Trouble::kTypeUnlaunched)
      plan->truth.accept.push_back("never_joined");
    made.world = program.world();
    made.doubtful = is_doubtful(setting, ran);
    made.what = made.moving ? std::string(trouble_name(made.trouble)) : "hang";
    const bool calm = plan->truth.culprits.empty();
    Photographer(index, setting, program, *plan, ran, random).shoot(made);
    if (made.moving && calm) {
      made.truth.kind = "in_progress";
      made.truth.accept = {"inconclusive", "healthy"};
    }
    made.name = fmt::format(
        "{} {} {}, {} ranks, {:.1f} ms layers, window {} ms{}{}{}{}{}{}{}{}{}",
        made.moving ? "moving" : "hang", layout_name(made.layout),
        trouble_name(made.trouble), made.world,
        static_cast<double>(setting.program.compute_ns) / 1e6,
        setting.window_ns / 1'000'000,
        setting.recorder.timing ? ", timing" : "",
        setting.recorder.only_active ? ", only_active" : "",
        setting.wraps ? ", wraps" : "", setting.skew_ns > 0 ? ", skew" : "",
        setting.early > 0 ? ", early" : "",
        setting.missing > 0 ? ", missing" : "",
        setting.recorder.aborted ? ", aborted" : "",
        setting.program.uneven > 0 ? ", uneven" : "",
        setting.run.eager ? ", eager" : "");
    made.timeout_ms = setting.recorder.timeout_ms;
    made.program = std::move(program);
    made.plan = *std::move(plan);
    made.ran = std::move(ran);
    return made;
  }
}

}  // namespace postflight::synthetic::cluster
