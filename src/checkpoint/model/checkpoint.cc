#include "checkpoint/model/checkpoint.h"

#include <algorithm>

#include "checkpoint/model/contents.h"

namespace postflight {

Checkpoint::Checkpoint(std::unique_ptr<const CheckpointContents> contents)
    : contents_(std::move(contents)),
      nodes_(contents_->tree.nodes),
      tensors_(contents_->tree.tensors),
      storages_(contents_->tree.storages) {
  for (const std::unique_ptr<DataFile>& file : contents_->files)
    files_.push_back(file.get());
  files_.insert(files_.end(), contents_->other_files.begin(),
                contents_->other_files.end());
}

Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const std::filesystem::path& Checkpoint::path() const {
  return contents_->path;
}

Format Checkpoint::format() const {
  return contents_->format;
}

const Context& Checkpoint::context() const {
  return contents_->context;
}

std::span<const Assembly* const> Checkpoint::assemblies() const {
  return contents_->assemblies;
}

bool Checkpoint::joins_ranks() const {
  return contents_->joins_ranks;
}

OpenItem Checkpoint::item_opener() const {
  return [this](const Assembly& assembly, const AssemblyChunk& chunk) {
    return contents_->open_item(*this, *contents_, assembly, chunk);
  };
}

std::span<const Finding> Checkpoint::findings() const {
  return contents_->findings;
}

std::span<const std::pair<std::string, std::string>> Checkpoint::properties()
    const {
  return contents_->properties;
}

std::string_view Checkpoint::truncation() const {
  return contents_->truncation;
}

std::vector<Key> Checkpoint::keys_to(std::uint32_t node) const {
  // In endlessly nested lists all paths together would be as long as the square
  // of their number; no real tree is nearly as deep.
  constexpr std::size_t kMostKeys = 128;
  std::vector<Key> keys;
  for (; node != 0 && keys.size() < kMostKeys; node = nodes_[node].parent)
    keys.push_back(nodes_[node].key);
  if (node != 0)
    keys.push_back(Key::other("..."));
  std::ranges::reverse(keys);
  return keys;
}

std::string Checkpoint::path_of(std::uint32_t node) const {
  std::string text;
  write_path(node, text);
  return text;
}

void Checkpoint::write_path(std::uint32_t node, std::string& text) const {
  text.clear();
  if (nodes_[node].parent == 0) {  // as for most nodes of a state dict
    append_key(nodes_[node].key, text);
    return;
  }
  for (const Key& key : keys_to(node))
    append_key(key, text);
}

std::uint32_t Checkpoint::child(std::uint32_t node, const Key& key) const {
  for (std::uint32_t at = node + 1; at < nodes_[node].end; at = nodes_[at].end)
    if (nodes_[at].key == key)
      return at;
  return kNoIndex;
}

}  // namespace postflight
