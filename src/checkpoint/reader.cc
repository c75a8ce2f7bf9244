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

constexpr std::string_view kChannel = "checkpoint";

// As Python prints a list of texts.
std::string python_list(std::span<const std::string> texts) {
  std::string all = "[";
  for (const std::string& text : texts)
    all += (all.size() > 1 ? ", " : "") + repr_string(text);
  return all + "]";
}

}  // namespace

std::string missing_warning(std::span<const std::string> missing) {
  constexpr std::size_t kShown = 10;
  std::string text =
      fmt::format("Missing {} keys from checkpoint: {}", missing.size(),
                  python_list(missing.first(std::min(missing.size(), kShown))));
  if (missing.size() > kShown)
    text += fmt::format("... (and {} more)", missing.size() - kShown);
  return text;
}

Result<ReadOutcome> CheckpointReader::read(
    const std::filesystem::path& folder, const Template* wanted,
    const MapLocation& map_location) const {
  if (context_.log != nullptr)
    context_.log->write(LogLevel::kDebug, kChannel,
                        "Reading checkpoint from {} for rank {}",
                        folder.string(), rank_);
  const std::filesystem::path file = folder / rank_file_name(rank_);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    if (context_.log != nullptr)
      context_.log->write(LogLevel::kError, kChannel,
                          "Checkpoint file not found at {}", file.string());
    return fail(ErrorKind::kIo, "Checkpoint file not found at {}",
                file.string());
  }
  ReadOutcome outcome;
  outcome.checkpoint = std::make_unique<Checkpoint>(
      TRY(Checkpoint::open(file, {.context = context_})));
  const Checkpoint& checkpoint = *outcome.checkpoint;
  const Template everything;
  Selection selection =
      TRY(select(checkpoint, 0, wanted != nullptr ? *wanted : everything));

  // One buffer for each view of a storage, so that what was tied stays tied.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::vector<std::int64_t>,
                      std::vector<std::int64_t>, bool, bool>,
           std::size_t>
      buffers;
  ReadBudget budget(checkpoint);
  std::vector<TensorTarget> targets;
  for (const Selection::Chosen& chosen : selection.tensors) {
    const Tensor& tensor =
        *checkpoint.tensor_at(checkpoint.nodes()[chosen.node]);
    ReadTensor read{chosen.node, map_location(tensor.device), {}};
    if (tensor.has_parts() || tensor.storage == kNoIndex ||
        read.device == "meta") {
      outcome.tensors.push_back(std::move(read));
      continue;
    }
    if (!tensor.problem.empty())
      return fail(ErrorKind::kCorrupt, "{}: {}",
                  checkpoint.path_of(chosen.node), tensor.problem);
    std::span<std::byte> to;
    if (chosen.wanted != nullptr && !chosen.wanted->into.empty()) {
      to = chosen.wanted->into;
      if (to.size() != tensor.bytes())
        return fail(ErrorKind::kUsage,
                    "{}: room for {} bytes was given for a tensor of {}",
                    checkpoint.path_of(chosen.node), to.size(), tensor.bytes());
      targets.push_back({&tensor, to});
    } else {
      const auto [at, fresh] = buffers.try_emplace(
          {tensor.storage, tensor.offset,
           std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()),
           std::vector<std::int64_t>(tensor.stride.begin(),
                                     tensor.stride.end()),
           tensor.conjugated, tensor.negated},
          outcome.owned.size());
      if (fresh) {
        TRY(budget.take(tensor).in(checkpoint.path_of(chosen.node)));
        outcome.owned.emplace_back(tensor.bytes());
        targets.push_back({&tensor, outcome.owned.back()});
      }
      to = outcome.owned[at->second];
    }
    read.bytes = to;
    outcome.tensors.push_back(std::move(read));
  }
  TRY(TensorReader(checkpoint).read_all(targets));
  outcome.values = std::move(selection.values);
  outcome.missing = std::move(selection.missing);
  outcome.unexpected =
      selection.unexpected(checkpoint, selection.unexpected_count());
  if (context_.log != nullptr && !outcome.missing.empty())
    context_.log->write(LogLevel::kWarning, kChannel, "{}",
                        missing_warning(outcome.missing));
  if (context_.log != nullptr)
    context_.log->write(LogLevel::kDebug, kChannel,
                        "Successfully read checkpoint file from {}",
                        file.string());
  return outcome;
}

}  // namespace postflight
