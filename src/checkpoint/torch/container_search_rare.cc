// What is searched beside zip archives: tar and 7z archives, NumPy files, and
// what is compressed.

#include <algorithm>
#include <utility>

#include "checkpoint/numpy/header.h"
#include "checkpoint/torch/container_search.h"
#include "checkpoint/torch/entry_role.h"
#include "checkpoint/torch/old_tar_member.h"
#include "checkpoint/torch/packing.h"
#include "stream/codec/foreign_archive.h"
#include "stream/tar/reader.h"

namespace postflight {

// --------------------------------------------------------------------- tar

void ContainerSearch::search_tar(const Piece& piece) {
  const TarListing listing = list_tar(piece.bytes, limits_);
  std::uint64_t end = 0;
  const bool old = std::ranges::any_of(
      listing.members, [](const TarMember& m) { return m.path == "storages"; });
  for (const TarMember& member : listing.members) {
    end = std::max(end, member.offset + member.size);
    if (leaves_folder(member.path) ||
        (member.kind == TarKind::kLink && leaves_folder(member.link)))
      found_.doubt("unsafe_path",
                   member.kind == TarKind::kLink
                       ? "it is a link to outside of the archive's folder"
                       : "its name leads out of the archive's folder",
                   piece.entry(member.path).where);
    if (member.kind != TarKind::kFile || member.size == 0)
      continue;
    Piece inside = piece.entry(member.path);
    inside.bytes = piece.bytes.subspan(member.offset, member.size);
    if (inside.offset)
      *inside.offset += member.offset;
    if (!found_.spend(member.size, true, inside.where))
      return;
    if (old && (member.path == "storages" || member.path == "tensors"))
      search_old_member(inside, member.path == "storages");
    else
      examine(inside);
  }
  if (listing.damage)
    found_.add({"tar_damaged", Severity::kError,
                std::string(listing.damage->message()), ""},
               piece.where);
  // After the last member come zeros.
  else if (const std::uint64_t rest = std::min<std::uint64_t>(
               piece.bytes.size(),
               (end + kTarBlock - 1) / kTarBlock * kTarBlock);
           rest < piece.bytes.size())
    search_stray(piece, rest, piece.bytes.size());
}

// ------------------------------------------------------------------- others

void ContainerSearch::search_old_member(const Piece& piece, bool storages) {
  const OldTarMember member =
      walk_old_member(piece.bytes, storages, probe_.machine());
  for (const std::uint64_t at : member.pickles)
    add_stream(piece, piece.bytes.subspan(at), at, true);
  if (member.end < piece.bytes.size())
    found_.doubt(
        "old_tar_member",
        fmt::format("from byte {} it is not as torch writes it, and was "
                    "not looked into",
                    member.end),
        piece.where);
}

void ContainerSearch::search_numpy(const Piece& piece) {
  const std::optional<NumpyHeader> header = read_numpy_header(piece.bytes);
  if (!header) {
    found_.doubt("numpy_header", "its NumPy header is damaged", piece.where);
    return;
  }
  const Bytes data = piece.bytes.subspan(header->data);
  if (header->objects) {
    Piece objects = piece;
    objects.where += objects.where.empty() ? "objects" : ": objects";
    if (objects.offset)
      *objects.offset += header->data;
    add_stream(objects, data, 0, false);
  } else if (!header->bytes) {
    found_.doubt("numpy_header",
                 "its NumPy header has a dtype or shape that is not understood",
                 piece.where);
  } else if (*header->bytes < data.size()) {
    found_.doubt("unaccounted_bytes",
                 fmt::format("{} bytes follow its elements",
                             data.size() - *header->bytes),
                 piece.where);
  }
}

bool ContainerSearch::search_compressed(const Piece& piece) {
  if (is_seven_zip(piece.bytes)) {
    search_seven_zip(piece);
    return true;
  }
  if (const std::string_view what = unread_packing(piece.bytes);
      !what.empty()) {
    found_.doubt("unread_format",
                 fmt::format("it is {}, which is not looked into", what),
                 piece.where);
    return true;
  }
  std::optional<Unpacked> unpacked =
      unpack(piece.bytes, limits_, found_.allowance.inflated);
  if (!unpacked)
    return false;
  Decompressed& inner = unpacked->inner;
  const bool zlib = !unpacked->has_signature;
  // Readers differ in what they accept as a header.
  constexpr std::size_t kLeast = 14;
  if (inner.damage && inner.bytes.empty()) {
    const bool marked =
        !zlib && piece.bytes.size() >= kLeast && piece.role != Role::kStorage;
    if (marked)
      found_.doubt(
          "decompression",
          fmt::format("it cannot be decompressed: {}", inner.damage->message()),
          piece.where);
    return marked;
  }
  found_.allowance.inflated -=
      std::min<std::uint64_t>(found_.allowance.inflated, inner.bytes.size());
  const std::string where =
      piece.where + (piece.where.empty() ? "" : ": ") + "decompressed";
  const std::size_t streams = found_.result.streams.size();
  const std::size_t doubts = found_.result.doubts.size();
  const std::size_t findings = found_.result.findings.size();
  Piece inside = piece;
  inside.where = where;
  ++inside.depth;
  if (inside.role == Role::kFile)
    inside.role = Role::kEntry;
  const Bytes front = as_bytes(inner.bytes);
  examine_bytes(std::vector<std::byte>(front.begin(), front.end()),
                std::move(inside));
  const bool found_something = !zlib ||
                               found_.result.streams.size() > streams ||
                               found_.result.doubts.size() > doubts ||
                               found_.result.findings.size() > findings;
  if (inner.damage && found_something)
    found_.doubt(
        "decompression",
        fmt::format("it was decompressed in part: {}", inner.damage->message()),
        piece.where);
  return found_something;
}

void ContainerSearch::search_seven_zip(const Piece& piece) {
  if (const std::uint64_t end = seven_zip_end(piece.bytes);
      end < piece.bytes.size())
    search_stray(piece, end, piece.bytes.size());
  const Result<> read = read_seven_zip(
      piece.bytes, found_.allowance.inflated, [&](const ForeignMember& member) {
        Piece inside = piece.entry(member.name);
        if (!member.failure.empty())
          found_.doubt(
              "decompression",
              fmt::format("it was decompressed in part: {}", member.failure),
              inside.where);
        found_.allowance.inflated -= std::min<std::uint64_t>(
            found_.allowance.inflated, member.bytes.size());
        const Bytes bytes = as_bytes(member.bytes);
        examine_bytes(std::vector<std::byte>(bytes.begin(), bytes.end()),
                      std::move(inside));
        return found_.allowance.inflated;
      });
  if (!read)
    found_.doubt("decompression",
                 fmt::format("its 7z archive was read in part: {}",
                             read.error().message()),
                 piece.where);
}

}  // namespace postflight
