#include "checkpoint/comparison/manifest.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "checkpoint/key_filter.h"
#include "checkpoint/tensor/block_tree.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/tensor/sha256.h"
#include "json/json_value.h"

namespace postflight {
namespace {

constexpr std::string_view kSchema = "postflight.manifest/1";

tl::unexpected<Error> bad_manifest(std::string_view what) {
  return fail(ErrorKind::kCorrupt, "the manifest {}", what);
}

Result<std::string> text_of(const Value& line, std::string_view name) {
  const Value* const text = line.find(name);
  if (text == nullptr || !text->is(Kind::kString))
    return bad_manifest(fmt::format("has a tensor without its {}", name));
  return std::string(text->text());
}

// The tree of a line, if it has one, which its blocks must make.
Result<> read_tree(const Value& line, Manifest::Line& made) {
  if (line.find("tree") == nullptr)
    return {};
  made.tree = TRY(text_of(line, "tree"));
  const Value* const blocks = line.find("blocks");
  if (blocks == nullptr)
    return {};
  if (!blocks->is(Kind::kList))
    return bad_manifest("has a tensor whose blocks are not a list");
  for (const Value& block : blocks->items())
    made.blocks.emplace_back(block.is(Kind::kString) ? block.text() : "");
  if (BlockTree::root(made.blocks) != made.tree)
    return bad_manifest(
        "was changed: the blocks of a tensor do not make its "
        "tree");
  return {};
}

// Where a tensor differs from the one whose blocks the manifest has.
std::string place_of_difference(const Checkpoint& checkpoint,
                                std::uint32_t node,
                                const Manifest::Line& line) {
  const Result<TensorDigest> now =
      digest_blocks(TensorReader(checkpoint), *checkpoint.tensor_at(node));
  if (!now || now->blocks.size() != line.blocks.size())
    return {};
  std::size_t differ = 0;
  std::size_t first = 0;
  for (std::size_t i = line.blocks.size(); i-- > 0;)
    if (now->blocks[i] != line.blocks[i]) {
      ++differ;
      first = i;
    }
  return fmt::format("; {} of its {} blocks {}, the first at byte {}", differ,
                     line.blocks.size(), differ == 1 ? "differs" : "differ",
                     first * BlockTree::kBlock);
}

std::string short_text(std::string_view digest) {
  constexpr std::size_t kShort = 12;
  return std::string(digest.substr(0, kShort));
}

}  // namespace

void Manifest::add(const Checkpoint& checkpoint, std::uint32_t node,
                   const TensorDigest& digest) {
  const Tensor& tensor = *checkpoint.tensor_at(node);
  tensors.push_back(
      {plain_path(checkpoint, node),
       std::string(tensor.dtype.name),
       {tensor.shape.begin(), tensor.shape.end()},
       digest.sha256,
       BlockTree::root(digest.blocks),
       digest.blocks.size() > 1 ? digest.blocks : std::vector<std::string>()});
}

std::string Manifest::root() const {
  std::vector<Line> sorted = tensors;
  std::ranges::sort(sorted);
  Sha256 sha;
  for (const Line& line : sorted)
    sha.add(as_bytes(fmt::format(
        "{}{}{} {} [{}] {}\n", line.sha256, line.tree.empty() ? "" : " ",
        line.tree, line.dtype, fmt::join(line.shape, ","), line.key)));
  return sha.digest();
}

void Manifest::write(Output& out) {
  std::ranges::sort(tensors);
  JsonWriter json(out);
  json.begin(kSchema);
  json.field("root", root());
  json.array("tensors");
  for (const Line& line : tensors) {
    json.object();
    json.field("key", line.key);
    json.field("dtype", line.dtype);
    json.array("shape", line.shape);
    json.field("sha256", line.sha256);
    if (!line.tree.empty())
      json.field("tree", line.tree);
    if (!line.blocks.empty())
      json.array("blocks", line.blocks);
    json.end();
  }
  json.end();
  json.finish();
}

Result<Manifest> read_manifest(Bytes json) {
  Builder builder;
  const Value root = TRY(parse_json(json, builder).in("the manifest"));
  const Value* const schema =
      root.is(Kind::kDict) ? root.find("schema") : nullptr;
  if (schema == nullptr || !schema->is(Kind::kString) ||
      schema->text() != kSchema)
    return bad_manifest(
        "is not one: postflight ckpt digest --manifest FILE writes "
        "them");
  const Value* const tensors = root.find("tensors");
  const Value* const stated = root.find("root");
  if (tensors == nullptr || !tensors->is(Kind::kList) || stated == nullptr ||
      !stated->is(Kind::kString))
    return bad_manifest("has no tensors");
  Manifest manifest;
  for (const Value& line : tensors->items()) {
    if (!line.is(Kind::kDict))
      return bad_manifest("has a tensor that is not described");
    Manifest::Line made{TRY(text_of(line, "key")),
                        TRY(text_of(line, "dtype")),
                        {},
                        TRY(text_of(line, "sha256"))};
    const Value* const shape = line.find("shape");
    if (shape == nullptr || !shape->is(Kind::kList))
      return bad_manifest("has a tensor without its shape");
    for (const Value& size : shape->items())
      made.shape.push_back(size.is(Kind::kInteger) ? size.integer() : -1);
    TRY(read_tree(line, made));
    manifest.tensors.push_back(std::move(made));
  }
  if (manifest.root() != stated->text())
    return bad_manifest("was changed: its lines do not make its root");
  return manifest;
}

Result<std::vector<Finding>> compare_to_manifest(
    const Checkpoint& checkpoint, const Manifest& manifest,
    const std::function<void(std::uint64_t bytes)>& progress) {
  std::vector<Finding> findings;
  const auto report = [&findings](std::string kind, std::string message,
                                  std::string where) {
    findings.push_back({std::move(kind), Severity::kError, std::move(message),
                        std::move(where)});
  };
  std::map<std::string_view, const Manifest::Line*> wanted;
  for (const Manifest::Line& line : manifest.tensors)
    wanted.emplace(line.key, &line);
  std::vector<std::uint32_t> nodes;
  const auto count = static_cast<std::uint32_t>(checkpoint.nodes().size());
  for (std::uint32_t node = 0; node < count; ++node) {
    const Tensor* const tensor = checkpoint.tensor_at(node);
    if (tensor == nullptr || tensor->has_parts() || tensor->storage == kNoIndex)
      continue;
    const std::string key = plain_path(checkpoint, node);
    const auto found = wanted.find(key);
    if (found == wanted.end()) {
      report("manifest_unexpected", "the manifest does not have it", key);
      continue;
    }
    const Manifest::Line& line = *found->second;
    if (line.dtype != tensor->dtype.name ||
        !std::ranges::equal(line.shape, tensor->shape))
      report("manifest_mismatch",
             fmt::format("the manifest has {} [{}], this is {} [{}]",
                         line.dtype, fmt::join(line.shape, ", "),
                         tensor->dtype.name, fmt::join(tensor->shape, ", ")),
             key);
    else
      nodes.push_back(node);
    wanted.erase(found);
  }
  for (const auto& [key, line] : wanted)
    report("manifest_missing", "the manifest has it, and the checkpoint not",
           std::string(key));
  std::map<std::string_view, const Manifest::Line*> lines;
  for (const Manifest::Line& line : manifest.tensors)
    lines.emplace(line.key, &line);
  constexpr int kMostLocated = 20;  // each is read again
  int located = 0;
  TRY(digest_tensors(
      checkpoint, nodes,
      [&](std::uint32_t node, const Result<std::string>& digest) {
        const std::string key = plain_path(checkpoint, node);
        if (progress)
          progress(checkpoint.tensor_at(node)->bytes());
        if (!digest)
          report("unreadable_tensor", std::string(digest.error().message()),
                 key);
        else if (const Manifest::Line& line = *lines.find(key)->second;
                 *digest != line.sha256)
          report("manifest_mismatch",
                 fmt::format("its SHA-256 begins {}, that of the manifest {}{}",
                             short_text(*digest), short_text(line.sha256),
                             !line.blocks.empty() && located++ < kMostLocated
                                 ? place_of_difference(checkpoint, node, line)
                                 : ""),
                 key);
      }));
  return findings;
}

}  // namespace postflight
