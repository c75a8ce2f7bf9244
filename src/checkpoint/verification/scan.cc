#include "checkpoint/verification/scan.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/file.h"
#include "base/worker_pool.h"
#include "checkpoint/model/checkpoint.h"
#include "checkpoint/torch/pickle_file.h"
#include "checkpoint/verification/safety.h"
#include "json/json_value.h"
#include "pickle/builder.h"

namespace postflight {
namespace {

namespace fs = std::filesystem;

// Endings of files that loaders of checkpoints would open: one that is of no
// known format is suspicious, while a README is not.
bool is_loadable_name(const fs::path& path) {
  const std::string extension = path.extension().string();
  constexpr std::string_view kEndings[] = {
      ".pt",  ".pth", ".bin",    ".ckpt", ".pkl",         ".pickle",
      ".p",   ".npy", ".npz",    ".t7",   ".safetensors", ".distcp",
      ".pt2", ".ptc", ".joblib", ".dat",  ".model",       ".metadata"};
  return std::ranges::find(kEndings, extension) != std::end(kEndings) ||
         path.filename() == ".metadata";
}

// Which transforms the items of a distributed checkpoint went through is known
// to its metadata only.
std::string encoded_items(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return fmt::format(
      "its items are encoded or damaged; decode and audit them with postflight "
      "ckpt verify {}",
      shell_quoted(folder.empty() ? "." : folder.native()));
}

ScannedFile scan_one(const fs::path& path, const ScanPolicy& policy,
                     const Limits& limits) {
  ScannedFile scanned{path};
  const Result<MappedFile> bytes = MappedFile::open(path, limits);
  if (!bytes) {
    scanned.error = bytes.error().message();
    return scanned;
  }
  scanned.bytes = bytes->bytes().size();
  Result<PickleFile> file = PickleFile::read(bytes->bytes(), limits);
  if (!file) {
    if (is_loadable_name(path) && scanned.bytes > 0) {
      scanned.verdict.emplace();
      scanned.verdict->add({Safety::kUnknown, "unknown_format",
                            path.extension() == ".distcp"
                                ? encoded_items(path)
                                : std::string(file.error().message()),
                            ""});
    }
    return scanned;
  }
  const auto allow = [&policy](auto& uses, auto name_of) {
    for (auto& use : uses)
      if (use.trust > Trust::kTorch && use.trust != Trust::kDangerous &&
          policy.allows(name_of(use)))
        use.trust = Trust::kTorch;
  };
  for (LoadedPickle& pickle : file->pickles) {
    allow(pickle.audit.globals,
          [](const GlobalUse& use) { return use.module + "." + use.name; });
    allow(pickle.audit.calls, [](const CallUse& use) { return use.callable; });
  }
  scanned.verdict = file->verdict();
  if (path.filename() == ".metadata")
    if (const Result<Checkpoint> checkpoint =
            Checkpoint::open(path.parent_path(), {.context = {.threads = 1}}))
      scanned.verdict->merge(safety_of_items(*checkpoint));
  return scanned;
}

}  // namespace

bool ScanPolicy::allows(std::string_view name) const {
  return std::ranges::any_of(allowed, [name](std::string_view one) {
    return one.ends_with(".*") ? name.starts_with(one.substr(0, one.size() - 1))
                               : name == one;
  });
}

Result<ScanPolicy> read_policy(Bytes json) {
  Builder builder;
  const Value root = TRY(parse_json(json, builder).in("the policy"));
  const Value* const allow =
      root.is(Kind::kDict) ? root.find("allow") : nullptr;
  if (allow == nullptr || !allow->is(Kind::kList))
    return fail(ErrorKind::kUsage,
                "the policy has no list of names; write {{\"allow\": "
                "[\"module.name\", \"module.*\"]}}");
  ScanPolicy policy;
  for (const Value& name : allow->items()) {
    if (!name.is(Kind::kString) || name.text().find('.') == name.text().npos)
      return fail(ErrorKind::kUsage,
                  "the policy allows something that is not a dotted name");
    policy.allowed.emplace_back(name.text());
  }
  return policy;
}

Result<std::vector<fs::path>> files_below(std::span<const std::string> paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(input_path(path));
      continue;
    }
    std::vector<fs::path> inside;
    fs::recursive_directory_iterator it(
        path, fs::directory_options::skip_permission_denied, error);
    if (error)
      return fail(ErrorKind::kIo, "cannot read folder {}: {}", path,
                  error.message());
    for (; !error && it != fs::recursive_directory_iterator();
         it.increment(error)) {
      std::error_code none;
      if (it->is_regular_file(none) && !it->is_symlink(none))
        inside.push_back(it->path());
    }
    if (error)
      return fail(ErrorKind::kIo, "cannot read folder {}: {}", path,
                  error.message());
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

Result<> scan_files(std::span<const fs::path> files, const ScanPolicy& policy,
                    const Context& context, const ScanSink& sink) {
  const WorkerPool pool(context.threads);
  return pool.map_ordered(
      files.size(),
      [&](std::size_t i) { return scan_one(files[i], policy, context.limits); },
      [&](std::size_t, const ScannedFile& scanned) -> Result<> {
        sink(scanned);
        return {};
      });
}

}  // namespace postflight
