#include "checkpoint/model/assembly.h"

#include <algorithm>
#include <compare>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "checkpoint/model/stream_copy.h"

namespace postflight {
namespace {

constexpr std::uint64_t kStaging = 1 << 20;
constexpr std::uint64_t kLongRun = 64 << 10;
constexpr std::uint64_t kMostCached = 64 << 20;
// Enough for 10,000 chunks that all share their rows.
constexpr std::uint64_t kMostComparisons = 50'000'000;

std::uint64_t unsigned_of(std::int64_t number) {
  return static_cast<std::uint64_t>(number);
}

// How a chunk maps to the whole: runs of `length` bytes that are contiguous in
// both, one after the other in the chunk.
class Runs {
 public:
  Runs(const Assembly& assembly, const AssemblyChunk& chunk) {
    std::uint64_t step = assembly.dtype.size;
    std::size_t i = assembly.shape.size();
    length_ = step;
    // A run spans the dimensions that the chunk covers completely, and the one
    // before them.
    bool in_run = true;
    while (i-- > 0) {
      const std::uint64_t size = unsigned_of(chunk.sizes[i]);
      first_ += unsigned_of(chunk.offsets[i]) * step;
      if (in_run) {
        length_ *= size;
        in_run = chunk.sizes[i] == assembly.shape[i];
      } else {
        outer_.push_back({size, step});
        count_ *= size;
      }
      step *= unsigned_of(assembly.shape[i]);
    }
    if (length_ == 0)
      count_ = 0;
  }

  std::uint64_t length() const { return length_; }
  std::uint64_t count() const { return count_; }

  // Where in the whole a run begins; ascending with `run`.
  std::uint64_t place(std::uint64_t run) const {
    std::uint64_t at = first_;
    for (const Outer& outer : outer_) {
      at += run % outer.count * outer.step;
      run /= outer.count;
    }
    return at;
  }

  // The first run that ends after `offset`.
  std::uint64_t first_behind(std::uint64_t offset) const {
    std::uint64_t low = 0;
    std::uint64_t high = count_;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (place(middle) + length_ > offset)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

 private:
  struct Outer {
    std::uint64_t count;
    std::uint64_t step;
  };
  std::vector<Outer> outer_;  // the innermost first
  std::uint64_t first_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t count_ = 1;
};

bool inside(const Assembly& assembly, const AssemblyChunk& chunk) {
  for (std::size_t i = 0; i < assembly.shape.size(); ++i) {
    const auto end = checked_add(chunk.offsets[i], chunk.sizes[i]);
    if (!end || *end > assembly.shape[i])
      return false;
  }
  return true;
}

bool overlap(const AssemblyChunk& a, const AssemblyChunk& b) {
  for (std::size_t i = 0; i < a.offsets.size(); ++i)
    if (a.offsets[i] >= b.offsets[i] + b.sizes[i] ||
        b.offsets[i] >= a.offsets[i] + a.sizes[i])
      return false;
  return true;
}

std::uint64_t volume(std::span<const std::int64_t> sizes) {
  std::uint64_t product = 1;
  for (const std::int64_t size : sizes)
    product *= unsigned_of(size);
  return product;
}

// Sets where the first and last bytes of a non-empty chunk go.
void place(const Assembly& assembly, AssemblyChunk& chunk) {
  std::uint64_t step = assembly.dtype.size;
  chunk.begin = 0;
  chunk.end = step;
  for (std::size_t i = assembly.shape.size(); i-- > 0;) {
    chunk.begin += unsigned_of(chunk.offsets[i]) * step;
    chunk.end += unsigned_of(chunk.offsets[i] + chunk.sizes[i] - 1) * step;
    step *= unsigned_of(assembly.shape[i]);
  }
}

std::weak_ordering compare(const AssemblyChunk& a, const AssemblyChunk& b) {
  const auto by_numbers = [](std::span<const std::int64_t> left,
                             std::span<const std::int64_t> right) {
    return std::lexicographical_compare_three_way(left.begin(), left.end(),
                                                  right.begin(), right.end());
  };
  const auto order = by_numbers(a.offsets, b.offsets);
  return order != 0 ? order : by_numbers(a.sizes, b.sizes);
}

std::string box(const AssemblyChunk& chunk) {
  return fmt::format("at ({}) of size ({})", fmt::join(chunk.offsets, ", "),
                     fmt::join(chunk.sizes, ", "));
}

}  // namespace

std::string Assembly::settle() {
  for (AssemblyChunk& chunk : chunks)
    if (!inside(*this, chunk))
      return fmt::format("its chunk {} reaches beyond its shape ({})",
                         box(chunk), fmt::join(shape, ", "));
  // Plain std: clang 14 does not accept what the algorithms in ranges return.
  const auto cut_at = [this](auto end) {
    chunks = chunks.first(static_cast<std::size_t>(end - chunks.begin()));
  };
  cut_at(std::remove_if(
      chunks.begin(), chunks.end(),
      [](const AssemblyChunk& chunk) { return volume(chunk.sizes) == 0; }));
  std::uint64_t covered = 0;
  for (AssemblyChunk& chunk : chunks)
    place(*this, chunk);
  // Prefer a replica that is available.
  const auto less = [](const AssemblyChunk& a, const AssemblyChunk& b) {
    if (a.begin != b.begin)
      return a.begin < b.begin;
    const auto order = compare(a, b);
    return order < 0 || (order == 0 && a.problem.empty() && !b.problem.empty());
  };
  if (!std::ranges::is_sorted(chunks, less))
    std::ranges::stable_sort(chunks, less);
  cut_at(std::unique(chunks.begin(), chunks.end(),
                     [](const AssemblyChunk& a, const AssemblyChunk& b) {
                       return a.begin == b.begin && compare(a, b) == 0;
                     }));
  std::uint64_t reach = 0;
  std::uint64_t comparisons = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    covered += volume(chunks[i].sizes);
    reach = std::max(reach, chunks[i].end);
    chunks[i].reach = reach;
    for (std::size_t j = i + 1;
         j < chunks.size() && chunks[j].begin < chunks[i].end; ++j) {
      if (++comparisons > kMostComparisons)
        return "it has too many chunks to check";
      if (overlap(chunks[i], chunks[j]))
        return fmt::format("its chunks {} and {} overlap", box(chunks[i]),
                           box(chunks[j]));
    }
  }
  if (covered != volume(shape))
    return fmt::format("its chunks cover {} of its {} elements", covered,
                       volume(shape));
  return {};
}

std::size_t Assembly::lost() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      chunks,
      [](const AssemblyChunk& chunk) { return !chunk.problem.empty(); }));
}

std::string Assembly::loss() const {
  const auto first = std::ranges::find_if(
      chunks,
      [](const AssemblyChunk& chunk) { return !chunk.problem.empty(); });
  if (first == chunks.end())
    return {};
  const std::size_t others = lost() - 1;
  return fmt::format("its chunk {}{} is unavailable: {}", box(*first),
                     others == 0 ? "" : fmt::format(" and {} more", others),
                     first->problem);
}

std::string Assembly::place_of(const AssemblyChunk& chunk) const {
  return fmt::format("{} at ({})", name, fmt::join(chunk.offsets, ", "));
}

std::uint64_t Assembly::bytes_of(const AssemblyChunk& chunk) const {
  return dtype.size * volume(chunk.sizes);
}

std::pair<std::size_t, std::size_t> Assembly::chunks_in(
    std::uint64_t offset, std::uint64_t end) const {
  const auto first =
      std::ranges::upper_bound(chunks, offset, {}, &AssemblyChunk::reach);
  const auto last = std::ranges::lower_bound(first, chunks.end(), end, {},
                                             &AssemblyChunk::begin);
  return {static_cast<std::size_t>(first - chunks.begin()),
          static_cast<std::size_t>(last - chunks.begin())};
}

AssemblyReader::AssemblyReader(const Assembly& assembly, OpenItem open_item,
                               bool check)
    : assembly_(assembly), open_item_(std::move(open_item)), check_(check) {}

Result<> AssemblyReader::read_at(std::uint64_t offset,
                                 std::span<std::byte> to) {
  const auto [first, last] = assembly_.chunks_in(offset, offset + to.size());
  for (std::size_t chunk = first; chunk < last; ++chunk)
    if (assembly_.chunks[chunk].end > offset)
      TRY(read_chunk(chunk, offset, to));
  return {};
}

Result<AssemblyItem*> AssemblyReader::item(std::size_t chunk) {
  if (memory_ > kMostCached) {
    items_.clear();
    memory_ = 0;
  }
  std::unique_ptr<AssemblyItem>& item = items_[chunk];
  if (item == nullptr) {
    item = TRY(open_item_(assembly_, assembly_.chunks[chunk])
                   .in(assembly_.place_of(assembly_.chunks[chunk])));
    memory_ += item->memory();
    if (check_ && checked_.insert(chunk).second)
      TRY(item->check().in(assembly_.place_of(assembly_.chunks[chunk])));
  }
  return item.get();
}

Result<> AssemblyReader::read_chunk(std::size_t chunk, std::uint64_t offset,
                                    std::span<std::byte> to) {
  const Runs runs(assembly_, assembly_.chunks[chunk]);
  const std::uint64_t end = offset + to.size();
  const std::uint64_t length = runs.length();
  std::uint64_t run = runs.first_behind(offset);
  // Perhaps only rows of other chunks are needed.
  if (run == runs.count() || runs.place(run) >= end)
    return {};
  AssemblyItem* const from = TRY(item(chunk));
  // Short runs are copied many at a time, from a view if there is one.
  const std::uint64_t together =
      length >= kLongRun ? 1 : std::max<std::uint64_t>(1, kStaging / length);
  const StreamCopy copier(to.size());
  while (run < runs.count()) {
    std::uint64_t count = 1;
    while (count < together && run + count < runs.count() &&
           runs.place(run + count) < end)
      ++count;
    const std::uint64_t place = runs.place(run);
    if (place >= end)
      break;
    if (count == 1) {
      const std::uint64_t skipped = place < offset ? offset - place : 0;
      const std::uint64_t last = std::min(place + length, end);
      TRY(from->read_at(
          run * length + skipped,
          to.subspan(place + skipped - offset, last - place - skipped)));
    } else {
      const Bytes together_bytes =
          TRY(stretch(*from, run * length, count * length));
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t at = runs.place(run + i);
        const std::uint64_t skipped = at < offset ? offset - at : 0;
        const std::uint64_t last = std::min(at + length, end);
        copier.copy(
            together_bytes.subspan(i * length + skipped, last - at - skipped),
            to.subspan(at + skipped - offset, last - at - skipped));
      }
    }
    run += count;
  }
  return {};
}

Result<Bytes> AssemblyReader::stretch(AssemblyItem& item, std::uint64_t offset,
                                      std::uint64_t size) {
  if (const std::optional<Bytes> there = item.view(offset, size))
    return *there;
  staging_.resize(std::max<std::size_t>(staging_.size(), size));
  const std::span<std::byte> room = std::span(staging_).first(size);
  TRY(item.read_at(offset, room));
  return room;
}

}  // namespace postflight
