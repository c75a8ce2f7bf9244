#include "checkpoint/delta/making.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/worker_pool.h"
#include "checkpoint/comparison/manifest.h"
#include "checkpoint/tensor/digest.h"
#include "checkpoint/tensor/element_reader.h"
#include "checkpoint/writing/output_plan.h"

namespace postflight {
namespace {

// The file to write, or nothing at all.
class DeltaTarget {
 public:
  static Result<DeltaTarget> create(const std::filesystem::path& path,
                                    const DeltaOptions& options) {
    DeltaTarget target;
    if (!options.dry_run)
      target.file_.emplace(TRY(AtomicFile::create(path, options.existing)));
    return target;
  }

  Result<> write(Bytes bytes) {
    return file_ ? file_->write(bytes) : Result<>();
  }
  Result<> commit() { return file_ ? file_->commit() : Result<>(); }

 private:
  std::optional<AtomicFile> file_;
};

// The tensors of a checkpoint by key, and their digests.
struct Side {
  std::map<std::string, std::uint32_t> nodes;
  std::map<std::uint32_t, std::string> digests;  // by node
  std::string root;
};

Result<Side> read_side(const Checkpoint& checkpoint,
                       const DeltaOptions& options) {
  Side side;
  std::vector<std::uint32_t> nodes;
  const auto count = static_cast<std::uint32_t>(checkpoint.nodes().size());
  for (std::uint32_t node = 0; node < count; ++node) {
    const Tensor* const tensor = checkpoint.tensor_at(node);
    if (tensor == nullptr || tensor->has_parts() || tensor->storage == kNoIndex)
      continue;
    if (!side.nodes.emplace(plain_path(checkpoint, node), node).second)
      return fail(ErrorKind::kUnsupported,
                  "{}: two tensors have this key, so a delta could not tell "
                  "them apart",
                  checkpoint.path_of(node));
    nodes.push_back(node);
  }
  Manifest manifest;
  Result<> done;
  TRY(digest_tensors(
      checkpoint, nodes,
      [&](std::uint32_t node, const Result<std::string>& digest) {
        if (options.progress)
          options.progress(checkpoint.tensor_at(node)->bytes());
        if (!digest) {
          if (done)
            done = fail(digest.error().kind(), "{}: {}",
                        checkpoint.path_of(node), digest.error().message());
          return;
        }
        side.digests[node] = *digest;
        manifest.add(checkpoint, node, {*digest, {}});
      }));
  TRY(std::move(done));
  side.root = manifest.root();
  return side;
}

class DeltaMaker {
 public:
  DeltaMaker(const Checkpoint& before, const Checkpoint& after,
             const DeltaOptions& options)
      : before_(before), after_(after), options_(options) {}

  Result<DeltaSummary> write(const std::filesystem::path& target) {
    OutputPlan plan =
        TRY(plan_output(after_, {.format = OutputFormat::kTorch, .anew = true})
                .in(after_.path().string()));
    std::vector<OutputTensor> outputs;
    for (const WrittenTensor& tensor : plan.tensors)
      outputs.push_back(tensor.output);
    TorchPickle pickle = TRY(pickle_tree(after_, outputs, plan.kept));
    TRY(AtomicFile::check(target, options_.existing));
    const Side base = TRY(read_side(before_, options_));
    const Side side = TRY(read_side(after_, options_));
    delta_.base_root = base.root;
    delta_.root = side.root;
    delta_.pickle = std::move(pickle.bytes);
    for (const auto& [key, node] : base.nodes)
      if (!side.nodes.contains(key))
        delta_.removed.push_back(key);
    for (const auto& [key, node] : side.nodes)
      if (!base.nodes.contains(key))
        delta_.added.push_back(key);

    DeltaTarget file = TRY(DeltaTarget::create(target, options_));
    DeltaWriter writer([&file](Bytes piece) { return file.write(piece); });
    TRY(writer.begin());
    std::map<std::string, std::vector<std::uint32_t>> same_bytes;
    for (const auto& [node, digest] : base.digests)
      same_bytes[digest].push_back(node);
    const std::vector<std::vector<std::string>> keys =
        keys_of(pickle.storages, side);
    for (std::size_t i = 0; i < pickle.storages.size(); ++i)
      TRY(add(pickle.storages[i], keys[i], base, side, same_bytes, writer));
    TRY(writer.finish(delta_));
    TRY(file.commit());
    DeltaSummary summary = summary_of(delta_);
    summary.tensors = side.nodes.size();
    summary.file_bytes = writer.size();
    return summary;
  }

 private:
  // Which tensors are in each storage: the one that it was made for, and those
  // that are the same elements.
  std::vector<std::vector<std::string>> keys_of(
      std::span<const OutputTensor> storages, const Side& side) const {
    std::map<std::pair<std::string, std::string>, std::size_t> places;
    std::vector<std::vector<std::string>> keys(storages.size());
    for (std::size_t i = 0; i < storages.size(); ++i)
      places.emplace(kind_of(storages[i].node, side), i);
    for (const auto& [key, node] : side.nodes)
      if (const auto place = places.find(kind_of(node, side));
          place != places.end())
        keys[place->second].push_back(key);
    return keys;
  }

  std::pair<std::string, std::string> kind_of(std::uint32_t node,
                                              const Side& side) const {
    const Tensor& tensor = *after_.tensor_at(node);
    return {side.digests.at(node),
            fmt::format("{} {} {} {}", tensor.storage, tensor.offset,
                        tensor.dtype.name, fmt::join(tensor.shape, ","))};
  }

  static bool fits(const Tensor& a, const Tensor& b) {
    return a.dtype == b.dtype && std::ranges::equal(a.shape, b.shape);
  }

  Result<> add(
      const OutputTensor& output, const std::vector<std::string>& keys,
      const Side& base, const Side& side,
      const std::map<std::string, std::vector<std::uint32_t>>& same_bytes,
      DeltaWriter& writer) {
    const Tensor& tensor = *output.tensor;
    DeltaStorage storage;
    storage.keys = keys;
    storage.dtype = tensor.dtype.name;
    storage.shape.assign(tensor.shape.begin(), tensor.shape.end());
    storage.element = tensor.dtype.size;
    storage.bytes = tensor.bytes();
    storage.sha256 = side.digests.at(output.node);
    std::uint32_t from = kNoIndex;
    for (const std::string& key : keys)
      if (const auto found = base.nodes.find(key);
          from == kNoIndex && found != base.nodes.end() &&
          fits(*before_.tensor_at(found->second), tensor))
        from = found->second;
    // Renamed.
    const auto moved = same_bytes.find(storage.sha256);
    if (moved != same_bytes.end() &&
        (from == kNoIndex || base.digests.at(from) != storage.sha256))
      for (const std::uint32_t node : moved->second)
        if (fits(*before_.tensor_at(node), tensor))
          from = node;
    if (from != kNoIndex) {
      storage.base_key = plain_path(before_, from);
      storage.base_sha256 = base.digests.at(from);
    }
    for (const std::string& key : keys)
      if (!JsonWriter::keeps(key))
        return fail(ErrorKind::kUnsupported,
                    "{}: a key that is not UTF-8 cannot be in a delta",
                    after_.path_of(output.node));
    if (from == kNoIndex || storage.base_sha256 != storage.sha256)
      TRY(add_blocks(tensor, from, storage, writer));
    else if (options_.progress)
      options_.progress(2 * storage.bytes);
    delta_.storages.push_back(std::move(storage));
    return {};
  }

  Result<> add_blocks(const Tensor& tensor, std::uint32_t from,
                      DeltaStorage& storage, DeltaWriter& writer) {
    const Tensor* const old =
        from == kNoIndex ? nullptr : before_.tensor_at(from);
    const std::uint64_t count =
        (storage.bytes + Delta::kBlock - 1) / Delta::kBlock;
    // Elements without an offset of their own are read whole, once.
    const bool whole =
        !is_contiguous(tensor) || (old != nullptr && !is_contiguous(*old));
    ElementReader ours(after_, tensor);
    std::optional<ElementReader> theirs;
    if (old != nullptr)
      theirs.emplace(before_, *old);
    const auto work = [&](std::size_t i) -> Result<std::vector<std::byte>> {
      const std::uint64_t size = block_bytes(storage, i);
      std::vector<std::byte> block(size);
      std::vector<std::byte> base(old == nullptr ? 0 : size);
      if (whole) {
        TRY(ours.read(i * Delta::kBlock, block));
        if (theirs)
          TRY(theirs->read(i * Delta::kBlock, base));
      } else {
        TRY(ElementReader(after_, tensor).read(i * Delta::kBlock, block));
        if (old != nullptr)
          TRY(ElementReader(before_, *old).read(i * Delta::kBlock, base));
      }
      if (old != nullptr) {
        if (block == base)
          return std::vector<std::byte>();
        for (std::size_t k = 0; k < size; ++k)
          block[k] ^= base[k];
      }
      return encode_block(block, storage.element);
    };
    const WorkerPool pool(whole ? 1 : after_.context().threads);
    return pool.map_ordered(
        count, work,
        [&](std::size_t i, Result<std::vector<std::byte>> frame) -> Result<> {
          const std::vector<std::byte> bytes = TRY(std::move(frame));
          if (options_.progress)
            options_.progress(2 * block_bytes(storage, i));
          if (bytes.empty())
            return {};
          DeltaBlock block{i, 0, 0, old == nullptr};
          TRY(writer.add(block, bytes));
          storage.blocks.push_back(block);
          return {};
        });
  }

  const Checkpoint& before_;
  const Checkpoint& after_;
  const DeltaOptions& options_;
  Delta delta_;
};

// Several deltas, each of which begins where the one before it ends.
class DeltaFold {
 public:
  explicit DeltaFold(std::vector<DeltaFile> files) : files_(std::move(files)) {}

  Result<DeltaSummary> write(const std::filesystem::path& target,
                             const Context& context,
                             const DeltaOptions& options) {
    for (std::size_t i = 1; i < files_.size(); ++i)
      if (files_[i].delta.base_root != files_[i - 1].delta.root)
        return fail(ErrorKind::kUsage,
                    "{} does not begin where {} ends; give the deltas in their "
                    "order",
                    files_[i].file->path().string(),
                    files_[i - 1].file->path().string());
    by_key_.resize(files_.size());
    for (std::size_t i = 0; i < files_.size(); ++i)
      for (const DeltaStorage& storage : files_[i].delta.storages)
        for (const std::string& key : storage.keys)
          by_key_[i].emplace(key, &storage);
    DeltaTarget file = TRY(DeltaTarget::create(target, options));
    DeltaWriter writer([&file](Bytes piece) { return file.write(piece); });
    TRY(writer.begin());
    Delta folded;
    folded.base_root = files_.front().delta.base_root;
    folded.root = files_.back().delta.root;
    folded.pickle = files_.back().delta.pickle;
    for (const DeltaStorage& storage : files_.back().delta.storages)
      folded.storages.push_back(TRY(fold(storage, context, options, writer)));
    fold_keys(folded);
    TRY(writer.finish(folded));
    TRY(file.commit());
    DeltaSummary summary = summary_of(folded);
    summary.tensors = by_key_.back().size();
    summary.file_bytes = writer.size();
    return summary;
  }

 private:
  struct Link {
    const DeltaFile* file = nullptr;
    const DeltaStorage* storage = nullptr;
  };

  // Which keys only the first base or only the last result has.
  void fold_keys(Delta& folded) const {
    std::set<std::string> removed;
    std::set<std::string> added;
    for (const DeltaFile& one : files_) {
      for (const std::string& key : one.delta.removed)
        if (added.erase(key) == 0)
          removed.insert(key);
      for (const std::string& key : one.delta.added)
        if (removed.erase(key) == 0)
          added.insert(key);
    }
    folded.removed.assign(removed.begin(), removed.end());
    folded.added.assign(added.begin(), added.end());
  }

  // The storages that one was made of, the oldest first.
  Result<std::vector<Link>> chain_of(const DeltaStorage& last) const {
    std::vector<Link> chain = {{&files_.back(), &last}};
    for (std::size_t i = files_.size() - 1; i > 0; --i) {
      const DeltaStorage& now = *chain.front().storage;
      if (!now.base_key)
        break;
      const auto before = by_key_[i - 1].find(*now.base_key);
      if (before == by_key_[i - 1].end() ||
          before->second->sha256 != now.base_sha256 ||
          before->second->bytes != now.bytes ||
          before->second->element != now.element)
        return fail(ErrorKind::kCorrupt, "{}: {} is not what {} makes",
                    files_[i].file->path().string(), *now.base_key,
                    files_[i - 1].file->path().string());
      chain.insert(chain.begin(), {&files_[i - 1], before->second});
    }
    return chain;
  }

  Result<DeltaStorage> fold(const DeltaStorage& last, const Context& context,
                            const DeltaOptions& options, DeltaWriter& writer) {
    const std::vector<Link> chain = TRY(chain_of(last));
    DeltaStorage folded = last;
    folded.base_key = chain.front().storage->base_key;
    folded.base_sha256 = chain.front().storage->base_sha256;
    folded.blocks.clear();
    std::map<std::uint64_t, std::vector<std::pair<Link, DeltaBlock>>> blocks;
    for (const Link& link : chain)
      for (const DeltaBlock& block : link.storage->blocks)
        blocks[block.index].emplace_back(link, block);
    // The same bytes as the base need none.
    if (folded.base_key && folded.base_sha256 == folded.sha256)
      blocks.clear();
    using Entry = std::pair<const std::uint64_t,
                            std::vector<std::pair<Link, DeltaBlock>>>;
    std::vector<const Entry*> order;
    for (const Entry& entry : blocks)
      order.push_back(&entry);
    const auto work = [&](std::size_t i) {
      return combined(order[i]->second, last.element);
    };
    const auto consume = [&](std::size_t i, Result<Combined> made) -> Result<> {
      const Combined one = TRY(std::move(made));
      DeltaBlock block{order[i]->first, 0, 0, one.replaces};
      TRY(writer.add(block, one.frame));
      if (options.progress)
        options.progress(block.size);
      folded.blocks.push_back(block);
      return {};
    };
    const WorkerPool pool(context.threads);
    TRY(pool.map_ordered(order.size(), work, consume));
    return folded;
  }

  struct Combined {
    std::vector<std::byte> frame;
    bool replaces = false;
  };

  static Result<Combined> combined(
      const std::vector<std::pair<Link, DeltaBlock>>& of,
      std::uint64_t element) {
    Combined made;
    if (of.size() == 1) {
      const Bytes frame = TRY(of[0].first.file->frame(of[0].second));
      made.frame.assign(frame.begin(), frame.end());
      made.replaces = of[0].second.replaces;
      return made;
    }
    std::vector<std::byte> bytes;
    for (const auto& [link, block] : of) {
      std::vector<std::byte> now = TRY(link.file->block(*link.storage, block));
      if (block.replaces || bytes.empty()) {
        made.replaces = block.replaces;
        bytes = std::move(now);
        continue;
      }
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] ^= now[i];
    }
    made.frame = TRY(encode_block(bytes, element));
    return made;
  }

  std::vector<DeltaFile> files_;
  std::vector<std::map<std::string, const DeltaStorage*>> by_key_;
};

}  // namespace

DeltaSummary summary_of(const Delta& delta) {
  DeltaSummary summary;
  for (const DeltaStorage& storage : delta.storages) {
    summary.bytes += storage.bytes;
    ++(!storage.base_key                       ? summary.added
       : storage.base_sha256 == storage.sha256 ? summary.same
                                               : summary.changed);
  }
  summary.removed = delta.removed.size();
  return summary;
}

Result<DeltaSummary> make_delta(const Checkpoint& before,
                                const Checkpoint& after,
                                const std::filesystem::path& target,
                                const DeltaOptions& options) {
  return DeltaMaker(before, after, options).write(target);
}

Result<DeltaSummary> fold_deltas(std::span<const std::filesystem::path> deltas,
                                 const std::filesystem::path& target,
                                 const Context& context,
                                 const DeltaOptions& options) {
  TRY(AtomicFile::check(target, options.existing));
  std::vector<DeltaFile> files;
  for (const std::filesystem::path& path : deltas)
    files.push_back(TRY(DeltaFile::open(path, context.limits)));
  return DeltaFold(std::move(files)).write(target, context, options);
}

}  // namespace postflight
