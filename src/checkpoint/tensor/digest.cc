#include "checkpoint/tensor/digest.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/worker_pool.h"
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

}  // namespace

Result<std::string> digest_tensor(const TensorReader& reader,
                                  const Tensor& tensor) {
  Sha256 sha;
  TRY(reader.stream(tensor,
                    is_contiguous(tensor) ? kInOrderPiece : kGatheredPiece,
                    [&sha](Bytes piece) -> Result<> {
                      sha.add(piece);
                      return {};
                    }));
  return sha.digest();
}

Result<> digest_tensors(const Checkpoint& checkpoint,
                        std::span<const std::uint32_t> nodes,
                        const DigestSink& sink, const ReadOptions& options) {
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
  const auto digest_allowed = [&](std::size_t i) -> Result<std::string> {
    if (const Result<>& allowed = jobs[i].allowed; !allowed)
      return fail(allowed.error().kind(), "{}", allowed.error().message());
    return digest_tensor(reader, *jobs[i].tensor);
  };
  std::vector<std::string> done(jobs.size());
  const WorkerPool pool(checkpoint.context().threads);
  return pool.map_ordered(
      jobs.size(),
      [&](std::size_t i) -> Result<std::string> {
        if (jobs[i].same_as != i)
          return std::string();
        return digest_allowed(i);
      },
      [&](std::size_t i, Result<std::string> digest) -> Result<> {
        const std::size_t same = jobs[i].same_as;
        if (same != i && !done[same].empty())
          digest = done[same];
        else if (same != i)
          digest = digest_allowed(same);
        if (digest)
          done[i] = *digest;
        sink(nodes[i], digest);
        return {};
      });
}

}  // namespace postflight
