#include "checkpoint/tensor/gather.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/worker_pool.h"
#include "checkpoint/model/stream_copy.h"
#include "checkpoint/tensor/strided_copy.h"

namespace postflight {
namespace {

constexpr std::uint64_t kBlock = 1 << 20;

struct Plan {
  std::vector<CopyDimension> moving;     // by descending step in the storage
  std::vector<CopyDimension> repeating;  // of step 0
};

Plan plan_of(const Tensor& tensor) {
  const std::uint64_t size = tensor.dtype.size;
  Plan plan;
  std::uint64_t to_step = size;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    const auto count = static_cast<std::uint64_t>(tensor.shape[i]);
    const auto stride = static_cast<std::uint64_t>(tensor.stride[i]);
    if (count > 1)
      (stride == 0 ? plan.repeating : plan.moving)
          .push_back({count, stride * size, to_step});
    to_step *= count;
  }
  std::ranges::reverse(plan.moving);
  std::ranges::stable_sort(plan.moving, std::ranges::greater(),
                           &CopyDimension::from_step);
  // Merge dimensions that are contiguous on both sides.
  std::vector<CopyDimension> merged;
  for (const CopyDimension& dimension : plan.moving) {
    if (!merged.empty()) {
      CopyDimension& last = merged.back();
      if (last.from_step == dimension.from_step * dimension.count &&
          last.to_step == dimension.to_step * dimension.count) {
        last = {last.count * dimension.count, dimension.from_step,
                dimension.to_step};
        continue;
      }
    }
    merged.push_back(dimension);
  }
  plan.moving = std::move(merged);
  return plan;
}

class Gatherer {
 public:
  Gatherer(StorageReader& reader, const Tensor& tensor, std::byte* to)
      : reader_(reader), size_(tensor.dtype.size), to_(to) {}

  Result<> run(std::uint64_t offset, std::vector<CopyDimension> dimensions) {
    // The block grows from the innermost dimension outwards.
    std::uint64_t extent = size_;
    std::size_t block = dimensions.size();
    std::uint64_t share = 0;  // of the dimension that does not fit as a whole
    while (block > 0) {
      const CopyDimension& next = dimensions[block - 1];
      const std::uint64_t gap =
          next.from_step > extent ? next.from_step - extent : 0;
      const bool straight = next.from_step == size_ && next.to_step == size_ &&
                            block == dimensions.size();
      if (gap > kLongestGap)
        break;
      const std::uint64_t whole = (next.count - 1) * next.from_step + extent;
      if (whole > kBlock && !straight) {
        if (extent < kBlock)
          share =
              std::max<std::uint64_t>(1, (kBlock - extent) / next.from_step);
        break;
      }
      extent = whole;
      --block;
    }
    // A multiple of this writes whole cache lines of the target.
    constexpr std::uint64_t kWholeLines = 32;
    if (share > kWholeLines)
      share -= share % kWholeLines;
    std::vector<CopyDimension> outer(
        dimensions.begin(),
        dimensions.begin() + static_cast<std::ptrdiff_t>(block));
    inner_.assign(dimensions.begin() + static_cast<std::ptrdiff_t>(block),
                  dimensions.end());
    if (share > 1) {
      shared_ = outer.back();
      outer.pop_back();
      share_ = share;
    }
    extent_ = extent;
    return each(offset, outer);
  }

 private:
  Result<> each(std::uint64_t offset, std::span<const CopyDimension> outer) {
    std::vector<std::uint64_t> index(outer.size(), 0);
    std::byte* to = to_;
    for (;;) {
      TRY(shares(offset, to));
      std::size_t i = outer.size();
      for (;;) {
        if (i == 0)
          return {};
        --i;
        offset += outer[i].from_step;
        to += outer[i].to_step;
        if (++index[i] < outer[i].count)
          break;
        offset -= outer[i].from_step * outer[i].count;
        to -= outer[i].to_step * outer[i].count;
        index[i] = 0;
      }
    }
  }

  Result<> shares(std::uint64_t offset, std::byte* to) {
    if (share_ == 0)
      return read_block(offset, to, inner_, extent_);
    std::vector<CopyDimension> block(1, shared_);
    block.insert(block.end(), inner_.begin(), inner_.end());
    for (std::uint64_t done = 0; done < shared_.count; done += share_) {
      block[0].count = std::min(share_, shared_.count - done);
      const std::uint64_t extent =
          (block[0].count - 1) * shared_.from_step + extent_;
      TRY(read_block(offset + done * shared_.from_step,
                     to + done * shared_.to_step, block, extent));
    }
    return {};
  }

  Result<> read_block(std::uint64_t offset, std::byte* to,
                      std::span<const CopyDimension> block,
                      std::uint64_t extent) {
    const bool straight =
        block.empty() || (block.size() == 1 && block[0].from_step == size_ &&
                          block[0].to_step == size_);
    if (straight)
      return reader_.read_at(offset, {to, extent});
    if (staging_.size() < extent)
      staging_.resize(extent);
    TRY(reader_.read_at(offset, std::span(staging_).first(extent)));
    copy_strided(staging_.data(), to, size_, block);
    return {};
  }

  StorageReader& reader_;
  const std::uint64_t size_;
  std::byte* const to_;
  std::vector<CopyDimension> inner_;
  CopyDimension shared_;
  std::uint64_t share_ = 0;
  std::uint64_t extent_ = 0;
  std::vector<std::byte> staging_;
};

// Copies from the mapping if that is faster; false if it is not, or not
// possible.
bool gather_mapped(const StorageReader& reader, const Tensor& tensor,
                   std::byte* to, std::span<const CopyDimension> dimensions,
                   std::size_t threads) {
  const std::uint64_t size = tensor.dtype.size;
  std::uint64_t bytes = size;
  std::uint64_t extent = size;
  for (const CopyDimension& dimension : dimensions) {
    bytes *= dimension.count;
    extent += (dimension.count - 1) * dimension.from_step;
  }
  // Long runs are read straight to their place, and sparse bytes one by one.
  const bool long_runs = !dimensions.empty() &&
                         dimensions.back().from_step == size &&
                         dimensions.back().to_step == size &&
                         dimensions.back().count * size > kLongestGap;
  if (dimensions.empty() || long_runs || bytes < kBlock || extent / 2 > bytes)
    return false;
  // The outermost dimension is split into bands of whole cache lines.
  constexpr std::uint64_t kOneBand = 64 << 20;
  constexpr std::uint64_t kBandOfMany = 8 << 20;
  const WorkerPool pool(threads);
  const CopyDimension outermost = dimensions[0];
  std::uint64_t share =
      (pool.threads() == 1 ? kOneBand : kBandOfMany) / outermost.from_step;
  share = std::max(kCacheLine, share - share % kCacheLine);
  const std::uint64_t rest =
      extent - (outermost.count - 1) * outermost.from_step;
  const std::uint64_t bands = (outermost.count + share - 1) / share;
  const auto copy_band = [&](std::size_t band) {
    const std::uint64_t first = band * share;
    std::vector<CopyDimension> part(dimensions.begin(), dimensions.end());
    part[0].count = std::min(share, outermost.count - first);
    const std::optional<Bytes> from =
        reader.mapped_at(tensor.offset * size + first * outermost.from_step,
                         (part[0].count - 1) * outermost.from_step + rest);
    if (from)
      copy_strided(from->data(), to + first * outermost.to_step, size, part);
    return from.has_value();
  };
  bool all = true;
  const Result<> done = pool.map_ordered(
      bands, copy_band, [&all](std::size_t, bool copied) -> Result<> {
        all = all && copied;
        return {};
      });
  return done && all;
}

}  // namespace

Result<> gather(StorageReader& reader, const Tensor& tensor,
                std::span<std::byte> to, const GatherOptions& options) {
  if (to.empty())
    return {};
  Plan plan = plan_of(tensor);
  if (!options.mapped ||
      !gather_mapped(reader, tensor, to.data(), plan.moving, options.threads))
    TRY(Gatherer(reader, tensor, to.data())
            .run(tensor.offset * tensor.dtype.size, plan.moving));
  // Repeated elements are copied within the result.
  std::vector<CopyDimension> done = plan.moving;
  for (CopyDimension& dimension : done)
    dimension.from_step = dimension.to_step;
  for (const CopyDimension& again : plan.repeating) {
    for (std::uint64_t i = 1; i < again.count; ++i)
      copy_strided(to.data(), to.data() + i * again.to_step, tensor.dtype.size,
                   done);
    done.push_back({again.count, again.to_step, again.to_step});
  }
  return {};
}

}  // namespace postflight
