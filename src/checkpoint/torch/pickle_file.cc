#include "checkpoint/torch/pickle_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/torch/container_search.h"
#include "checkpoint/torch/joblib_arrays.h"
#include "checkpoint/torch/storage_reference.h"
#include "pickle/audit/expansion.h"
#include "pickle/audit/readers.h"
#include "pickle/nested.h"

namespace postflight {
namespace {

bool starts_with_proto(Bytes bytes) {
  return !bytes.empty() && bytes.front() == std::byte{0x80};
}

bool is_zero(std::byte byte) {
  return byte == std::byte{0};
}

constexpr std::string_view kNestedLoader = "torch.storage._load_from_bytes";

// The folders of TorchScript archives, whose constants are a pickle of their
// own: torch.load hands such an archive to the reader in C++.
std::set<std::string, std::less<>> script_folders(
    const std::vector<PickleStream>& streams) {
  constexpr std::string_view kConstants = "/constants.pkl";
  std::set<std::string, std::less<>> folders;
  for (const PickleStream& stream : streams)
    if (stream.where.ends_with(kConstants))
      folders.insert(
          stream.where.substr(0, stream.where.size() - kConstants.size() + 1));
  return folders;
}

bool is_in_any(const std::set<std::string, std::less<>>& folders,
               std::string_view where) {
  for (std::size_t end = where.find('/'); !folders.empty() && end != where.npos;
       end = where.find('/', end + 1))
    if (folders.contains(where.substr(0, end + 1)))
      return true;
  return false;
}

// The storages behind the pickles of a legacy file: what the object says of
// them, and the keys in the order of the file, which is the last pickle.
class LegacyStorages {
 public:
  // `machine` has just read `root`.
  void meet(const Machine& machine, const Value& root) {
    for (const Object* const object : machine.objects()) {
      if (!object->arguments.is(Kind::kTuple))
        continue;
      for (const Value& argument : object->arguments.items()) {
        StorageReference reference;
        if (argument.is(Kind::kPersistent) &&
            read_storage_id(argument.persistent_id(), reference) &&
            reference.dtype.known())
          sizes_.emplace(reference.key, reference.dtype.size);
      }
    }
    keys_ = root.is(Kind::kList) ? root.items() : std::span<const Value>();
  }

  // Where the storages end that begin at `at`. An element of one that no tensor
  // uses may have any size.
  std::uint64_t end(Bytes bytes, std::uint64_t at) const {
    for (const Value& key : keys_) {
      if (bytes.size() - at < sizeof(std::uint64_t))
        return bytes.size();  // truncated
      const auto count = load_little_endian<std::uint64_t>(bytes.data() + at);
      at += sizeof(std::uint64_t);
      const auto size = key.is(Kind::kString) || key.is(Kind::kLegacyString)
                            ? sizes_.find(std::string(key.text()))
                            : sizes_.end();
      std::optional<std::uint64_t> whole;
      if (size != sizes_.end())
        whole = checked_multiply(count, std::uint64_t{size->second});
      else if (&key == &keys_.back() && count > 0 &&
               (bytes.size() - at) % count == 0 &&
               (bytes.size() - at) / count <= kLargestElement)
        whole = bytes.size() - at;
      if (!whole || *whole > bytes.size() - at)
        return at;
      at += *whole;
    }
    return at;
  }

 private:
  static constexpr std::uint64_t kLargestElement = 16;
  std::map<std::string, std::uint32_t, std::less<>> sizes_;  // of elements
  std::span<const Value> keys_;
};

// A loader of packages takes these names from the archive.
void distrust(const std::set<std::string, std::less<>>& modules, Audit& audit) {
  const auto is_own = [&modules](std::string_view name) {
    for (std::size_t end = name.size(); end != name.npos && end > 0;
         end = name.rfind('.', end - 1)) {
      if (modules.contains(name.substr(0, end)))
        return true;
    }
    return false;
  };
  constexpr std::string_view kReason =
      "is a module that the archive brings along";
  for (GlobalUse& use : audit.globals)
    if (use.trust < Trust::kUnknown && is_own(use.module)) {
      use.trust = Trust::kUnknown;
      use.reason = kReason;
    }
  for (CallUse& use : audit.calls)
    if (use.trust < Trust::kUnknown && is_own(use.callable)) {
      use.trust = Trust::kUnknown;
      use.reason = kReason;
    }
}

// Adds what another reader would run beyond plain data.
void add_worse(Audit other, Audit& audit) {
  for (GlobalUse& use : other.globals)
    if (use.trust > Trust::kTorch && !is_joblib_wrapper(use))
      audit.globals.push_back(std::move(use));
  for (CallUse& use : other.calls)
    if (use.trust > Trust::kTorch && !is_joblib_wrapper(use)) {
      use.first = Value();  // it is gone with the machine
      audit.calls.push_back(std::move(use));
    }
}

// Values may take 64 times the deflated size, not the inflated one, or a
// decompression bomb would take 64 times a thousand times its size.
Limits capped(Limits limits, std::uint64_t file_size) {
  constexpr std::uint64_t kPerByte = 48;
  constexpr std::uint64_t kAlways = 48 << 20;
  limits.max_value_bytes =
      std::min(limits.max_value_bytes, std::max(file_size * kPerByte, kAlways));
  return limits;
}

}  // namespace

Result<PickleFile> PickleFile::read(Bytes file, const Limits& limits) {
  PickleFile result(file.size(), limits);
  PickleStreams streams =
      TRY(find_pickle_streams(file, result.limits_, result.allowance_));
  result.format = streams.format;
  result.load_streams(std::move(streams), 0);
  return result;
}

PickleFile::PickleFile(std::uint64_t file_size, const Limits& limits)
    : limits_(capped(limits, file_size)),
      allowance_(file_size, limits),
      machine_(limits_) {}

Trust PickleFile::worst() const {
  Trust worst = Trust::kPlain;
  for (const LoadedPickle& loaded : pickles)
    worst = std::max(worst, loaded.audit.worst());
  return worst;
}

bool PickleFile::intact() const {
  return std::ranges::none_of(pickles, &std::optional<std::string>::has_value,
                              &LoadedPickle::error) &&
         std::ranges::find(findings, Severity::kError, &Finding::severity) ==
             findings.end();
}

SafetyVerdict PickleFile::verdict() const {
  SafetyVerdict verdict;
  for (const LoadedPickle& loaded : pickles) {
    SafetyVerdict of_pickle = loaded.audit.verdict();
    if (loaded.error)
      of_pickle.add({Safety::kBroken, "broken_pickle", *loaded.error, ""});
    verdict.merge(of_pickle, loaded.where);
  }
  for (const Reason& doubt : doubts)
    verdict.add(doubt);
  for (const Finding& finding : findings)
    if (finding.severity == Severity::kError)
      verdict.add(
          {Safety::kBroken, finding.kind, finding.message, finding.where});
  return verdict;
}

void PickleFile::load_streams(PickleStreams found, std::uint32_t depth) {
  findings.insert(findings.end(),
                  std::make_move_iterator(found.findings.begin()),
                  std::make_move_iterator(found.findings.end()));
  doubts.insert(doubts.end(), std::make_move_iterator(found.doubts.begin()),
                std::make_move_iterator(found.doubts.end()));
  // Moving the streams into the vector does not move their bytes.
  streams_.push_back(std::move(found));
  const std::size_t place = streams_.size() - 1;
  const auto scripts = script_folders(streams_[place].streams);
  for (std::size_t i = 0; i < streams_[place].streams.size(); ++i)
    load_stream(streams_[place], streams_[place].streams[i],
                is_in_any(scripts, streams_[place].streams[i].where), depth);
}

void PickleFile::load_stream(const PickleStreams& group,
                             const PickleStream& stream, bool is_script,
                             std::uint32_t depth) {
  // load_nested() may grow streams_ and move `group` and `stream` away, but not
  // what is in them.
  const std::string where = stream.where;
  const std::optional<std::uint64_t> start = stream.offset;
  const bool salvaged = stream.salvaged;
  const auto* const own_modules =
      stream.modules ? &group.modules[*stream.modules] : nullptr;
  const Bytes bytes = stream.contents.bytes();

  const auto place_of = [&where](std::uint64_t byte) {
    return fmt::format("{}{}byte {}", where, where.empty() ? "" : ", ", byte);
  };
  std::uint64_t at = 0;
  bool is_legacy = false;
  LegacyStorages storages;
  for (int count = 0; at < bytes.size(); ++count) {
    if (salvaged && count == 1)
      return;
    if (is_legacy && count == kLegacyPickles) {
      if (const std::uint64_t end = storages.end(bytes, at); end < bytes.size())
        doubts.push_back(
            {Safety::kUnknown, "unaccounted_bytes",
             fmt::format("{} bytes are neither of its pickles nor of the "
                         "storages that these name",
                         bytes.size() - end),
             place_of(end)});
      return;
    }
    Bytes rest = bytes.subspan(at);
    if (pickles.size() >= limits_.max_pickles) {
      stop_at(where, at);
      return;
    }
    Result<Pickle> read = machine_.load(rest);
    std::optional<Audit> of_plain_readers;
    std::optional<JoblibPickle> joblib;
    if (has_joblib_arrays(machine_))
      joblib = read_joblib_pickle(rest, limits_);
    if (joblib) {
      of_plain_readers = audit(machine_, {.is_script = is_script});
      // Objects are a pickle; what plain readers make of it is judged, too.
      if (read && joblib->elements > 0 && joblib->objects.empty())
        doubts.push_back({Safety::kUnknown, "joblib_array",
                          "pickle.load takes the elements of an array for "
                          "opcodes, and reads something else than joblib.load",
                          place_of(at)});
      opcodes_.push_back(std::move(joblib->opcodes));
      rest = as_bytes(opcodes_.back());
      read = machine_.load(rest);
    }
    // Python would not call anything before it notices, either.
    if (!read && count > 0 && !starts_with_proto(rest) &&
        machine_.objects().empty() && machine_.globals().empty()) {
      const bool zeros = std::ranges::all_of(rest, is_zero);
      findings.push_back(
          {"trailing_bytes", Severity::kWarning,
           fmt::format("{} {} after the pickle are not a pickle", rest.size(),
                       zeros ? "zero bytes" : "bytes"),
           place_of(at)});
      if (!zeros)
        doubts.push_back({Safety::kUnknown, "unaccounted_bytes",
                          fmt::format("{} bytes follow its last pickle and "
                                      "were not looked into",
                                      rest.size()),
                          place_of(at)});
      return;
    }
    LoadedPickle loaded;
    loaded.where = where;
    if (start)
      loaded.offset = *start + at;
    loaded.audit = audit(machine_, {.is_script = is_script});
    if (own_modules != nullptr)
      distrust(*own_modules, loaded.audit);
    look_behind_frames(rest, loaded.audit);
    if (joblib && read)
      trust_joblib_arrays(loaded.audit);
    if (of_plain_readers)
      add_worse(*std::move(of_plain_readers), loaded.audit);
    if (read) {
      loaded.pickle = *read;
      loaded.bytes = rest.first(read->size);
      if (count == 0 && read->root.is(Kind::kBigInteger))
        is_legacy = is_legacy_magic(read->root.text());
      if (is_legacy)
        storages.meet(machine_, read->root);
      constexpr std::uint64_t kManyValues = 1'000'000'000;
      if (expanded_count(read->root) > kManyValues)
        findings.push_back(
            {"expands", Severity::kWarning,
             "values share others so often that to print, compare or copy them "
             "in Python would never end (billion laughs)",
             place_of(at)});
      at += read->size + (joblib ? joblib->elements : 0);
    } else {
      loaded.bytes = rest;
      loaded.error = std::string(read.error().message());
      at = bytes.size();
    }
    pickles.push_back(std::move(loaded));
    load_nested(pickles.size() - 1, depth);
    if (joblib)
      load_objects(joblib->objects, where, depth);
  }
}

void PickleFile::look_behind_frames(Bytes bytes, Audit& audit) {
  // A hostile file can have such a frame in each of its pickles.
  constexpr std::size_t kMostBytes = 1 << 20;
  constexpr int kMostOften = 16;
  if (std::ranges::none_of(audit.doubts,
                           [](const Reason& doubt) {
                             return doubt.kind == "frame_ends_inside";
                           }) ||
      ++behind_frames_ > kMostOften)
    return;
  const std::string seen =
      bytes_behind_frames(bytes.first(std::min(bytes.size(), kMostBytes)));
  Machine machine(limits_);
  static_cast<void>(machine.load(as_bytes(seen)));
  add_worse(postflight::audit(machine), audit);
}

void PickleFile::load_objects(const std::vector<Bytes>& objects,
                              const std::string& where, std::uint32_t depth) {
  for (const Bytes& bytes : objects) {
    if (pickles.size() >= limits_.max_pickles) {
      stop_at(where, 0);
      return;
    }
    LoadedPickle loaded;
    loaded.where = where + (where.empty() ? "" : ": ") + "objects of an array";
    loaded.bytes = bytes;
    const Result<Pickle> read = machine_.load(bytes);
    loaded.audit = audit(machine_);
    if (read)
      loaded.pickle = *read;
    else
      loaded.error = std::string(read.error().message());
    pickles.push_back(std::move(loaded));
    load_nested(pickles.size() - 1, depth);
  }
}

void PickleFile::stop_at(const std::string& where, std::uint64_t at) {
  if (!too_many_)
    findings.push_back(
        {"too_many_pickles", Severity::kError,
         fmt::format("the file has more than the {} pickles allowed "
                     "(max_pickles); the rest was not looked at",
                     limits_.max_pickles),
         fmt::format("{}{}byte {}", where, where.empty() ? "" : ", ", at)});
  too_many_ = true;
}

void PickleFile::load_nested(std::size_t parent, std::uint32_t depth) {
  // Collected first, as loading them makes the machine forget its objects. One
  // text can be loaded many times.
  std::vector<NestedPickle> texts;
  std::set<const char*> met;
  bool all_seen = true;
  for (const Object* const object : machine_.objects()) {
    if (!is_nested_load(*object))
      continue;
    const std::optional<NestedPickle> nested = nested_pickle(*object);
    if (!nested)
      all_seen = false;
    else if (met.insert(nested->text.data()).second)
      texts.push_back(*nested);
  }

  const std::size_t first = pickles.size();
  const std::string outer = pickles[parent].where;
  std::uint64_t number = 0;
  for (const NestedPickle& nested : texts) {
    Contents contents{as_bytes(nested.text), {}};
    if (nested.is_encoded) {
      const std::optional<std::string> bytes = nested.bytes();
      if (!bytes || bytes->empty()) {
        all_seen = false;
        continue;
      }
      const Bytes decoded = as_bytes(*bytes);
      contents.inflated.assign(decoded.begin(), decoded.end());
    }
    Result<PickleStreams> found =
        depth + 1 < limits_.max_nesting
            ? find_pickle_streams(contents.bytes(), limits_, allowance_)
            : fail(ErrorKind::kRefused, "too deep");
    if (!found) {
      all_seen = false;
      continue;
    }
    const std::string place = fmt::format("{}{}nested pickle {}", outer,
                                          outer.empty() ? "" : ": ", number++);
    for (PickleStream& stream : found->streams) {
      stream.where = stream.where.empty() ? place : place + ": " + stream.where;
      stream.offset.reset();
    }
    for (Reason& doubt : found->doubts)
      doubt.where = doubt.where.empty() ? place : place + ": " + doubt.where;
    found->owned.push_back(std::move(contents));
    load_streams(std::move(*found), depth + 1);
  }
  if (number == 0 || !all_seen || too_many_)
    return;
  // Such a call only loads pickles, which are judged on their own.
  for (std::size_t i = first; i < pickles.size(); ++i)
    all_seen = all_seen && !pickles[i].error;
  if (!all_seen)
    return;
  for (GlobalUse& use : pickles[parent].audit.globals)
    if (use.module + "." + use.name == kNestedLoader && !use.as_value)
      use.trust = Trust::kTorch;
  for (CallUse& use : pickles[parent].audit.calls)
    if (use.callable == kNestedLoader)
      use.trust = Trust::kTorch;
}

}  // namespace postflight
