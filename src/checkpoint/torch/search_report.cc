#include "checkpoint/torch/search_report.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace postflight {

void SearchReport::add(Finding finding, const std::string& where) {
  finding.where =
      finding.where.empty()
          ? std::string(std::string_view(where).substr(
                0, where.ends_with(": ") ? where.size() - 2 : where.size()))
          : where + finding.where;
  result.findings.push_back(std::move(finding));
}

void SearchReport::doubt(std::string kind, std::string message,
                         const std::string& where) {
  // A hostile file can have one in every byte.
  constexpr std::size_t kMostDoubts = 10'000;
  if (result.doubts.size() >= kMostDoubts)
    return;
  result.doubts.push_back(
      {Safety::kUnknown, std::move(kind), std::move(message),
       where.ends_with(": ") ? where.substr(0, where.size() - 2) : where});
}

bool SearchReport::spend(std::uint64_t size, bool stored,
                         const std::string& place) {
  std::uint64_t& left = stored ? allowance.looked_at : allowance.inflated;
  if (size <= left) {
    left -= size;
    return true;
  }
  if (stored)
    add({"entries_overlap", Severity::kError,
         "the entries of this file add up to far more bytes than it has; this "
         "one and others were not examined",
         ""},
        place);
  else
    add({"inflates_too_much", Severity::kError,
         fmt::format("it would inflate to {} bytes, which is too much for a "
                     "file of this size; it was not examined",
                     size),
         ""},
        place);
  return false;
}

void SearchReport::check(const ZipEntry& entry, Bytes contents,
                         const std::string& place) {
  const Result<CrcState> state = check_crc(entry, contents);
  if (!state)
    add({"crc_mismatch", Severity::kError, std::string(state.error().message()),
         ""},
        place);
}

}  // namespace postflight
