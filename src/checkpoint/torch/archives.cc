#include "checkpoint/torch/archives.h"

#include "checkpoint/zip/end.h"
#include "checkpoint/zip/format.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace postflight {
namespace {

// A hundred tell what is wrong with a file; more only cost memory.
constexpr std::size_t kMostGaps = 100;

Finding unrecognised(std::uint64_t end, std::string_view reason) {
  return {.kind = "unrecognised_bytes",
          .severity = Severity::kError,
          .message =
              fmt::format("bytes 0 to {} are not an archive: {}", end, reason),
          .where = "byte 0"};
}

Finding too_many(std::uint64_t end, std::uint64_t allowed) {
  return {.kind = "too_many_archives",
          .severity = Severity::kError,
          .message = fmt::format(
              "the file has more than the {} archives allowed "
              "(max_archive_entries); bytes 0 to {} were not examined",
              allowed, end),
          .where = "byte 0"};
}

// Bytes [begin, end) come after an archive and belong to none.
Finding gap(Bytes file, std::uint64_t begin, std::uint64_t end) {
  const std::string where = fmt::format("byte {}", begin);
  if (as_text(file.subspan(begin, end - begin)).starts_with(kLocalSignature))
    return {.kind = "archive_cut",
            .severity = Severity::kError,
            .message = fmt::format(
                "an archive begins at byte {} and breaks off at byte {}; the "
                "writer was probably killed or the copy interrupted",
                begin, end),
            .where = where};
  return {.kind = "zip_trailing_bytes",
          .severity = Severity::kWarning,
          .message = fmt::format("bytes {} to {} follow the end of an archive",
                                 begin, end),
          .where = where};
}

}  // namespace

Archives find_archives(Bytes file, const Limits& limits) {
  Archives found;
  std::uint64_t rest = file.size();  // the bytes after it are done
  std::size_t gaps = 0;
  do {
    if (found.extents.size() == limits.max_archive_entries) {
      found.findings.push_back(too_many(rest, limits.max_archive_entries));
      break;
    }
    const Result<ZipEnd> end = find_zip_end(file.first(rest));
    if (!end) {
      found.findings.push_back(unrecognised(rest, end.error().message()));
      break;
    }
    if (end->archive.end() < rest && ++gaps <= kMostGaps)
      found.findings.push_back(gap(file, end->archive.end(), rest));
    found.extents.push_back(end->archive);
    rest = end->archive.offset;  // strictly less: an archive has an end record
  } while (rest > 0);
  std::ranges::reverse(found.extents);
  std::ranges::reverse(found.findings);
  return found;
}

std::optional<Extent> archive_at_end(Bytes bytes) {
  constexpr std::size_t kTail = 65536 + 22;
  const Bytes tail = bytes.last(std::min(bytes.size(), kTail));
  if (as_text(tail).rfind(kEndSignature) == std::string_view::npos)
    return std::nullopt;
  const Result<ZipEnd> end = find_zip_end(bytes);
  return end && end->entries > 0 ? std::optional(end->archive) : std::nullopt;
}

}  // namespace postflight
