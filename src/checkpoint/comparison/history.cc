#include "checkpoint/comparison/history.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>

#include <sys/stat.h>

#include "base/ascii.h"
#include "checkpoint/comparison/health.h"
#include "checkpoint/folder.h"
#include "checkpoint/key_filter.h"
#include "checkpoint/tensor/storage_reader.h"
#include "checkpoint/verification/verification.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

// "step" and "iter" name the number that counts.
std::optional<std::int64_t> step_in(std::string_view name) {
  std::optional<std::int64_t> last;
  for (std::size_t i = 0; i < name.size();) {
    if (!is_digit(name[i])) {
      ++i;
      continue;
    }
    std::int64_t number = 0;
    const auto read =
        std::from_chars(name.data() + i, name.data() + name.size(), number);
    if (read.ec == std::errc()) {
      std::string before(name.substr(0, i));
      while (!before.empty() && (before.back() == '_' || before.back() == '-' ||
                                 before.back() == '='))
        before.pop_back();
      if (before.ends_with("step") || before.ends_with("iter"))
        return number;
      last = number;
    }
    i = static_cast<std::size_t>(read.ptr - name.data());
  }
  return last;
}

bool is_checkpoint_file(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".pt" || extension == ".pth" || extension == ".ckpt" ||
         extension == ".safetensors" || extension == ".bin" ||
         extension == ".tar";
}

// A folder that could be one step's: it has the files of a checkpoint, or one
// folder that has them.
std::optional<fs::path> checkpoint_in(const fs::path& folder, int depth = 0) {
  const Result<FolderListing> listing = list_folder(folder);
  if (!listing)
    return std::nullopt;
  if (!listing->ranks.empty() || !listing->other_ranks.empty() ||
      !listing->metadata.empty() || !listing->indexes.empty() ||
      !listing->safetensors.empty() || listing->universal)
    return folder;
  std::optional<fs::path> only;
  std::error_code error;
  for (fs::directory_iterator it(folder, error);
       !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code none;
    const std::string name = it->path().filename().string();
    if (name.ends_with(".distcp"))  // its metadata is missing
      return folder;
    if (it->is_regular_file(none) &&
        (name == "pytorch_model.bin" || name == "model.pt" ||
         name == "model.pth"))
      return it->path();
    if (!it->is_directory(none) || depth > 0)
      continue;
    if (auto inner = checkpoint_in(it->path(), depth + 1)) {
      if (only)
        return folder;
      only = std::move(inner);
    }
  }
  return only;
}

void measure(RunStep& step) {
  const auto add = [&step](const fs::path& file) {
    struct stat status;
    if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      return;
    step.bytes += static_cast<std::uint64_t>(status.st_size);
    step.written = std::max<std::int64_t>(step.written, status.st_mtime);
  };
  std::error_code error;
  if (!fs::is_directory(step.path, error)) {
    add(step.path);
    return;
  }
  constexpr int kMostFiles = 1'000'000;
  int count = 0;
  for (fs::recursive_directory_iterator it(step.path, error);
       !error && it != fs::recursive_directory_iterator() &&
       count++ < kMostFiles;
       it.increment(error))
    add(it->path());
}

}  // namespace

Result<std::vector<RunStep>> list_run(const fs::path& folder) {
  std::vector<RunStep> steps;
  std::error_code error;
  fs::directory_iterator it(folder, error);
  if (error)
    return fail(ErrorKind::kIo, "cannot read folder {}: {}", folder.string(),
                error.message());
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const fs::path& path = it->path();
    const std::string name = path.filename().string();
    std::error_code none;
    const bool is_folder = it->is_directory(none);
    const std::optional<std::int64_t> step =
        step_in(is_folder ? name : path.stem().string());
    if (!step || name.starts_with('.'))
      continue;
    std::optional<fs::path> found;
    if (is_folder)
      found = checkpoint_in(path);
    else if (is_checkpoint_file(path))
      found = path;
    if (found)
      steps.push_back({*step, *found});
  }
  std::ranges::sort(steps, {}, [](const RunStep& step) {
    return std::pair(step.step, step.path);
  });
  for (RunStep& step : steps)
    measure(step);
  return steps;
}

std::optional<std::string> stated_latest(const fs::path& folder) {
  for (const std::string_view name :
       {"latest_checkpointed_iteration.txt", "latest"}) {
    std::ifstream file(folder / name);
    std::string text;
    constexpr std::size_t kMost = 200;
    if (file && std::getline(file, text) && !text.empty() &&
        text.size() < kMost)
      return text;
  }
  return std::nullopt;
}

StepState state_of(const RunStep& step, const Context& context, bool deep) {
  StepState state;
  const Result<Checkpoint> checkpoint =
      Checkpoint::open(step.path, {.context = context});
  if (!checkpoint) {
    state.problem = checkpoint.error().message();
    return state;
  }
  state.problem = checkpoint->truncation();
  for (const Finding& finding : checkpoint->findings())
    if (finding.severity == Severity::kError && state.problem.empty())
      state.problem = finding.message;
  std::vector<std::uint32_t> nodes;
  const auto count = static_cast<std::uint32_t>(checkpoint->nodes().size());
  for (std::uint32_t node = 0; node < count; ++node) {
    const Tensor* const tensor = checkpoint->tensor_at(node);
    if (tensor == nullptr)
      continue;
    ++state.tensors;
    if (!tensor->problem.empty() && state.problem.empty())
      state.problem =
          fmt::format("{}: {}", checkpoint->path_of(node), tensor->problem);
    if (tensor->readable())
      nodes.push_back(node);
  }
  if (state.tensors == 0 && state.problem.empty())
    state.problem = "it has no tensors";
  if (deep && state.problem.empty()) {
    const Verification found = verify(*checkpoint);
    for (const Finding& finding : found.findings)
      if (finding.severity == Severity::kError && state.problem.empty())
        state.problem = fmt::format("{} ({})", finding.message, finding.where);
    if (state.problem.empty()) {
      const Result<CheckpointHealth> health = examine(*checkpoint, nodes);
      if (!health)
        state.problem = health.error().message();
      else
        for (const Finding& finding : health->findings)
          if (finding.severity == Severity::kError && state.problem.empty())
            state.problem =
                fmt::format("{}: {}", finding.where, finding.message);
    }
  }
  state.whole = state.problem.empty();
  return state;
}

}  // namespace postflight
