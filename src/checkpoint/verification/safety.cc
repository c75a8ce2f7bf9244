#include "checkpoint/verification/safety.h"

#include <set>
#include <string>
#include <utility>

#include "checkpoint/model/data_file.h"
#include "checkpoint/torch/pickle_file.h"

namespace postflight {
namespace {

class Judge {
 public:
  Judge(const Checkpoint& checkpoint, bool quickly)
      : checkpoint_(checkpoint), quickly_(quickly) {}

  SafetyVerdict judge() && {
    judge_encoded_items();
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

  const Checkpoint& checkpoint_;
  const bool quickly_;
  SafetyVerdict verdict_;
  std::set<std::uint32_t> encoded_;  // files of items with transforms
};

}  // namespace

SafetyVerdict safety_of(const Checkpoint& checkpoint, bool quickly) {
  return Judge(checkpoint, quickly).judge();
}

}  // namespace postflight
