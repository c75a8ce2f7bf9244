#include "checkpoint/reader.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <tuple>

#include "base/log.h"
#include "checkpoint/model/contents.h"
#include "checkpoint/tensor/reader.h"
#include "pickle/repr.h"

namespace postflight {
namespace {

// Equal for tensors that are the same view of the same storage.
auto view_of(const Tensor& tensor) {
  return std::tuple(
      tensor.storage, tensor.offset,
      std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()),
      std::vector<std::int64_t>(tensor.stride.begin(), tensor.stride.end()),
      tensor.conjugated, tensor.negated);
}

// As Python prints a list of strings.
std::string python_list(std::span<const std::string> texts) {
  std::string all = "[";
  for (const std::string& text : texts)
    all += (all.size() > 1 ? ", " : "") + repr_string(text);
  return all + "]";
}

}  // namespace

Result<ReadPlan> CheckpointReader::plan(const ReadRequest& request) const {
  ReadPlan plan;
  const auto add = [&](std::uint32_t node, std::span<std::byte> into) {
    PlannedTensor planned{
        .node = node, .whole = checkpoint_.tensor_at(node), .into = into};
    planned.device = request.map_location(planned.whole->device);
    // A part of a tensor may be intact though the whole is not.
    const bool lost = planned.has_bytes() && !planned.whole->problem.empty() &&
                      !(planned.whole->in_part && !request.slice.empty());
    if (lost && request.skip_unreadable)
      plan.unreadable.push_back(node);
    else
      plan.tensors.push_back(std::move(planned));
  };
  if (request.wanted != nullptr) {
    plan.selection = TRY(select(checkpoint_, 0, *request.wanted));
    for (const Selection::Chosen& chosen : plan.selection.tensors)
      add(chosen.node, chosen.wanted != nullptr ? chosen.wanted->into
                                                : std::span<std::byte>());
    plan.values = plan.selection.values;
  } else {
    for (const std::uint32_t node :
         TRY(select_nodes(checkpoint_, request.filter, NodeKinds::kAll))) {
      const Node& at = checkpoint_.nodes()[node];
      if (at.kind == NodeKind::kTensor)
        add(node, {});
      else if (at.children == 0)
        plan.values.push_back(node);
    }
  }
  if (!plan.unreadable.empty() &&
      std::ranges::none_of(plan.tensors, &PlannedTensor::has_bytes))
    return fail(ErrorKind::kCorrupt,
                "none of its tensors can be read; the first, {}: {}",
                checkpoint_.path_of(plan.unreadable[0]),
                checkpoint_.tensor_at(plan.unreadable[0])->problem);
  if (!request.slice.empty())
    TRY(slice_tensors(request.slice, plan));
  return plan;
}

Result<> CheckpointReader::slice_tensors(std::string_view slice,
                                         ReadPlan& plan) const {
  for (PlannedTensor& planned : plan.tensors) {
    if (!planned.has_bytes())
      continue;
    // Shape and strides are only checked for a tensor without a problem.
    if (!planned.whole->problem.empty() && !planned.whole->in_part)
      TRY(check(planned));
    const std::vector<SliceRange> ranges =
        TRY(parse_slice(slice, planned.whole->shape)
                .in(checkpoint_.path_of(planned.node)));
    planned.slice = slice_tensor(*planned.whole, ranges);
  }
  return {};
}

Result<> CheckpointReader::check(const PlannedTensor& planned) const {
  if (planned.tensor().problem.empty())
    return {};
  return fail(ErrorKind::kCorrupt, "{}: {}", checkpoint_.path_of(planned.node),
              planned.tensor().problem);
}

Result<ReadTensors> CheckpointReader::read(const ReadPlan& plan) const {
  ReadTensors read;
  // One buffer for each view of a storage, so that tied tensors stay tied.
  std::map<decltype(view_of(Tensor())), std::size_t> buffers;
  ReadBudget budget(checkpoint_);
  std::vector<TensorTarget> targets;
  for (const PlannedTensor& planned : plan.tensors) {
    const Tensor& tensor = planned.tensor();
    ReadTensor& made =
        read.tensors.emplace_back(ReadTensor{planned.node, planned.device, {}});
    if (!planned.has_bytes() || planned.device == "meta")
      continue;
    TRY(check(planned));
    if (!planned.into.empty()) {
      if (planned.into.size() != tensor.bytes())
        return fail(ErrorKind::kUsage,
                    "{}: room for {} bytes was given for a tensor of {}",
                    checkpoint_.path_of(planned.node), planned.into.size(),
                    tensor.bytes());
      made.bytes = planned.into;
      targets.push_back({&tensor, planned.into});
      continue;
    }
    const auto [at, fresh] =
        buffers.try_emplace(view_of(tensor), read.owned.size());
    if (fresh) {
      if (Result<> allowed = budget.take(tensor); !allowed)
        return tl::unexpected(
            std::move(allowed.error()).in(checkpoint_.path_of(planned.node)));
      read.owned.emplace_back(tensor.bytes());
      targets.push_back({&tensor, read.owned.back()});
    }
    made.bytes = read.owned[at->second];
  }
  TRY(TensorReader(checkpoint_, options_).read_all(targets));
  return read;
}

Result<> CheckpointReader::write(const ReadPlan& plan, ExportFormat format,
                                 const ExportSink& sink) const {
  ReadBudget budget(checkpoint_);
  std::vector<NamedTensor> tensors;
  for (const PlannedTensor& planned : plan.tensors) {
    if (!planned.has_bytes())
      continue;
    TRY(check(planned));
    if (Result<> allowed = budget.take(planned.tensor()); !allowed)
      return std::move(allowed).in(checkpoint_.path_of(planned.node));
    tensors.push_back(
        {plain_path(checkpoint_, planned.node), &planned.tensor()});
  }
  return export_tensors(TensorReader(checkpoint_, options_), format, tensors,
                        sink);
}

Result<ReadOutcome> read_rank(const std::filesystem::path& folder,
                              std::uint32_t rank, const ReadRequest& request,
                              const Context& context) {
  const auto say = [&context](LogLevel level, const std::string& message) {
    if (context.log != nullptr)
      context.log->write(level, "checkpoint", "{}", message);
  };
  say(LogLevel::kDebug, fmt::format("Reading checkpoint from {} for rank {}",
                                    folder.string(), rank));
  const std::filesystem::path file = folder / rank_file_name(rank);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    const std::string message =
        fmt::format("Checkpoint file not found at {}", file.string());
    say(LogLevel::kError, message);
    return fail(ErrorKind::kIo, "{}", message);
  }
  ReadOutcome outcome;
  outcome.checkpoint = std::make_unique<Checkpoint>(
      TRY(Checkpoint::open(file, {.context = context})));
  const CheckpointReader reader(*outcome.checkpoint);
  // Without a template everything is wanted, values too.
  const Template everything;
  ReadPlan plan = TRY(reader.plan(
      {.wanted = request.wanted != nullptr ? request.wanted : &everything,
       .slice = request.slice,
       .map_location = request.map_location}));
  ReadTensors read = TRY(reader.read(plan));
  outcome.tensors = std::move(read.tensors);
  outcome.owned = std::move(read.owned);
  outcome.unexpected = plan.selection.unexpected(
      *outcome.checkpoint, plan.selection.unexpected_count());
  outcome.values = std::move(plan.values);
  outcome.missing = std::move(plan.selection.missing);
  if (!outcome.missing.empty())
    say(LogLevel::kWarning, missing_warning(outcome.missing));
  say(LogLevel::kDebug,
      fmt::format("Successfully read checkpoint file from {}", file.string()));
  return outcome;
}

std::string missing_warning(std::span<const std::string> missing) {
  constexpr std::size_t kShown = 10;
  std::string text =
      fmt::format("Missing {} keys from checkpoint: {}", missing.size(),
                  python_list(missing.first(std::min(missing.size(), kShown))));
  if (missing.size() > kShown)
    text += fmt::format("... (and {} more)", missing.size() - kShown);
  return text;
}

}  // namespace postflight
