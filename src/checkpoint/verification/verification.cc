#include "checkpoint/verification/verification.h"

#include <algorithm>
#include <map>
#include <optional>

#include "checkpoint/model/contents.h"
#include "checkpoint/tensor/storage_reader.h"
#include "checkpoint/verification/safety.h"

namespace postflight {
namespace {

// Why the bytes of a storage are unavailable: missing, or compressed in a way
// that is not supported. Empty if they can be read; they may still be wrong.
std::string trouble_with(const Checkpoint& checkpoint, const Storage& storage) {
  const Result<StorageReader> reader = StorageReader::open(checkpoint, storage);
  return reader ? "" : std::string(reader.error().message());
}

void verify_tensors(const Checkpoint& checkpoint, Verification& result) {
  std::vector<std::optional<std::string>> troubles(
      checkpoint.storages().size());        // if known
  std::set<std::string, std::less<>> said;  // records
  for (const Finding& finding : result.findings)
    if (finding.kind == "record_unreadable")
      said.insert(finding.where);
  std::uint64_t shown = 0;
  constexpr std::uint64_t kMostShown = 100;
  for (std::uint32_t i = 0; i < checkpoint.nodes().size(); ++i) {
    const Tensor* const tensor = checkpoint.tensor_at(checkpoint.nodes()[i]);
    if (tensor == nullptr)
      continue;
    ++result.tensors;
    std::string_view problem = tensor->problem;
    if (problem.empty() && tensor->storage != kNoIndex) {
      const Storage& storage = checkpoint.storages()[tensor->storage];
      if (result.broken.contains(storage.assembly)) {
        ++result.unreadable;
        continue;
      }
      std::optional<std::string>& trouble = troubles[tensor->storage];
      if (!trouble)
        trouble = trouble_with(checkpoint, storage);
      if (!trouble->empty() && storage.entry != nullptr &&
          said.contains(storage.entry->name))
        trouble =
            fmt::format("its record {} cannot be read", storage.entry->name);
      problem = *trouble;
    }
    if (problem.empty())
      continue;
    ++result.unreadable;
    if (shown++ < kMostShown)
      result.findings.push_back({"tensor_unreadable", Severity::kError,
                                 std::string(problem), checkpoint.path_of(i)});
  }
  if (shown > kMostShown)
    result.findings.push_back(
        {"tensor_unreadable", Severity::kError,
         fmt::format("{} more tensors cannot be read", shown - kMostShown),
         ""});
}

// Several ranks have the same part of a tensor.
void compare_replicas(const AssemblyItem& item, const Assembly& assembly,
                      const std::string& place, Verification& result) {
  if (const Result<> same = item.check(); !same) {
    result.report("replicas_differ", Severity::kError,
                  std::string(same.error().message()), place);
    result.broken.insert(&assembly);
  }
}

// The items that the tensors of a distributed checkpoint consist of.
void verify_items(const Checkpoint& checkpoint, const VerifyOptions& options,
                  Verification& result) {
  const OpenItem open_item = checkpoint.item_opener();
  for (const Assembly* const assembly : checkpoint.assemblies()) {
    for (const AssemblyChunk& chunk : assembly->chunks) {
      if (!chunk.problem.empty())
        continue;  // which is a problem of the tensor
      const std::string place = assembly->place_of(chunk);
      const Result<std::unique_ptr<AssemblyItem>> item =
          open_item(*assembly, chunk);
      if (!item) {
        result.findings.push_back({"bad_item", Severity::kError,
                                   std::string(item.error().message()), place});
        result.broken.insert(assembly);
        continue;
      }
      const Checkpoint* const inner = (*item)->checkpoint();
      if (inner == nullptr) {
        if (!chunk.replicas.empty())
          compare_replicas(**item, *assembly, place, result);
        continue;
      }
      const std::size_t before = result.findings.size();
      for (const Finding& finding : inner->findings())
        result.report(finding.kind, finding.severity, finding.message,
                      finding.where);
      const DataFile& file = *inner->files().front();
      if (file.zip)
        verify_archive(*inner, file, options, result);
      for (std::size_t i = before; i < result.findings.size(); ++i)
        result.findings[i].where =
            fmt::format("{}: {}", place, result.findings[i].where);
    }
  }
}

// Whether there is a file for each rank up to the last. An unreadable one is
// there, and already has a finding.
void verify_numbers(const Checkpoint& checkpoint, Verification& result) {
  // Of files with other names the missing ones were found on opening.
  if (std::ranges::none_of(checkpoint.files(), [](const DataFile* file) {
        return rank_of_file(file->path().filename().string()).has_value();
      }))
    return;
  std::set<std::int64_t> ranks;
  for (std::uint32_t top = 1; top < checkpoint.nodes().size();
       top = checkpoint.nodes()[top].end)
    ranks.insert(checkpoint.nodes()[top].key.number);
  for (const Finding& finding : checkpoint.findings())
    if (finding.kind == "unreadable_rank")
      if (const auto rank = rank_of_file(finding.where))
        ranks.insert(*rank);
  std::int64_t expected = 0;
  for (const std::int64_t rank : ranks) {
    for (; expected < rank && result.findings.size() < 1000; ++expected)
      result.findings.push_back(
          {"missing_rank", Severity::kError,
           fmt::format("rank {} has no file, though rank {} has one", expected,
                       rank),
           fmt::format("checkpoint_{}.pt", expected)});
    expected = rank + 1;
  }
}

}  // namespace

void Verification::report(std::string kind, Severity severity,
                          std::string message, std::string where) {
  constexpr std::size_t kMostFindings = 10'000;
  if (findings.size() < kMostFindings)
    findings.push_back(
        {std::move(kind), severity, std::move(message), std::move(where)});
}

Verification verify(const Checkpoint& checkpoint,
                    const VerifyOptions& options) {
  Verification result;
  result.findings.assign(checkpoint.findings().begin(),
                         checkpoint.findings().end());
  for (const DataFile* const file : checkpoint.files())
    if (file->zip)
      verify_archive(checkpoint, *file, options, result);
  verify_items(checkpoint, options, result);
  verify_tensors(checkpoint, result);
  result.safety = safety_of(checkpoint);
  if (checkpoint.format() == Format::kRanks && !checkpoint.joins_ranks())
    verify_ranks(checkpoint, result);
  return result;
}

void verify_ranks(const Checkpoint& checkpoint, Verification& result) {
  const std::span<const Node> nodes = checkpoint.nodes();
  if (nodes.empty() || nodes[0].kind != NodeKind::kDict || nodes.size() < 2 ||
      nodes[1].key.kind != Key::Kind::kInteger)
    return;  // only one rank was opened
  struct Place {
    std::string dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t ranks = 0;
    bool same_dtype = true;
    bool same_shape = true;
  };
  std::map<std::string, Place> places;
  verify_numbers(checkpoint, result);
  std::uint64_t ranks = 0;
  for (std::uint32_t top = 1; top < nodes.size(); top = nodes[top].end) {
    ++ranks;
    for (std::uint32_t i = top; i < nodes[top].end; ++i) {
      const Tensor* const tensor = checkpoint.tensor_at(nodes[i]);
      if (tensor == nullptr)
        continue;
      std::string path;
      const std::vector<Key> keys = checkpoint.keys_to(i);
      for (std::size_t k = 1; k < keys.size(); ++k)
        append_key(keys[k], path);
      const auto [at, fresh] = places.try_emplace(path);
      Place& place = at->second;
      if (fresh) {
        place.dtype = tensor->dtype.name;
        place.shape.assign(tensor->shape.begin(), tensor->shape.end());
      }
      place.same_dtype &= place.dtype == tensor->dtype.name;
      place.same_shape &= std::ranges::equal(place.shape, tensor->shape);
      ++place.ranks;
    }
  }
  std::uint64_t other_shapes = 0;
  for (const auto& [path, place] : places) {
    if (place.ranks < ranks)
      result.findings.push_back(
          {"rank_keys", Severity::kWarning,
           fmt::format("only {} of {} ranks have this tensor", place.ranks,
                       ranks),
           path});
    if (!place.same_dtype)
      result.findings.push_back({"rank_dtypes", Severity::kWarning,
                                 "its dtype differs between ranks", path});
    other_shapes += place.same_shape ? 0 : 1;
  }
  if (other_shapes > 0)
    result.findings.push_back(
        {"rank_shapes", Severity::kNote,
         fmt::format("{} tensors have different shapes on different ranks, as "
                     "uneven shards do",
                     other_shapes),
         ""});
}

}  // namespace postflight
