// torch.save from 0.1.10 to 1.5: five pickles back to back (magic number,
// protocol, the writer's system, the object, the keys of the storages), then
// each storage as a count and its bytes, always little-endian.

#include <algorithm>
#include <map>
#include <optional>

#include "checkpoint/torch/pickle_streams.h"
#include "checkpoint/torch/sources.h"
#include "checkpoint/torch/tree_builder.h"

namespace postflight {
namespace {

class LegacyStream {
 public:
  LegacyStream(std::uint32_t file, const SourceContext& context)
      : context_(context),
        checkpoint_(context.checkpoint),
        data_(*context.checkpoint.files[file]),
        file_(file) {}

  Result<> add() {
    TRY(next_pickle("magic number"));
    const Value protocol = TRY(next_pickle("protocol"));
    constexpr std::int64_t kProtocol = 1001;
    if (!protocol.is(Kind::kInteger) || protocol.integer() != kProtocol)
      return fail(ErrorKind::kUnsupported,
                  "a torch.save stream of a protocol other than {}", kProtocol);
    TRY(next_pickle("system"));
    const Value object = TRY(next_pickle("object"));
    TreeBuilder builder(checkpoint_.tree,
                        [this](const Value& id, StorageReference& reference) {
                          return resolve(id, reference);
                        });
    TRY(place(builder, object, context_));
    // Where storages are is known only now; a stream that is truncated from
    // here on still has its tree.
    Result<Value> keys = next_pickle("list of storages");
    if (!keys)
      truncated_with(std::string(keys.error().message()));
    else
      TRY(lay_out(*keys));
    spread_problems(checkpoint_.tree);
    return {};
  }

 private:
  struct Known {
    std::uint32_t storage = 0;
    Dtype dtype;
    bool found = false;
  };

  Result<Value> next_pickle(std::string_view what) {
    const Pickle pickle =
        TRY(load_pickle(checkpoint_, data_, data_.bytes().subspan(at_))
                .in(fmt::format("the {} at byte {}", what, at_)));
    at_ += pickle.size;
    return pickle.root;
  }

  std::uint32_t resolve(const Value& id, StorageReference& reference) {
    if (!read_storage_id(id, reference) || !reference.dtype.known())
      return kNoIndex;
    const auto [known, fresh] = known_.try_emplace(reference.key);
    if (fresh) {
      Storage& storage = checkpoint_.tree.storages.emplace_back();
      storage.key = reference.key;
      storage.file = file_;
      storage.size = reference.bytes;
      known->second = {
          static_cast<std::uint32_t>(checkpoint_.tree.storages.size() - 1),
          reference.dtype, false};
    }
    // (key of the view, offset, count) in elements.
    const std::span<const Value> parts = id.items();
    if (parts.size() > 5 && parts[5].is(Kind::kTuple) &&
        parts[5].items().size() == 3) {
      const std::span<const Value> view = parts[5].items();
      const auto number = [](const Value& value) {
        return value.is(Kind::kInteger) && value.integer() >= 0
                   ? std::optional(static_cast<std::uint64_t>(value.integer()))
                   : std::nullopt;
      };
      const auto offset = number(view[1]);
      const auto count = number(view[2]);
      const auto bytes =
          count ? checked_multiply(*count, std::uint64_t{reference.dtype.size})
                : std::nullopt;
      if (!offset || !bytes)
        return kNoIndex;
      reference.view_offset = *offset;
      reference.bytes = *bytes;
    }
    return known->second.storage;
  }

  Result<> lay_out(const Value& keys) {
    if (!keys.is(Kind::kList))
      return fail(ErrorKind::kCorrupt, "its list of storages is not a list");
    std::uint64_t whole = 0;
    for (std::size_t i = 0; i < keys.items().size(); ++i) {
      const Value& key = keys.items()[i];
      if (!is_text(key))
        return fail(ErrorKind::kCorrupt, "a key of a storage is not a string");
      const auto known = known_.find(key.text());
      if (known == known_.end()) {
        if (const auto end = end_of_unknown(keys.items().subspan(i + 1))) {
          report("unused_storage", Severity::kWarning,
                 fmt::format("storage '{}' is not used by any tensor",
                             key.text()));
          at_ = *end;
          ++whole;
          continue;
        }
        report("unused_storage", Severity::kError,
               fmt::format("storage '{}' is not used by any tensor, so what "
                           "follows it cannot be found",
                           key.text()));
        mark_missing(
            fmt::format("comes after '{}', whose size is not known, "
                        "and cannot be found",
                        key.text()));
        return {};
      }
      if (known->second.found)
        report("duplicate_storage", Severity::kError,
               fmt::format("storage '{}' appears in the stream more than once; "
                           "torch takes the last",
                           key.text()));
      Storage& storage = checkpoint_.tree.storages[known->second.storage];
      const std::uint64_t left = data_.size() - at_;
      if (left < sizeof(std::int64_t) ||
          left - sizeof(std::int64_t) < storage.size)
        break;
      const auto count =
          load_little_endian<std::uint64_t>(data_.bytes().data() + at_);
      const auto stated =
          checked_multiply(count, std::uint64_t{known->second.dtype.size});
      if (stated != storage.size)
        return fail(ErrorKind::kCorrupt,
                    "storage '{}' has {} elements at byte {}, but the object "
                    "says it has {} bytes",
                    key.text(), count, at_, storage.size);
      at_ += sizeof(std::int64_t);
      storage.extent = {at_, storage.size};
      known->second.found = true;
      at_ += storage.size;
      ++whole;
    }
    if (whole < keys.items().size())
      truncated_with(
          fmt::format("the stream ends inside its storages: {} of {} are whole",
                      whole, keys.items().size()));
    else if (at_ < data_.size())
      report(
          "trailing_bytes", Severity::kWarning,
          fmt::format("{} bytes follow the last storage", data_.size() - at_));
    mark_missing("is not in the stream's list");
    return {};
  }

  // The end of a storage whose element size is unknown: the one size for which
  // the next storage begins validly, or the file ends.
  std::optional<std::uint64_t> end_of_unknown(
      std::span<const Value> following) const {
    const auto count_at = [this](std::uint64_t at) {
      return at <= data_.size() && data_.size() - at >= sizeof(std::uint64_t)
                 ? std::optional(load_little_endian<std::uint64_t>(
                       data_.bytes().data() + at))
                 : std::nullopt;
    };
    const auto next = following.empty() || !is_text(following[0])
                          ? known_.end()
                          : known_.find(following[0].text());
    const auto count = count_at(at_);
    std::optional<std::uint64_t> found;
    for (const std::uint64_t size : {1U, 2U, 4U, 8U, 16U}) {
      const auto bytes = count ? checked_multiply(*count, size) : std::nullopt;
      const auto end = bytes ? checked_add(*bytes, at_ + sizeof(std::uint64_t))
                             : std::nullopt;
      if (!end || *end > data_.size())
        break;
      const auto stated = count_at(*end);
      const bool fits =
          following.empty()
              ? *end == data_.size()
              : next != known_.end() && stated &&
                    checked_multiply(*stated,
                                     std::uint64_t{next->second.dtype.size}) ==
                        checkpoint_.tree.storages[next->second.storage].size;
      if (fits && found)
        return std::nullopt;
      if (fits)
        found = end;
    }
    return found;
  }

  static bool is_text(const Value& value) {
    return value.is(Kind::kString) || value.is(Kind::kLegacyString);
  }

  void report(std::string kind, Severity severity, std::string message) {
    checkpoint_.findings.push_back({std::move(kind), severity,
                                    std::move(message),
                                    fmt::format("byte {}", at_)});
  }

  // Sets why storages were not found.
  void mark_missing(std::string_view why) {
    Tree& tree = checkpoint_.tree;
    for (auto& [key, known] : known_)
      if (Storage& storage = tree.storages[known.storage];
          !known.found && storage.problem.empty())
        storage.problem = tree.keep(fmt::format("storage '{}' {}", key, why));
  }

  void truncated_with(const std::string& how) {
    checkpoint_.truncation = fmt::format(
        "{}; the writer was probably killed, or the copy was interrupted", how);
    checkpoint_.findings.push_back({"truncated", Severity::kError,
                                    checkpoint_.truncation,
                                    data_.path().filename().string()});
    mark_missing("is lost with the file's end");
  }

  const SourceContext& context_;
  CheckpointContents& checkpoint_;
  DataFile& data_;
  const std::uint32_t file_;
  std::uint64_t at_ = 0;
  std::map<std::string_view, Known> known_;
};

}  // namespace

bool is_legacy_stream(Bytes file, const Limits& limits) {
  // The magic number takes 16 bytes as torch pickles it, and 28 in protocol 0.
  constexpr std::size_t kMostMagic = 64;
  Machine machine(limits);
  const Result<Pickle> first =
      machine.load(file.first(std::min(file.size(), kMostMagic)));
  return first && first->root.is(Kind::kBigInteger) &&
         is_legacy_magic(first->root.text());
}

Result<> add_legacy_stream(std::uint32_t file, const SourceContext& context) {
  return LegacyStream(file, context).add();
}

}  // namespace postflight
