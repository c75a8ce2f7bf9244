#include "checkpoint/torch/salvage.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/units.h"
#include "checkpoint/torch/storage_reference.h"
#include "checkpoint/zip/format.h"
#include "pickle/machine.h"
#include "pickle/parts.h"
#include "stream/codec/inflater.h"

namespace postflight {
namespace {

constexpr std::uint64_t kDescriptor = 16;
constexpr std::uint64_t kWideDescriptor = 24;
// A pickle that inflates to more is not one of a checkpoint of this size.
constexpr std::uint64_t kTimesInflated = 16;
constexpr std::uint64_t kLeastInflated = 16 << 20;

struct Local {
  std::string_view name;
  std::uint64_t data = 0;  // where its bytes begin
  std::uint16_t method = 0;
  // Writers other than torch state sizes, unless a descriptor follows.
  bool states_sizes = false;
  std::uint32_t crc32 = 0;
  std::uint64_t packed = 0;
  std::uint64_t size = 0;
};

std::optional<Local> read_local(Bytes file, std::uint64_t at) {
  if (at > file.size() || file.size() - at < kLocalHeaderSize ||
      !as_text(file.subspan(at)).starts_with(kLocalSignature))
    return std::nullopt;
  const std::byte* const header = file.data() + at;
  const std::uint64_t name = load_little_endian<std::uint16_t>(header + 26);
  const std::uint64_t extra = load_little_endian<std::uint16_t>(header + 28);
  if (file.size() - at - kLocalHeaderSize < name + extra)
    return std::nullopt;
  constexpr std::uint16_t kHasDescriptor = 8;
  Local local;
  local.name = as_text(file.subspan(at + kLocalHeaderSize, name));
  local.data = at + kLocalHeaderSize + name + extra;
  local.method = load_little_endian<std::uint16_t>(header + 8);
  local.crc32 = load_little_endian<std::uint32_t>(header + 14);
  local.packed = load_little_endian<std::uint32_t>(header + 18);
  local.size = load_little_endian<std::uint32_t>(header + 22);
  local.states_sizes =
      (load_little_endian<std::uint16_t>(header + 6) & kHasDescriptor) == 0 &&
      local.packed != kSaturated && local.size != kSaturated;
  return local;
}

// The storages that a pickle names, with their sizes, and how many tensors
// use each.
struct Wanted {
  std::map<std::string_view, std::uint64_t> sizes;
  std::map<std::string_view, std::uint64_t> uses;
  std::uint64_t tensors = 0;
};

Wanted wanted_of(const Machine& machine) {
  Wanted wanted;
  for (const Object* const object : machine.objects()) {
    if (!object->arguments.is(Kind::kTuple))
      continue;
    for (const Value& argument : object->arguments.items()) {
      StorageReference reference;
      if (!argument.is(Kind::kPersistent) ||
          !read_storage_id(argument.persistent_id(), reference) ||
          !reference.dtype.known())
        continue;
      wanted.sizes.emplace(reference.key, reference.bytes);
      ++wanted.uses[reference.key];
      ++wanted.tensors;
    }
  }
  return wanted;
}

class Salvager {
 public:
  Salvager(Bytes file, const Limits& limits) : file_(file), machine_(limits) {}

  Salvage run() {
    std::uint64_t at = 0;
    while (auto local = read_local(file_, at)) {
      const auto size = size_of(*local);
      if (!size)
        break;
      if (*size > file_.size() - local->data)
        break;  // this one is truncated
      ++records_;
      // Small deflated records are skipped: none of them is necessary.
      if (local->method == kStored || record_of(*local) == "data.pkl" ||
          local->name.find("/data/") != std::string_view::npos)
        keep(*local, at, *size);
      at = local->data + *size;
      if (*size > 0 && !local->states_sizes)
        at = skip_descriptor(at);
    }
    end_ = at;
    // Without the pickle that names the tensors the rest is useless.
    if (!has_pickle_)
      return {};
    summarise();
    return std::move(found_);
  }

 private:
  // The size of a record in the file: as its header states it; for data.pkl and
  // the storages as the pickle does; the other, small ones end at the next
  // descriptor.
  std::optional<std::uint64_t> size_of(Local& local) {
    const std::string_view record = record_of(local);
    if (local.method == kDeflated)
      return deflated_size_of(local, record == "data.pkl");
    if (local.method != kStored)
      return std::nullopt;
    if (record == "data.pkl") {
      const Result<Pickle> pickle = machine_.load(file_.subspan(local.data));
      if (!pickle)
        return std::nullopt;
      wanted_ = wanted_of(machine_);
      has_pickle_ = true;
      return pickle->size;
    }
    if (local.states_sizes)
      return local.packed;
    if (record.starts_with("data/")) {
      const auto found = wanted_.sizes.find(record.substr(5));
      return found == wanted_.sizes.end() ? std::nullopt
                                          : std::optional(found->second);
    }
    constexpr std::size_t kMostSmall = 4096;
    const std::string_view rest = as_text(file_.subspan(
        local.data,
        std::min<std::uint64_t>(kMostSmall, file_.size() - local.data)));
    const std::size_t mark = rest.find(kDescriptorSignature);
    return mark == std::string_view::npos ? std::nullopt
                                          : std::optional<std::uint64_t>(mark);
  }

  static std::string_view record_of(const Local& local) {
    const std::size_t slash = local.name.find('/');
    return slash == std::string_view::npos ? local.name
                                           : local.name.substr(slash + 1);
  }

  // A deflated record marks its own end. Its size is that of what comes out,
  // which the pickle is read from.
  std::optional<std::uint64_t> deflated_size_of(Local& local, bool is_pickle) {
    if (local.states_sizes && !is_pickle)
      return local.packed;
    constexpr std::size_t kRoom = 256 << 10;
    const std::uint64_t most = file_.size() * kTimesInflated + kLeastInflated;
    Inflater inflater(DeflateFormat::kRaw);
    if (!inflater.ready())
      return std::nullopt;
    std::vector<std::byte> room(kRoom);
    Bytes rest = file_.subspan(local.data);
    if (local.states_sizes)
      rest = rest.first(std::min<std::uint64_t>(rest.size(), local.packed));
    const std::uint64_t available = rest.size();
    std::uint64_t size = 0;
    for (;;) {
      std::span<std::byte> out = room;
      const Inflater::Status status = inflater.step(rest, out);
      const std::uint64_t made = room.size() - out.size();
      size += made;
      if (is_pickle && size <= most)
        pickle_.insert(pickle_.end(), room.begin(),
                       room.begin() + static_cast<std::ptrdiff_t>(made));
      if (status == Inflater::Status::kEnd)
        break;
      if (status != Inflater::Status::kMore)
        return std::nullopt;  // truncated or damaged
    }
    local.size = size;
    if (is_pickle) {
      const Result<Pickle> pickle = machine_.load(pickle_);
      if (size != pickle_.size() || !pickle)
        return std::nullopt;
      wanted_ = wanted_of(machine_);
      has_pickle_ = true;
    }
    return available - rest.size();
  }

  std::uint64_t skip_descriptor(std::uint64_t at) const {
    const std::string_view rest = as_text(file_.subspan(at));
    if (!rest.starts_with(kDescriptorSignature))
      return at;
    for (const std::uint64_t size : {kDescriptor, kWideDescriptor})
      if (rest.size() >= size && rest.substr(size).starts_with(kLocalSignature))
        return at + size;
    return std::min<std::uint64_t>(at + kDescriptor, file_.size());
  }

  void keep(const Local& local, std::uint64_t header, std::uint64_t size) {
    ZipEntry entry;
    entry.name = local.name;
    entry.size = entry.compressed_size = size;
    entry.header_offset = header;
    entry.method = local.method;
    const std::uint64_t after = local.data + size;
    if (local.states_sizes || local.method == kDeflated)
      entry.size = local.size;
    if (local.states_sizes)
      entry.crc32 = local.crc32;
    else if (size > 0 && file_.size() - after >= kDescriptor &&
             as_text(file_.subspan(after)).starts_with(kDescriptorSignature))
      entry.crc32 = load_little_endian<std::uint32_t>(file_.data() + after + 4);
    found_.entries.push_back(entry);
    found_.extents.push_back({local.data, size});
  }

  void summarise() {
    std::uint64_t whole = 0;
    std::map<std::string_view, std::uint64_t> missing = wanted_.sizes;
    for (const ZipEntry& entry : found_.entries) {
      const std::size_t data = entry.name.find("/data/");
      if (data == std::string_view::npos)
        continue;
      const std::string_view key = entry.name.substr(data + 6);
      if (missing.erase(key) > 0)
        whole += wanted_.uses[key];
    }
    // Each missing record took its bytes, a header with padding and a directory
    // entry; the last few are small.
    constexpr std::uint64_t kAround = 192;
    std::uint64_t lost = 0;
    for (const auto& [key, size] : missing)
      lost += size + kAround;
    const std::uint64_t there = file_.size() - end_;
    lost = lost > there ? lost - there : 0;
    if (has_end()) {
      found_.summary = fmt::format(
          "the file has an end record, but its directory is damaged; {} of {} "
          "tensors were found whole without it",
          whole, wanted_.tensors);
      return;
    }
    found_.summary = fmt::format(
        "the file ends {}; {} of {} tensors are whole; the writer was probably "
        "killed, or the copy was interrupted",
        missing.empty()
            ? end_in_words()
            : fmt::format("about {} before its directory", human_bytes(lost)),
        whole, wanted_.tensors);
  }

  // Whether the end record is in its place, so the file is not truncated.
  bool has_end() const {
    constexpr std::size_t kEndSize = 22;
    return file_.size() >= kEndSize &&
           as_text(file_.last(kEndSize)).starts_with(kEndSignature);
  }

  // Where a file ends that has all storages.
  std::string end_in_words() const {
    const Bytes after = file_.subspan(end_);
    Cursor cursor(after);
    std::uint64_t entries = 0;
    while (
        as_text(after.subspan(cursor.offset())).starts_with(kEntrySignature)) {
      ++entries;
      const Result<Bytes> entry = cursor.take(kEntrySize);
      std::uint64_t more = 0;  // name, fields and comment
      for (const std::size_t at : {28U, 30U, 32U})
        more +=
            entry ? load_little_endian<std::uint16_t>(entry->data() + at) : 0;
      if (!entry || !cursor.skip(more))
        return "inside its directory";
    }
    if (entries == 0)
      return "just before its directory";
    return entries < records_ ? "inside its directory"
                              : "just after its directory";
  }

  Bytes file_;
  std::vector<std::byte> pickle_;  // inflated
  Machine machine_;
  Wanted wanted_;
  Salvage found_;
  std::uint64_t end_ = 0;
  std::uint64_t records_ = 0;  // that are whole, kept or not
  bool has_pickle_ = false;
};

}  // namespace

Salvage salvage_zip(Bytes file, const Limits& limits) {
  return Salvager(file, limits).run();
}

}  // namespace postflight
