#include "checkpoint/verification/safety.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "checkpoint/model/data_file.h"
#include "checkpoint/torch/archives.h"
#include "checkpoint/torch/pickle_file.h"

namespace postflight {
namespace {

class Judge {
 public:
  Judge(const Checkpoint& checkpoint, bool quickly)
      : checkpoint_(checkpoint), quickly_(quickly) {}

  SafetyVerdict judge() && {
    judge_encoded_items();
    judge_odd_items();
    if (quickly_ && !encoded_.empty())
      verdict_.add({Safety::kUnknown, "not_looked_into",
                    "items that went through transforms were not decoded; "
                    "postflight ckpt verify looks into them",
                    ""});
    for (std::uint32_t i = 0; i < checkpoint_.files().size(); ++i) {
      const DataFile& file = *checkpoint_.files()[i];
      const bool lists_shards =
          file.path().filename().string().ends_with(".index.json");
      if (!lists_shards && !encoded_.contains(i))
        judge(file.bytes(), file.path().filename().string());
    }
    return std::move(verdict_);
  }

  SafetyVerdict judge_items() && {
    judge_odd_items();
    return std::move(verdict_);
  }

 private:
  void judge(Bytes bytes, const std::string& place) {
    const Result<PickleFile> file =
        PickleFile::read(bytes, checkpoint_.limits());
    if (file)
      verdict_.merge(file->verdict(), several() ? place : "");
    else
      verdict_.add({Safety::kUnknown, "not_looked_into",
                    std::string(file.error().message()), place});
  }

  bool several() const { return checkpoint_.files().size() > 1; }

  void judge_encoded_items() {
    const OpenItem open_item = checkpoint_.item_opener();
    for (const Assembly* const assembly : checkpoint_.assemblies())
      for (const AssemblyChunk& chunk : assembly->chunks) {
        if (chunk.transforms.empty() || !chunk.problem.empty())
          continue;
        encoded_.insert(chunk.file);
        if (quickly_)
          continue;
        const Result<std::unique_ptr<AssemblyItem>> item =
            open_item(*assembly, chunk);
        const Checkpoint* const inner = item ? (*item)->checkpoint() : nullptr;
        if (inner != nullptr)
          judge(inner->files().front()->bytes(), assembly->place_of(chunk));
        else if (!item)
          verdict_.add({Safety::kUnknown, "not_looked_into",
                        std::string(item.error().message()),
                        assembly->place_of(chunk)});
      }
  }

  // Items are archives that lie back to back, which is how their file is
  // looked into. Metadata can say that one begins elsewhere, such as in the
  // middle of another's tensor.
  void judge_odd_items() {
    if (checkpoint_.format() != Format::kDistributed)
      return;
    for (const Assembly* const assembly : checkpoint_.assemblies())
      for (const AssemblyChunk& chunk : assembly->chunks) {
        if (!chunk.transforms.empty() || !chunk.problem.empty())
          continue;
        const Bytes file = checkpoint_.files()[chunk.file]->bytes();
        const Extents& archives = archives_of(chunk.file, file);
        const std::pair place{chunk.extent.offset, chunk.extent.size};
        if (archives.empty() || archives.contains(place) ||
            !judged_.insert({chunk.file, place}).second)
          continue;
        const Result<Bytes> item =
            slice(file, chunk.extent.offset, chunk.extent.size);
        if (!item)
          continue;
        // Many could be the same bytes, but for the first.
        odd_bytes_ += item->size();
        if (odd_bytes_ > kMostTimes * file.size()) {
          verdict_.add({Safety::kUnknown, "not_looked_into",
                        "items overlap each other; not all were looked into",
                        assembly->place_of(chunk)});
          return;
        }
        judge(*item, assembly->place_of(chunk));
      }
  }

  using Extents = std::set<std::pair<std::uint64_t, std::uint64_t>>;

  // Empty if the file consists of no archives, as safetensors do not.
  const Extents& archives_of(std::uint32_t index, Bytes file) {
    const auto [at, fresh] = archives_.try_emplace(index);
    if (fresh)
      for (const Extent& extent :
           find_archives(file, checkpoint_.limits()).extents)
        at->second.emplace(extent.offset, extent.size);
    return at->second;
  }

  static constexpr std::uint64_t kMostTimes = 4;

  const Checkpoint& checkpoint_;
  const bool quickly_;
  SafetyVerdict verdict_;
  std::set<std::uint32_t> encoded_;  // files of items with transforms
  std::map<std::uint32_t, Extents> archives_;
  std::uint64_t odd_bytes_ = 0;
  std::set<std::pair<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>>>
      judged_;
};

}  // namespace

SafetyVerdict safety_of(const Checkpoint& checkpoint, bool quickly) {
  return Judge(checkpoint, quickly).judge();
}

SafetyVerdict safety_of_items(const Checkpoint& checkpoint) {
  return Judge(checkpoint, true).judge_items();
}

}  // namespace postflight
