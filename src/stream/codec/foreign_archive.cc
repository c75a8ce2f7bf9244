// The one place that calls libarchive. Only its reader of 7z archives and its
// decoders of bzip2, xz and lzma are registered, so that no other is linked.

#include "stream/codec/foreign_archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <memory>

namespace postflight {
namespace {

constexpr std::string_view kSevenZip = "7z\xbc\xaf\x27\x1c";
constexpr std::array<std::string_view, 3> kCompressions = {
    "BZh",
    "\xfd"
    "7zXZ",
    std::string_view("\x5d\0\0", 3)};
constexpr std::size_t kPiece = 64 << 10;

struct Closer {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using Reader = std::unique_ptr<archive, Closer>;

std::string message_of(archive* reader) {
  const char* const text = archive_error_string(reader);
  return text != nullptr ? text : "it is damaged";
}

Result<Reader> opened(Bytes bytes, bool compressed) {
  Reader reader(archive_read_new());
  if (reader == nullptr)
    return fail(ErrorKind::kRefused, "out of memory for libarchive");
  if (compressed) {
    archive_read_support_filter_bzip2(reader.get());
    archive_read_support_filter_xz(reader.get());
    archive_read_support_filter_lzma(reader.get());
    archive_read_support_format_raw(reader.get());
  } else {
    archive_read_support_format_7zip(reader.get());
  }
  if (archive_read_open_memory(reader.get(), bytes.data(), bytes.size()) !=
      ARCHIVE_OK)
    return fail(ErrorKind::kCorrupt, "{}", message_of(reader.get()));
  return reader;
}

// The contents of the current entry. Empty failure if they ended.
std::string read_contents(archive* reader, std::uint64_t most,
                          std::string& to) {
  for (;;) {
    const std::size_t used = to.size();
    to.resize(used + kPiece);
    const la_ssize_t count =
        archive_read_data(reader, to.data() + used, kPiece);
    to.resize(used + (count > 0 ? static_cast<std::size_t>(count) : 0));
    if (count < 0)
      return message_of(reader);
    if (count == 0)
      return {};
    if (to.size() > most) {
      to.resize(most);
      return fmt::format("it decodes to more than the {} bytes allowed", most);
    }
  }
}

}  // namespace

bool is_foreign_compression(Bytes front) {
  return std::ranges::any_of(kCompressions, [front](std::string_view magic) {
    return as_text(front).starts_with(magic);
  });
}

Decompressed decompress_foreign(Bytes bytes, std::uint64_t most) {
  Decompressed result;
  const auto damaged = [&result](std::string message) {
    Result<> failed = fail(ErrorKind::kCorrupt, "{}", message);
    result.damage = std::move(failed).error();
  };
  Result<Reader> reader = opened(bytes, true);
  if (!reader) {
    result.damage = std::move(reader).error();
    return result;
  }
  archive_entry* entry = nullptr;
  if (archive_read_next_header(reader->get(), &entry) != ARCHIVE_OK) {
    damaged(message_of(reader->get()));
    return result;
  }
  // Without a filter it would hand out the bytes as they are.
  if (archive_filter_count(reader->get()) < 2) {
    damaged("it is not compressed");
    return result;
  }
  std::string failure = read_contents(reader->get(), most, result.bytes);
  if (!failure.empty()) {
    damaged(std::move(failure));
    return result;
  }
  const la_int64_t used = archive_filter_bytes(reader->get(), -1);
  if (used >= 0 && static_cast<std::uint64_t>(used) < bytes.size() &&
      !std::ranges::all_of(bytes.subspan(static_cast<std::uint64_t>(used)),
                           [](std::byte byte) { return byte == std::byte{0}; }))
    damaged(fmt::format("{} bytes follow its end",
                        bytes.size() - static_cast<std::uint64_t>(used)));
  return result;
}

bool is_seven_zip(Bytes front) {
  return as_text(front).starts_with(kSevenZip);
}

std::uint64_t seven_zip_end(Bytes archive) {
  // The first header says where the last one is, counted from its own end.
  constexpr std::uint64_t kFirst = 32;
  if (archive.size() < kFirst)
    return archive.size();
  const auto offset = load_little_endian<std::uint64_t>(archive.data() + 12);
  const auto size = load_little_endian<std::uint64_t>(archive.data() + 20);
  const auto behind = checked_add(offset, size);
  const auto end = behind ? checked_add(*behind, kFirst) : std::nullopt;
  return std::min<std::uint64_t>(end.value_or(archive.size()), archive.size());
}

Result<> read_seven_zip(
    Bytes archive, std::uint64_t most,
    const std::function<std::uint64_t(ForeignMember member)>& take) {
  const Reader reader = TRY(opened(archive, false));
  for (;;) {
    archive_entry* entry = nullptr;
    const int state = archive_read_next_header(reader.get(), &entry);
    if (state == ARCHIVE_EOF)
      return {};
    if (state != ARCHIVE_OK && state != ARCHIVE_WARN)
      return fail(ErrorKind::kCorrupt, "{}", message_of(reader.get()));
    const char* const name = archive_entry_pathname_utf8(entry);
    ForeignMember member{
        .name = name != nullptr ? name : "", .bytes = {}, .failure = {}};
    if (archive_entry_is_encrypted(entry) != 0)
      member.failure = "it is encrypted";
    else
      member.failure = read_contents(reader.get(), most, member.bytes);
    most = take(std::move(member));
  }
}

}  // namespace postflight
