#include "checkpoint/tensor_digest.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/worker_pool.h"
#include "checkpoint/sha256.h"

namespace postflight {
namespace {

constexpr std::size_t kInOrderPiece = 512 << 10;  // stays in the cache
constexpr std::size_t kGatheredPiece = 4 << 20;

// Equal for tensors whose bytes are the same ones.
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
                        const ReadOptions& options, const Limits& limits,
                        const DigestSink& sink) {
  constexpr std::uint64_t kTimesRead = 16;  // views of one storage
  std::uint64_t left = limits.max_materialised_bytes;
  for (const auto& file : checkpoint.files)
    left += file->size() * kTimesRead;

  struct Job {
    const Tensor* tensor = nullptr;
    std::size_t same_as = 0;  // an earlier job, or itself
    bool refused = false;
  };
  std::vector<Job> jobs;
  std::map<decltype(view_key(Tensor())), std::size_t> known;
  std::vector<std::size_t> by_tensor(checkpoint.tensors().size(), nodes.size());
  for (const std::uint32_t node : nodes) {
    const std::uint32_t index = checkpoint.nodes()[node].index;
    Job job{&checkpoint.tensors()[index], jobs.size(), false};
    if (by_tensor[index] < nodes.size()) {
      job.same_as = by_tensor[index];
    } else {
      const auto [at, fresh] =
          known.emplace(view_key(*job.tensor), jobs.size());
      job.same_as = at->second;
      if (fresh && job.tensor->readable()) {
        const Storage& storage = checkpoint.tree.storages[job.tensor->storage];
        const bool packed =
            storage.entry != nullptr && storage.entry->method != 0;
        const std::uint64_t cost =
            std::max(job.tensor->bytes(), packed ? storage.size : 0);
        job.refused = cost > left;
        left -= job.refused ? 0 : cost;
      }
    }
    by_tensor[index] = job.same_as;
    jobs.push_back(job);
  }

  const TensorReader reader(checkpoint, options);
  std::vector<std::string> done(jobs.size());
  const WorkerPool pool(options.threads);
  return pool.map_ordered(
      jobs.size(),
      [&](std::size_t i) -> Result<std::string> {
        if (jobs[i].same_as != i)
          return std::string();
        if (jobs[i].refused)
          return fail(ErrorKind::kRefused,
                      "its {} bytes repeat far fewer; all together are more "
                      "than allowed (max_materialised_bytes)",
                      jobs[i].tensor->bytes());
        return digest_tensor(reader, *jobs[i].tensor);
      },
      [&](std::size_t i, Result<std::string> digest) -> Result<> {
        const std::size_t same = jobs[i].same_as;
        if (same != i && !done[same].empty())
          digest = done[same];
        else if (same != i)
          digest = digest_tensor(reader, *jobs[i].tensor);
        if (digest)
          done[i] = *digest;
        sink(nodes[i], digest);
        return {};
      });
}

}  // namespace postflight
