#include "checkpoint/torch/pickle_streams.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "checkpoint/torch/archives.h"
#include "checkpoint/zip/format.h"
#include "checkpoint/zip/inflate.h"
#include "pickle/machine.h"

namespace postflight {
namespace {

bool starts_like_pickle(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x80} &&
         bytes[1] <= std::byte{kHighestProtocol};
}

bool has_pickle_name(std::string_view name) {
  const auto ends_with = [name](std::string_view suffix) {
    return name.size() >= suffix.size() &&
           std::ranges::equal(
               name.substr(name.size() - suffix.size()), suffix,
               [](char a, char b) { return (a | 0x20) == (b | 0x20); });
  };
  return ends_with(".pkl") || ends_with(".pickle") || ends_with(".debug_pkl");
}

// A record's name, shortened for messages; archives allow 64 KB.
std::string shown_name(std::string_view name) {
  constexpr std::size_t kLongestName = 300;
  return name.size() <= kLongestName
             ? std::string(name)
             : fmt::format("{}…", name.substr(0, kLongestName));
}

struct Magic {
  std::string_view bytes;
  std::string_view what;
};

// Other files that people try.
constexpr std::array kOtherFormats = {
    Magic{"\x1f\x8b", "a gzip file; unpack it first (gzip -d)"},
    Magic{"\x28\xb5\x2f\xfd", "a zstd file; unpack it first (zstd -d)"},
    Magic{"BZh", "a bzip2 file; unpack it first (bzip2 -d)"},
    Magic{"\xfd"
          "7zXZ",
          "an xz file; unpack it first (xz -d)"},
    Magic{"\x93NUMPY", "a NumPy file"},
    Magic{"\x89HDF", "an HDF5 file, which holds no pickles"},
    Magic{"GGUF", "a GGUF file, which holds no pickles"},
    Magic{"\x7f"
          "ELF",
          "a program or library"},
    Magic{"PYTORCH1", "a preview archive that torch itself refuses"},
    Magic{"version https://git-lfs",
          "a Git LFS pointer; fetch the file itself (git lfs pull)"},
    Magic{"<", "a web page or XML; was it downloaded from the right address?"},
    Magic{"{", "JSON"},
};

bool is_dotted_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '.' ||
           (c & 0x80) != 0;
  });
}

// Whether Python would have called or imported something by the place where the
// pickle breaks off. Any text that begins with a c has two lines after it.
bool runs(const Machine& machine) {
  return !machine.objects().empty() ||
         std::ranges::any_of(machine.globals(), [](const Global* global) {
           return is_dotted_name(global->module) &&
                  is_dotted_name(global->name);
         });
}

std::string_view guess_format(Bytes file) {
  if (file.size() > 9 && file[8] == std::byte{'{'} &&
      load_little_endian<std::uint64_t>(file.data()) < file.size())
    return "a safetensors file, which holds no pickles";
  if (file.size() > 262 && as_text(file).substr(257, 5) == "ustar")
    return "a tar file; unpack it first (tar -x)";
  for (const Magic& magic : kOtherFormats)
    if (as_text(file).starts_with(magic.bytes))
      return magic.what;
  return "something else";
}

class Finder {
 public:
  Finder(const Limits& limits, Allowance& allowance)
      : limits_(limits), allowance_(allowance) {}

  // `offset`: where `bytes` are in the file, unless they were inflated.
  void search_archives(Bytes bytes, std::optional<std::uint64_t> offset,
                       const std::string& where, std::uint32_t depth) {
    Archives archives = find_archives(bytes, limits_);
    for (Finding& finding : archives.findings)
      add(std::move(finding), where);
    for (std::size_t i = 0; i < archives.extents.size(); ++i) {
      const Extent& extent = archives.extents[i];
      const std::string item = archives.extents.size() == 1
                                   ? where
                                   : fmt::format("{}item {}: ", where, i);
      search_archive(bytes.subspan(extent.offset, extent.size),
                     moved(offset, extent.offset), item, depth);
    }
    if (archives.extents.empty())
      salvage(bytes, offset, where);
  }

  PickleStreams take() { return std::move(result_); }

 private:
  static std::optional<std::uint64_t> moved(std::optional<std::uint64_t> offset,
                                            std::uint64_t by) {
    return offset ? std::optional(*offset + by) : std::nullopt;
  }

  void search_archive(Bytes archive, std::optional<std::uint64_t> offset,
                      const std::string& where, std::uint32_t depth) {
    const Result<ZipDirectory> directory = ZipDirectory::read(archive, limits_);
    if (!directory) {
      add({"archive_unreadable", Severity::kError,
           std::string(directory.error().message()), ""},
          where);
      return;
    }
    for (Finding finding : directory->findings())
      add(std::move(finding), where);
    for (const ZipEntry& entry : directory->entries())
      search_entry(*directory, entry, offset, where, depth);
  }

  void search_entry(const ZipDirectory& directory, const ZipEntry& entry,
                    std::optional<std::uint64_t> offset,
                    const std::string& where, std::uint32_t depth) {
    const bool named = has_pickle_name(entry.name);
    const std::string place = where + shown_name(entry.name);
    // A storage record of many gigabytes is not read unless its first bytes
    // could be those of a pickle or an archive.
    if (!named && !looks_promising(directory, entry))
      return;
    if (!spend(entry, place))
      return;
    Result<Contents> contents = directory.contents(entry);
    if (!contents) {
      if (named)
        add({"entry_unreadable", Severity::kError,
             std::string(contents.error().message()), ""},
            place);
      return;
    }
    const Bytes bytes = contents->bytes();
    const std::optional<std::uint64_t> start =
        entry.method != 0 ? std::nullopt
                          : moved(offset, directory.extent(entry)->offset);
    if (as_text(bytes).starts_with(kLocalSignature)) {
      search_nested(std::move(*contents), start, place, depth);
      return;
    }
    if (!named && !(starts_like_pickle(bytes) && is_one_pickle(bytes)))
      return;
    if (named)
      check(entry, bytes, place);
    result_.streams.push_back({place, start, std::move(*contents)});
  }

  static bool looks_promising(const ZipDirectory& directory,
                              const ZipEntry& entry) {
    constexpr std::size_t kFront = 4;
    const Result<Bytes> bytes = directory.stored_bytes(entry);
    if (!bytes || (entry.method != kStored && entry.method != kDeflated))
      return false;
    const std::vector<std::byte> inflated = entry.method == 0
                                                ? std::vector<std::byte>()
                                                : inflate_front(*bytes, kFront);
    const Bytes front = entry.method == 0 ? *bytes : Bytes(inflated);
    return starts_like_pickle(front) ||
           as_text(front).starts_with(kLocalSignature);
  }

  // Subtracts the size of an entry from the allowance; adds a finding if that
  // is exceeded.
  bool spend(const ZipEntry& entry, const std::string& place) {
    std::uint64_t& left =
        entry.method == 0 ? allowance_.looked_at : allowance_.inflated;
    if (entry.size <= left) {
      left -= entry.size;
      return true;
    }
    if (entry.method == 0)
      add({"entries_overlap", Severity::kError,
           "the entries of this file add up to far more bytes than it has; "
           "this one and others were not examined",
           ""},
          place);
    else
      add({"inflates_too_much", Severity::kError,
           fmt::format("it would inflate to {} bytes, which is too much for a "
                       "file of this size; it was not examined",
                       entry.size),
           ""},
          place);
    return false;
  }

  void check(const ZipEntry& entry, Bytes bytes, const std::string& place) {
    const Result<CrcState> state = check_crc(entry, bytes);
    if (!state)
      add({"crc_mismatch", Severity::kError,
           std::string(state.error().message()), ""},
          place);
  }

  // An archive inside an archive. Keeps its inflated bytes alive.
  void search_nested(Contents contents, std::optional<std::uint64_t> offset,
                     const std::string& place, std::uint32_t depth) {
    if (depth + 1 >= limits_.max_nesting) {
      add({"nested_too_deep", Severity::kWarning,
           fmt::format("archives are nested more than {} deep; not examined",
                       limits_.max_nesting),
           ""},
          place);
      return;
    }
    const Bytes bytes = contents.bytes();
    if (!contents.inflated.empty())
      result_.owned.push_back(std::move(contents));
    search_archives(bytes, offset, place + ": ", depth + 1);
  }

  // The directory at the end is missing. The first record can still be found,
  // and a pickle marks its own end.
  void salvage(Bytes bytes, std::optional<std::uint64_t> offset,
               const std::string& where) {
    if (bytes.size() < kLocalHeaderSize ||
        !as_text(bytes).starts_with(kLocalSignature))
      return;
    const auto method = load_little_endian<std::uint16_t>(&bytes[8]);
    const std::size_t name_size = load_little_endian<std::uint16_t>(&bytes[26]);
    const std::size_t extra = load_little_endian<std::uint16_t>(&bytes[28]);
    if (method != 0 || bytes.size() < kLocalHeaderSize + name_size + extra)
      return;
    const std::string_view full =
        as_text(bytes.subspan(kLocalHeaderSize, name_size));
    if (!has_pickle_name(full))
      return;
    const std::string name = shown_name(full);
    const std::size_t start = kLocalHeaderSize + name_size + extra;
    result_.streams.push_back(
        {where + name, moved(offset, start), {bytes.subspan(start), {}}, true});
    add({"first_record_only", Severity::kError,
         "only the first record could be found without the archive's directory",
         ""},
        where + name);
  }

  bool is_one_pickle(Bytes bytes) const {
    Machine machine(limits_);
    const Result<Pickle> pickle = machine.load(bytes);
    return pickle && pickle->size == bytes.size();
  }

  void add(Finding finding, const std::string& where) {
    finding.where =
        finding.where.empty()
            ? std::string(std::string_view(where).substr(
                  0, where.ends_with(": ") ? where.size() - 2 : where.size()))
            : where + finding.where;
    result_.findings.push_back(std::move(finding));
  }

  Limits limits_;
  Allowance& allowance_;
  PickleStreams result_;
};

}  // namespace

Allowance::Allowance(std::uint64_t file_size, const Limits& limits)
    // Pickles deflate to a tenth at best, and a checkpoint has more than a
    // pickle.
    : inflated(std::min(limits.max_inflated_bytes,
                        std::max<std::uint64_t>(file_size * 8, 8 << 20))),
      looked_at(file_size * limits.max_nesting) {}

Result<PickleStreams> find_pickle_streams(Bytes file, const Limits& limits,
                                          Allowance& allowance) {
  if (file.empty())
    return fail(ErrorKind::kCorrupt,
                "the file is empty; was its writer killed?");
  if (as_text(file).starts_with(kLocalSignature)) {
    Finder finder(limits, allowance);
    finder.search_archives(file, 0, "", 0);
    PickleStreams found = finder.take();
    if (found.streams.empty())
      return fail(ErrorKind::kCorrupt, "{}",
                  found.findings.empty()
                      ? "a zip archive without a pickle in it"
                      : found.findings.front().message);
    return found;
  }

  // Protocols 0 and 1 have no signature: they have to be tried. One that breaks
  // off still runs what comes before.
  Machine machine(limits);
  if (!starts_like_pickle(file) && !machine.load(file) && !runs(machine))
    return fail(ErrorKind::kCorrupt, "no pickle starts here; it seems to be {}",
                guess_format(file));
  PickleStreams found;
  found.streams.push_back({"", 0, {file, {}}});
  return found;
}

bool is_legacy_magic(std::string_view twos_complement) {
  constexpr std::string_view kMagic =
      "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  return twos_complement == kMagic;
}

}  // namespace postflight
