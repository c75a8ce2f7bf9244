// Universal checkpoints of DeepSpeed: a folder `zero` with a folder for each
// parameter, in which its float32 weights and its moments are a file each.

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <vector>

#include "checkpoint/joining/tree_rewrite.h"
#include "checkpoint/joining/zero_tree.h"

namespace postflight {
namespace {

constexpr std::string_view kModelStates = "mp_rank_00_model_states.pt";

// The files of a parameter, by what they hold.
struct ParameterFiles {
  std::string name;
  std::map<std::string, std::filesystem::path> files;
};

Result<std::vector<ParameterFiles>> list_parameters(
    const std::filesystem::path& zero) {
  std::vector<ParameterFiles> all;
  std::error_code error;
  for (std::filesystem::directory_iterator it(zero, error);
       !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    ParameterFiles one{it->path().filename().string(), {}};
    std::error_code none;
    for (std::filesystem::directory_iterator file(it->path(), none);
         !none && file != std::filesystem::directory_iterator();
         file.increment(none))
      if (file->path().extension() == ".pt")
        one.files[file->path().stem().string()] = file->path();
    if (!one.files.empty())
      all.push_back(std::move(one));
  }
  if (error)
    return fail(ErrorKind::kIo, "cannot read folder {}: {}", zero.string(),
                error.message());
  std::ranges::sort(all, {}, &ParameterFiles::name);
  return all;
}

// Each parameter has files for its float32 weights and its moments, each of
// which holds the tensor under "param".
class Universal {
 public:
  Universal(const std::filesystem::path& folder, const SourceContext& context)
      : folder_(folder), context_(context), checkpoint_(context.checkpoint) {}

  Result<> add() {
    const std::vector<ParameterFiles> parameters =
        TRY(list_parameters(folder_ / "zero"));
    Tree& tree = checkpoint_.tree;
    const std::uint32_t root = tree.add(0, {}, NodeKind::kDict);
    std::set<std::string> kinds;
    for (const ParameterFiles& parameter : parameters)
      for (const auto& [kind, file] : parameter.files)
        kinds.insert(kind);
    kinds.erase("fp32");
    add_kind("fp32", Key::string("model"), parameters, root);
    const std::uint32_t optimizer =
        tree.add(root, Key::string("optimizer"), NodeKind::kDict);
    for (const std::string& kind : kinds)
      add_kind(kind, Key::string(tree.keep(kind)), parameters, optimizer);
    tree.close(optimizer);
    add_model_states(root);
    tree.close(root);
    unwrap();
    return {};
  }

 private:
  void add_kind(const std::string& kind, const Key& key,
                std::span<const ParameterFiles> parameters,
                std::uint32_t parent) {
    Tree& tree = checkpoint_.tree;
    const std::uint32_t node = tree.add(parent, key, NodeKind::kDict);
    for (const ParameterFiles& parameter : parameters) {
      const auto file = parameter.files.find(kind);
      if (file == parameter.files.end()) {
        if (kind == "fp32")
          checkpoint_.report("missing_file", Severity::kError,
                             "it has no fp32.pt", parameter.name);
        continue;
      }
      const std::size_t properties = checkpoint_.properties.size();
      const Result<Format> added = context_.add_file(
          file->second,
          context_.at(node, Key::string(tree.keep(parameter.name))));
      checkpoint_.properties.resize(properties);
      if (!added)
        checkpoint_.report("unreadable_file", Severity::kError,
                           std::string(added.error().message()),
                           parameter.name + "/" + kind + ".pt");
    }
    tree.close(node);
  }

  // The file of the model is beside the folder of parameters.
  void add_model_states(std::uint32_t root) {
    const std::filesystem::path file = folder_ / kModelStates;
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error))
      return;
    if (const Result<Format> added = context_.add_file(
            file, context_.at(root, Key::string(kModelStates)));
        !added)
      checkpoint_.report("unreadable_file", Severity::kError,
                         std::string(added.error().message()),
                         std::string(kModelStates));
  }

  // Each parameter is what its file has as "param".
  void unwrap() {
    TreeRewrite from(checkpoint_.tree);
    Tree& tree = checkpoint_.tree;
    const std::span<const Node> old = from.nodes();
    const std::uint32_t root = tree.add(0, {}, NodeKind::kDict);
    const auto copy_all = [&](std::uint32_t below, const Key& key,
                              std::uint32_t parent) {
      const std::uint32_t node = tree.add(parent, key, NodeKind::kDict);
      for (const std::uint32_t at : from.children(below)) {
        const std::uint32_t inner = from.child(at, "param");
        from.copy(inner == kNoIndex ? at : inner, old[at].key, node);
      }
      tree.close(node);
    };
    for (const std::uint32_t at : from.children(0)) {
      if (old[at].key.text == "model") {
        copy_all(at, old[at].key, root);
        continue;
      }
      if (old[at].key.text == kModelStates) {
        for (const std::uint32_t value : from.children(at))
          if (!is_part_of_model(old[value].key.text))
            from.copy(value, old[value].key, root);
        continue;
      }
      const std::uint32_t optimizer =
          tree.add(root, old[at].key, NodeKind::kDict);
      for (const std::uint32_t moment : from.children(at))
        copy_all(moment, old[moment].key, optimizer);
      tree.close(optimizer);
    }
    tree.close(root);
  }

  const std::filesystem::path& folder_;
  const SourceContext& context_;
  CheckpointContents& checkpoint_;
};

}  // namespace

bool is_universal(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder / "zero", error);
       !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    std::error_code none;
    if (std::filesystem::is_regular_file(it->path() / "fp32.pt", none))
      return true;
  }
  return false;
}

Result<> add_universal(const std::filesystem::path& folder,
                       const SourceContext& context) {
  return Universal(folder, context).add();
}

}  // namespace postflight
