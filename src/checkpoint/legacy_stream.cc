// torch.save from 0.1.10 to 1.5: five pickles back to back (magic number,
// protocol, the writer's system, the object, the keys of the storages), then
// each storage as a count and its bytes, always little-endian.

#include <algorithm>
#include <map>

#include "checkpoint/checkpoint.h"
#include "checkpoint/pickle_streams.h"

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
                  "a torch.save stream of another protocol than {}", kProtocol);
    TRY(next_pickle("system"));
    const Value object = TRY(next_pickle("object"));
    TreeBuilder builder(checkpoint_.tree,
                        [this](const Value& id, StorageReference& reference) {
                          return resolve(id, reference);
                        });
    TRY(place(builder, object, context_));
    // Where storages lie is known only now; a stream that breaks off from here
    // on still has its tree.
    Result<Value> keys = next_pickle("list of storages");
    if (!keys)
      broke_off(std::string(keys.error().message()));
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
    data_.machines.push_back(std::make_unique<Machine>(context_.limits));
    Result<Pickle> pickle =
        data_.machines.back()->load(data_.bytes().subspan(at_));
    if (!pickle)
      return tl::unexpected(
          std::move(pickle.error())
              .in(fmt::format("the {} at byte {}", what, at_)));
    at_ += pickle->size;
    return pickle->root;
  }

  std::uint32_t resolve(const Value& id, StorageReference& reference) {
    if (!read_storage_id(id, reference))
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
      return fail(ErrorKind::kCorrupt,
                  "its list of storages is no list but something else");
    std::uint64_t whole = 0;
    for (const Value& key : keys.items()) {
      if (!key.is(Kind::kString) && !key.is(Kind::kLegacyString))
        return fail(ErrorKind::kCorrupt, "a key of a storage is no text");
      const auto known = known_.find(key.text());
      if (known == known_.end()) {
        // Its element size is not known, so neither is where the next begins.
        checkpoint_.findings.push_back(
            {"unused_storage", Severity::kError,
             fmt::format("storage '{}' is used by no tensor, so that what "
                         "follows it cannot be found",
                         key.text()),
             fmt::format("byte {}", at_)});
        return {};
      }
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
      broke_off(
          fmt::format("the stream ends inside its storages: {} of {} are whole",
                      whole, keys.items().size()));
    else if (at_ < data_.size())
      checkpoint_.findings.push_back(
          {"trailing_bytes", Severity::kWarning,
           fmt::format("{} bytes follow the last storage", data_.size() - at_),
           fmt::format("byte {}", at_)});
    for (auto& [key, known] : known_)
      if (Storage& storage = checkpoint_.tree.storages[known.storage];
          !known.found && storage.problem.empty())
        storage.problem = checkpoint_.tree.keep(
            fmt::format("storage '{}' is not in the stream's list", key));
    return {};
  }

  void broke_off(const std::string& how) {
    checkpoint_.truncation = fmt::format(
        "{}; the writer was probably killed, or the copy broke off", how);
    checkpoint_.findings.push_back({"truncated", Severity::kError,
                                    checkpoint_.truncation,
                                    data_.path().filename().string()});
    for (auto& [key, known] : known_)
      if (!known.found)
        checkpoint_.tree.storages[known.storage].problem =
            checkpoint_.tree.keep(
                fmt::format("storage '{}' is lost with the file's end", key));
  }

  const SourceContext& context_;
  Checkpoint& checkpoint_;
  DataFile& data_;
  const std::uint32_t file_;
  std::uint64_t at_ = 0;
  std::map<std::string_view, Known> known_;
};

}  // namespace

Result<> add_legacy_stream(std::uint32_t file, const SourceContext& context) {
  return LegacyStream(file, context).add();
}

}  // namespace postflight
