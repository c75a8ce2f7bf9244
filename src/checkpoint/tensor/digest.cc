#include "checkpoint/tensor/digest.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/worker_pool.h"
#include "checkpoint/tensor/block_tree.h"
#include "checkpoint/tensor/sha256.h"

namespace postflight {
namespace {

constexpr std::size_t kInOrderPiece = 512 << 10;  // stays in the cache
constexpr std::size_t kGatheredPiece = 4 << 20;

// Equal for tensors that are the same view of the same storage.
auto view_key(const Tensor& tensor) {
  return std::tuple(
      tensor.storage, tensor.offset, tensor.dtype.name, tensor.conjugated,
      tensor.negated,
      std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()),
      std::vector<std::int64_t>(tensor.stride.begin(), tensor.stride.end()));
}

std::size_t piece_for(const Tensor& tensor) {
  return is_contiguous(tensor) ? kInOrderPiece : kGatheredPiece;
}

// Each is digested once by `digest_one`.
template <class Digest, class DigestOne, class Sink>
Result<> digest_all(const Checkpoint& checkpoint,
                    std::span<const std::uint32_t> nodes, DigestOne digest_one,
                    const Sink& sink, const ReadOptions& options) {
  struct Job {
    const Tensor* tensor = nullptr;
    std::size_t same_as = 0;  // an earlier job, or itself
    Result<> allowed = {};
  };
  ReadBudget budget(checkpoint);
  std::vector<Job> jobs;
  std::map<decltype(view_key(Tensor())), std::size_t> known;
  std::vector<std::size_t> by_tensor(checkpoint.tensors().size(), nodes.size());
  for (const std::uint32_t node : nodes) {
    const std::uint32_t index = checkpoint.nodes()[node].index;
    Job job{&checkpoint.tensors()[index], jobs.size()};
    if (by_tensor[index] < nodes.size()) {
      job.same_as = by_tensor[index];
    } else {
      const auto [at, fresh] =
          known.emplace(view_key(*job.tensor), jobs.size());
      job.same_as = at->second;
      if (fresh)
        job.allowed = budget.take(*job.tensor);
    }
    by_tensor[index] = job.same_as;
    jobs.push_back(std::move(job));
  }

  const TensorReader reader(checkpoint, options);
  const auto digest_allowed = [&](std::size_t i) -> Result<Digest> {
    if (const Result<>& allowed = jobs[i].allowed; !allowed)
      return fail(allowed.error().kind(), "{}", allowed.error().message());
    return digest_one(reader, *jobs[i].tensor);
  };
  std::vector<std::optional<Digest>> done(jobs.size());
  const WorkerPool pool(checkpoint.context().threads);
  return pool.map_ordered(
      jobs.size(),
      [&](std::size_t i) -> Result<Digest> {
        if (jobs[i].same_as != i)
          return Digest();
        return digest_allowed(i);
      },
      [&](std::size_t i, Result<Digest> digest) -> Result<> {
        const std::size_t same = jobs[i].same_as;
        if (same != i && done[same])
          digest = *done[same];
        else if (same != i)
          digest = digest_allowed(same);
        if (digest)
          done[i] = *digest;
        sink(nodes[i], digest);
        return {};
      });
}

}  // namespace

Result<std::string> digest_tensor(const TensorReader& reader,
                                  const Tensor& tensor) {
  Sha256 sha;
  TRY(reader.stream(tensor, piece_for(tensor), [&sha](Bytes piece) -> Result<> {
    sha.add(piece);
    return {};
  }));
  return sha.digest();
}

Result<TensorDigest> digest_blocks(const TensorReader& reader,
                                   const Tensor& tensor) {
  Sha256 sha;
  BlockTree tree;
  TRY(reader.stream(tensor, piece_for(tensor), [&](Bytes piece) -> Result<> {
    sha.add(piece);
    tree.add(piece);
    return {};
  }));
  return TensorDigest{sha.digest(), tree.blocks()};
}

Result<> digest_tensors(const Checkpoint& checkpoint,
                        std::span<const std::uint32_t> nodes,
                        const DigestSink& sink, const ReadOptions& options) {
  return digest_all<std::string>(checkpoint, nodes, digest_tensor, sink,
                                 options);
}

Result<> digest_tensors_by_block(const Checkpoint& checkpoint,
                                 std::span<const std::uint32_t> nodes,
                                 const BlockDigestSink& sink,
                                 const ReadOptions& options) {
  return digest_all<TensorDigest>(checkpoint, nodes, digest_blocks, sink,
                                  options);
}

}  // namespace postflight
