// Everything that a file can be read as.
//
// A scanner that looks at a file in one way is fooled by one that is also
// something else: torch.load tries zip, then tar, then a stream of pickles;
// Python's zipfile looks for the end of an archive anywhere in the last 64 KiB;
// joblib and pandas undo compression; a name that ends in .bin stops nobody who
// passes it to pickle.load. So each piece of a file is examined as everything
// it could be, by content, and recursively: the file, entries of archives, what
// is compressed, and bytes that belong to nothing. Where two readers would both
// read the same piece to the end, but as different things, it is a polyglot.
//
// All of it is bounded: recursion by Limits::max_nesting, what is inflated and
// looked at by an Allowance for the whole file.

#include "checkpoint/torch/container_search.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "checkpoint/numpy/header.h"
#include "checkpoint/torch/archives.h"
#include "checkpoint/torch/entry_role.h"
#include "checkpoint/torch/known_format.h"
#include "checkpoint/torch/packing.h"
#include "checkpoint/torch/pickle_probe.h"
#include "checkpoint/torch/script_code.h"
#include "checkpoint/torch/search_report.h"
#include "checkpoint/zip/format.h"
#include "checkpoint/zip/inflate.h"
#include "checkpoint/zip/unclaimed.h"
#include "stream/tar/reader.h"

namespace postflight {
namespace {

bool starts(Bytes bytes, std::string_view magic) {
  return as_text(bytes).starts_with(magic);
}

bool all_zero(Bytes bytes) {
  return std::ranges::all_of(
      bytes, [](std::byte byte) { return byte == std::byte{}; });
}

}  // namespace

ContainerSearch::ContainerSearch(const Limits& limits, Allowance& allowance)
    : limits_(limits), probe_(limits), found_{allowance, {}} {}

bool ContainerSearch::search(Bytes file) {
  return examine({.bytes = file, .offset = 0, .where = ""});
}

ContainerSearch::Piece ContainerSearch::Piece::entry(
    std::string_view of) const {
  Piece inside = *this;
  if (!where.empty() && !where.ends_with(": "))
    inside.where += ": ";
  inside.where += shown_entry(of);
  inside.role = has_pickle_name(of) ? Role::kNamed : Role::kEntry;
  inside.name = of;
  ++inside.depth;
  return inside;
}

bool ContainerSearch::examine(const Piece& piece) {
  const Bytes bytes = piece.bytes;
  if (bytes.empty())
    return false;
  if (piece.depth >= limits_.max_nesting) {
    found_.doubt("nested_too_deep",
                 fmt::format("archives are nested more than {} deep; what is "
                             "inside was not looked into",
                             limits_.max_nesting),
                 piece.where);
    return true;
  }
  if (starts(bytes, kLocalSignature) ||
      (starts(bytes, kEndSignature) && archive_at_end(bytes))) {
    if (piece.role != Role::kStorage && probe_.imports_at_front(bytes))
      found_.doubt("polyglot",
                   "it is a zip archive to some readers and a pickle to others",
                   piece.where);
    search_archives(piece, false);
    return true;
  }
  return examine_front(piece);
}

bool ContainerSearch::examine_front(const Piece& piece) {
  const Bytes bytes = piece.bytes;
  std::vector<std::string_view> identities;
  const PickleProbe::Answer front = probe_.answer(bytes);
  const bool named = piece.role == Role::kNamed;
  const bool storage = piece.role == Role::kStorage;
  bool is_pickle = storage ? front.runs_by_lines : front.runs;
  if (storage)
    is_pickle = is_pickle || (starts_like_pickle(bytes) && front.reads);
  else
    is_pickle = is_pickle || front.reads ||
                (piece.role == Role::kFile && starts_like_pickle(bytes));
  if (is_pickle)
    identities.emplace_back("a pickle");

  const bool tar = looks_like_tar(bytes);
  if (tar)
    identities.emplace_back("a tar archive");
  if (is_numpy_file(bytes))
    identities.emplace_back("a NumPy file");
  const std::size_t streams = found_.result.streams.size();
  if (tar)
    search_tar(piece);
  if (is_numpy_file(bytes))
    search_numpy(piece);
  if (search_compressed(piece))
    identities.emplace_back("a compressed file");
  if (!storage) {
    if (std::optional<KnownFormat> known = known_format(bytes, piece.name)) {
      identities.push_back(known->title);
      for (Reason& reason : known->doubts) {
        reason.where = piece.where;
        found_.result.doubts.push_back(std::move(reason));
      }
    }
    if (is_script_code(piece.name))
      if (std::optional<Reason> harm = harm_of_script(bytes)) {
        harm->where = piece.where;
        found_.result.doubts.push_back(*std::move(harm));
      }
    // An archive inside a tar's member is looked into there.
    const auto end = archive_at_end(bytes);
    if (end && !tar) {
      identities.emplace_back("a zip archive");
      search_archives(piece, true);
    }
  }
  if (is_pickle || (named && identities.empty()))
    add_stream(piece, bytes, 0, false);
  if (identities.size() > 1)
    found_.doubt("polyglot",
                 fmt::format("it is {} to some readers and {} to others",
                             identities[0], identities[1]),
                 piece.where);
  if (piece.role == Role::kFile && !identities.empty() &&
      found_.result.streams.size() == streams)
    found_.result.format = identities.front();
  return !identities.empty() || named;
}

void ContainerSearch::add_stream(const Piece& piece, Bytes bytes,
                                 std::uint64_t from, bool single) {
  PickleStream stream;
  stream.where = piece.where;
  if (piece.offset)
    stream.offset = *piece.offset + from;
  stream.contents.stored = bytes;
  stream.salvaged = single;
  stream.modules = piece.modules;
  found_.result.streams.push_back(std::move(stream));
}

// Keeps the bytes if something in them was found.
void ContainerSearch::examine_bytes(std::vector<std::byte> bytes, Piece piece) {
  const std::size_t streams = found_.result.streams.size();
  const std::size_t owned = found_.result.owned.size();
  found_.allowance.looked_at += bytes.size() * limits_.max_nesting;
  piece.bytes = bytes;
  piece.offset.reset();
  examine(piece);
  if (found_.result.streams.size() > streams ||
      found_.result.owned.size() > owned)
    found_.result.owned.push_back({{}, std::move(bytes)});
}

// --------------------------------------------------------------------- zip

void ContainerSearch::search_archives(const Piece& piece,
                                      bool front_was_examined) {
  const Bytes bytes = piece.bytes;
  Archives archives = find_archives(bytes, limits_);
  for (Finding& finding : archives.findings)
    found_.add(std::move(finding), piece.where);
  if (archives.extents.empty()) {
    search_headers(piece);
    return;
  }
  if (other_zip_end(bytes.first(archives.extents.back().end())))
    found_.doubt("two_ends",
                 "the end of its archive is in the comment of another end, so "
                 "readers see different archives",
                 piece.where);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < archives.extents.size(); ++i) {
    const Extent& extent = archives.extents[i];
    if (extent.offset > at && !(at == 0 && front_was_examined))
      search_stray(piece, at, extent.offset);
    at = extent.end();
    Piece archive = piece;
    if (!archive.where.empty())
      archive.where += ": ";
    if (archives.extents.size() > 1)
      archive.where += fmt::format("item {}: ", i);
    search_archive(archive, bytes.subspan(extent.offset, extent.size),
                   piece.offset ? std::optional(*piece.offset + extent.offset)
                                : std::nullopt);
  }
  if (at < bytes.size())
    search_stray(piece, at, bytes.size());
}

// Zeros fill a file up; anything else may be read by somebody.
void ContainerSearch::search_stray(const Piece& piece, std::uint64_t begin,
                                   std::uint64_t end, std::string_view what) {
  const Bytes bytes = piece.bytes.subspan(begin, end - begin);
  if (all_zero(bytes))
    return;
  Piece stray = piece;
  stray.bytes = bytes;
  if (stray.offset)
    *stray.offset += begin;
  stray.where = fmt::format("{}{}bytes {} to {}", piece.where,
                            piece.where.empty() ? "" : ": ", begin, end);
  stray.role = Role::kStray;
  ++stray.depth;
  found_.doubt("unaccounted_bytes", std::string(what), stray.where);
  examine(stray);
}

void ContainerSearch::search_archive(const Piece& piece, Bytes archive,
                                     std::optional<std::uint64_t> offset) {
  const Result<ZipDirectory> directory = ZipDirectory::read(archive, limits_);
  if (!directory) {
    found_.add({"archive_unreadable", Severity::kError,
                std::string(directory.error().message()), ""},
               piece.where);
    return;
  }
  for (Finding finding : directory->findings()) {
    if (finding.kind == "zip_case_collision")
      found_.doubt(finding.kind, finding.message, piece.where);
    found_.add(std::move(finding), piece.where);
  }
  Piece inside = piece;
  inside.bytes = archive;
  inside.offset = offset;
  inside.modules = add_modules(*directory, piece.where);
  const bool torchs = has_storages(*directory);
  for (const ZipEntry& entry : directory->entries()) {
    const auto local = LocalHeader::read(archive, directory->header_at(entry));
    if (!local) {
      found_.add(
          {"entry_unreadable", Severity::kError,
           fmt::format("entry '{}': its header should lie at offset {}, but "
                       "there is none",
                       shown_entry(entry.name), entry.header_offset),
           ""},
          piece.where + shown_entry(entry.name));
      continue;
    }
    search_entry(entry, *local, inside, torchs && is_storage_name(entry.name));
  }
  for (const Extent& hidden : hidden_fields(archive, *directory))
    search_stray(inside, hidden.offset, hidden.end(),
                 "they are in an extra field or comment, which zip writers "
                 "leave to others");
  for (const Extent& stray : unclaimed_bytes(archive, *directory))
    search_stray(inside, stray.offset, stray.end());
}

std::optional<std::uint32_t> ContainerSearch::add_modules(
    const ZipDirectory& directory, const std::string& where) {
  PythonModules modules = python_modules(directory);
  if (modules.names.empty())
    return std::nullopt;
  found_.doubt("python_source", modules.doubt(), where + modules.first);
  found_.result.modules.push_back(std::move(modules.names));
  return static_cast<std::uint32_t>(found_.result.modules.size() - 1);
}

void ContainerSearch::search_entry(const ZipEntry& entry,
                                   const LocalHeader& local,
                                   const Piece& archive, bool is_storage) {
  Piece piece = archive.entry(entry.name);
  if (has_pickle_name(local.name))
    piece.role = Role::kNamed;
  else if (piece.role == Role::kEntry && is_storage)
    piece.role = Role::kStorage;
  for (EntryDoubt& doubt : entry_doubts(entry, local))
    found_.doubt(std::string(doubt.kind), std::move(doubt.message),
                 piece.where);
  const Reading stated{entry.method, entry.compressed_size, entry.size};
  Reading own{local.method, local.compressed_size, local.size};
  const bool unstated = local.has_descriptor() || own.size == kSaturated ||
                        own.compressed_size == kSaturated;
  if (unstated)
    own = {local.method, stated.compressed_size, stated.size};
  const Bytes behind = archive.bytes.subspan(local.data);
  if (piece.offset)
    *piece.offset += local.data;
  read_entry(entry, stated, behind, piece);
  if (own == stated)
    return;
  found_.doubt("headers_differ",
               "its own header and the directory disagree; readers differ in "
               "which they believe",
               piece.where);
  read_entry(entry, own, behind, piece);
}

// `behind`: the archive from the first byte of the entry.
void ContainerSearch::read_entry(const ZipEntry& entry, const Reading& reading,
                                 Bytes behind, Piece piece) {
  if (reading.size == 0 && reading.compressed_size == 0)
    return;
  if (reading.compressed_size > behind.size())
    found_.add(
        {"entry_unreadable", Severity::kError,
         fmt::format("entry '{}': its {} bytes reach beyond the archive's end",
                     shown_entry(entry.name), reading.compressed_size),
         ""},
        piece.where);
  const Bytes stored = behind.first(
      std::min<std::uint64_t>(reading.compressed_size, behind.size()));
  if (reading.method == kStored) {
    piece.bytes = stored;
    if (reading.size != reading.compressed_size)
      found_.add(
          {"entry_unreadable", Severity::kError,
           fmt::format("entry '{}': it should have {} bytes, but {} are stored",
                       shown_entry(entry.name), reading.size,
                       reading.compressed_size),
           ""},
          piece.where);
    if (!found_.spend(stored.size(), true, piece.where))
      return;
    const std::size_t streams = found_.result.streams.size();
    examine(piece);
    if (found_.result.streams.size() > streams || piece.role == Role::kNamed)
      found_.check(entry, stored, piece.where);
    return;
  }
  if (reading.method != kDeflated) {
    std::optional<Decompressed> inner = unpack_entry(
        reading.method, stored, reading.size, found_.allowance.inflated);
    if (inner) {
      found_.allowance.inflated -= std::min<std::uint64_t>(
          found_.allowance.inflated, inner->bytes.size());
      if (inner->damage)
        found_.doubt("decompression",
                     fmt::format("it was decompressed in part: {}",
                                 inner->damage->message()),
                     piece.where);
      const Bytes bytes = as_bytes(inner->bytes);
      examine_bytes({bytes.begin(), bytes.end()}, std::move(piece));
      return;
    }
    found_.doubt("unread_method",
                 fmt::format("it is compressed by {}, which is not read",
                             method_name(reading.method)),
                 piece.where);
    return;
  }
  // A storage of many gigabytes is not inflated unless its first bytes could
  // be those of something else.
  constexpr std::size_t kFront = 4096;
  if (piece.role == Role::kStorage &&
      !looks_promising(inflate_front(stored, kFront)))
    return;
  if (!found_.spend(reading.size, false, piece.where))
    return;
  Result<std::vector<std::byte>> inflated = inflate(stored, reading.size);
  if (inflated) {
    if (piece.role == Role::kNamed)
      found_.check(entry, *inflated, piece.where);
    examine_bytes(*std::move(inflated), std::move(piece));
    return;
  }
  found_.add({"entry_unreadable", Severity::kError,
              fmt::format("entry '{}': {}", shown_entry(entry.name),
                          inflated.error().message()),
              ""},
             piece.where);
  // Some readers notice only at its end, or never.
  const std::uint64_t most =
      std::min<std::uint64_t>(found_.allowance.inflated,
                              std::max<std::uint64_t>(reading.size, 1 << 20));
  std::vector<std::byte> front = inflate_front(stored, most);
  found_.allowance.inflated -=
      std::min<std::uint64_t>(found_.allowance.inflated, front.size());
  examine_bytes(std::move(front), std::move(piece));
}

bool ContainerSearch::looks_promising(Bytes front) {
  return starts_like_pickle(front) || starts(front, kLocalSignature) ||
         is_numpy_file(front) || looks_like_tar(front) ||
         looks_compressed(front) || probe_.answer(front).runs_by_lines;
}

// The directory at the end is missing. Entries can still be found from header
// to header, as long as these state sizes; a pickle marks its own end.
void ContainerSearch::search_headers(const Piece& piece) {
  std::uint64_t at = 0;
  std::uint64_t found = 0;
  while (const auto local = LocalHeader::read(piece.bytes, at)) {
    Piece entry = piece.entry(local->name);
    const Bytes behind = piece.bytes.subspan(local->data);
    if (local->has_descriptor() && local->size == 0) {
      if (local->method == kStored &&
          (entry.role == Role::kNamed || probe_.answer(behind).runs)) {
        ++found;
        add_stream(entry, behind, local->data, true);
      }
      break;
    }
    ++found;
    ZipEntry stated;
    stated.name = local->name;
    stated.crc32 = local->crc32;
    stated.size = local->size;
    if (entry.offset)
      *entry.offset += local->data;
    read_entry(stated, {local->method, local->compressed_size, local->size},
               behind, entry);
    if (local->compressed_size >= behind.size())
      break;
    at = local->data + local->compressed_size;
  }
  if (found > 0)
    found_.add(
        {"first_record_only", Severity::kError,
         found == 1 ? "only the first record could be found without the "
                      "archive's directory"
                    : fmt::format("only the first {} records could be found "
                                  "without the archive's directory",
                                  found),
         ""},
        piece.where.empty() && !found_.result.streams.empty()
            ? found_.result.streams.back().where
            : piece.where);
}

Result<PickleStreams> find_pickle_streams(Bytes file, const Limits& limits,
                                          Allowance& allowance) {
  if (file.empty())
    return fail(ErrorKind::kCorrupt,
                "the file is empty; was its writer killed?");
  ContainerSearch search(limits, allowance);
  const bool known = search.search(file);
  PickleStreams found = search.take();
  if (!known)
    return fail(ErrorKind::kCorrupt, "no pickle starts here; it seems to be {}",
                guess_format(file));
  return found;
}

}  // namespace postflight
