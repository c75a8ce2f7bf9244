#include "checkpoint/torch/pickle_file.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

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
  result.load_streams(
      TRY(find_pickle_streams(file, result.limits_, result.allowance_)), 0);
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
  // Moving the streams into the vector does not move their bytes.
  streams_.push_back(std::move(found));
  const std::size_t place = streams_.size() - 1;
  const auto scripts = script_folders(streams_[place].streams);
  for (std::size_t i = 0; i < streams_[place].streams.size(); ++i)
    load_stream(streams_[place].streams[i],
                is_in_any(scripts, streams_[place].streams[i].where), depth);
}

void PickleFile::load_stream(const PickleStream& stream, bool is_script,
                             std::uint32_t depth) {
  // load_nested() may grow streams_ and move `stream` away.
  const std::string where = stream.where;
  const std::optional<std::uint64_t> start = stream.offset;
  const bool salvaged = stream.salvaged;
  const Bytes bytes = stream.contents.bytes();

  std::uint64_t at = 0;
  bool is_legacy = false;
  for (int count = 0; at < bytes.size(); ++count) {
    if ((is_legacy && count == kLegacyPickles) || (salvaged && count == 1))
      return;
    const Bytes rest = bytes.subspan(at);
    if (pickles.size() >= limits_.max_pickles) {
      stop_at(where, at);
      return;
    }
    const Result<Pickle> read = machine_.load(rest);
    // Python would not call anything before it notices, either.
    if (!read && count > 0 && !starts_with_proto(rest) &&
        machine_.objects().empty() && machine_.globals().empty()) {
      const bool zeros = std::ranges::all_of(rest, is_zero);
      findings.push_back(
          {"trailing_bytes", Severity::kWarning,
           fmt::format("{} {} after the pickle are not a pickle", rest.size(),
                       zeros ? "zero bytes" : "bytes"),
           fmt::format("{}{}byte {}", where, where.empty() ? "" : ", ", at)});
      return;
    }
    LoadedPickle loaded;
    loaded.where = where;
    if (start)
      loaded.offset = *start + at;
    loaded.audit = audit(machine_, {.is_script = is_script});
    if (read) {
      loaded.pickle = *read;
      loaded.bytes = rest.first(read->size);
      if (count == 0 && read->root.is(Kind::kBigInteger))
        is_legacy = is_legacy_magic(read->root.text());
      at += read->size;
    } else {
      loaded.bytes = rest;
      loaded.error = std::string(read.error().message());
      at = bytes.size();
    }
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
