#include "checkpoint/writing/torch_archive.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/zip/crc32.h"
#include "checkpoint/zip/format.h"

namespace postflight {
namespace {

constexpr std::uint64_t kLarge = 0xffffffff;  // from which on zip64 is needed
constexpr std::uint16_t kDescribed = 0x0808;  // a descriptor, and UTF-8
constexpr std::uint16_t kEmpty = 0x0800;

template <class T>
void append(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::uint32_t saturated(std::uint64_t number) {
  return static_cast<std::uint32_t>(std::min(number, kLarge));
}

std::uint64_t combine(std::uint64_t seed, std::uint64_t value) {
  return seed ^ (value + 0x9e3779b9 + (seed << 6) + (seed >> 2));
}

}  // namespace

TorchArchive::TorchArchive(std::string root, std::uint64_t alignment,
                           ByteSink sink)
    : root_(std::move(root)), alignment_(alignment), sink_(std::move(sink)) {}

Result<> TorchArchive::put(std::string_view bytes) {
  at_ += bytes.size();
  return sink_(as_bytes(bytes));
}

Result<> TorchArchive::add(std::string_view name, std::string_view contents) {
  return add(name, contents.size(), [contents](const ByteSink& sink) {
    return sink(as_bytes(contents));
  });
}

Result<> TorchArchive::add(std::string_view name, std::uint64_t size,
                           const Write& write) {
  constexpr std::size_t kHeader = 30;
  constexpr std::size_t kPaddingHeader = 4;
  Entry entry{fmt::format("{}/{}", root_, name), at_, size, 0};
  constexpr std::size_t kMostName = 0xffff;
  if (entry.name.size() > kMostName)
    return fail(ErrorKind::kUnsupported,
                "a record's name of {} bytes is too long for an archive",
                entry.name.size());
  std::string wide;  // sizes that do not fit the header
  if (size >= kLarge || at_ >= kLarge) {
    append(wide, std::uint16_t{1});
    append(wide, static_cast<std::uint16_t>((size >= kLarge ? 16 : 0) +
                                            (at_ >= kLarge ? 8 : 0)));
    if (size >= kLarge) {
      append(wide, size);
      append(wide, std::uint64_t{0});
    }
    if (at_ >= kLarge)
      append(wide, at_);
  }
  const std::uint64_t start =
      at_ + kHeader + entry.name.size() + wide.size() + kPaddingHeader;
  const std::uint64_t padding = (alignment_ - start % alignment_) % alignment_;
  std::string header(kLocalSignature);
  append(header, std::uint16_t{0});
  append(header, size > 0 ? kDescribed : kEmpty);
  header.append(2 + 4 + 4 + 4 + 4, '\0');  // method, time, CRC and sizes
  append(header, static_cast<std::uint16_t>(entry.name.size()));
  append(header,
         static_cast<std::uint16_t>(wide.size() + kPaddingHeader + padding));
  header += entry.name;
  header += wide;
  header += "FB";
  append(header, static_cast<std::uint16_t>(padding));
  header.append(padding, 'Z');
  TRY(put(header));

  std::uint64_t written = 0;
  TRY(write([&](Bytes piece) {
    entry.crc = crc32_of(piece, entry.crc);
    written += piece.size();
    return sink_(piece);
  }));
  at_ += written;
  if (written != size)
    return fail(ErrorKind::kCorrupt, "{}: {} bytes were expected, {} came",
                entry.name, size, written);
  if (size > 0) {
    std::string descriptor(kDescriptorSignature);
    append(descriptor, entry.crc);
    if (wide.empty()) {
      append(descriptor, static_cast<std::uint32_t>(size));
      append(descriptor, static_cast<std::uint32_t>(size));
    } else {
      append(descriptor, size);
      append(descriptor, size);
    }
    TRY(put(descriptor));
  }
  entries_.push_back(std::move(entry));
  return {};
}

Result<> TorchArchive::begin(std::string_view pickle,
                             std::string_view byte_order) {
  TRY(add("data.pkl", pickle));
  TRY(add(".format_version", "1"));
  TRY(add(".storage_alignment", std::to_string(alignment_)));
  return add("byteorder", byte_order);
}

// A hash of the names, in the order of a set as torch keeps it, and one of the
// CRCs.
std::string TorchArchive::serialization_id() const {
  std::unordered_set<std::string> names;
  std::uint64_t crcs = 0;
  for (const Entry& entry : entries_) {
    names.insert(entry.name.substr(root_.size() + 1));
    if (entry.size > 0)
      crcs = combine(crcs, entry.crc);
  }
  std::uint64_t hash = 0;
  for (const std::string& name : names)
    hash = combine(hash, std::hash<std::string>()(name));
  return fmt::format("{:020}{:020}", hash, crcs);
}

Result<> TorchArchive::finish() {
  TRY(add("version", "3\n"));
  TRY(add(".data/serialization_id", serialization_id()));
  const std::uint64_t begin = at_;
  for (const Entry& entry : entries_) {
    std::string wide;
    if (entry.size >= kLarge || entry.offset >= kLarge) {
      append(wide, std::uint16_t{1});
      append(wide,
             static_cast<std::uint16_t>((entry.size >= kLarge ? 16 : 0) +
                                        (entry.offset >= kLarge ? 8 : 0)));
      if (entry.size >= kLarge) {
        append(wide, entry.size);
        append(wide, entry.size);
      }
      if (entry.offset >= kLarge)
        append(wide, entry.offset);
    }
    std::string line(kEntrySignature);
    append(line, std::uint16_t{0});
    append(line, std::uint16_t{0});
    append(line, entry.size > 0 ? kDescribed : kEmpty);
    line.append(2 + 4, '\0');  // method, time and date
    append(line, entry.crc);
    append(line, saturated(entry.size));
    append(line, saturated(entry.size));
    append(line, static_cast<std::uint16_t>(entry.name.size()));
    append(line, static_cast<std::uint16_t>(wide.size()));
    line.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    append(line, saturated(entry.offset));
    line += entry.name;
    line += wide;
    TRY(put(line));
  }
  const std::uint64_t end_at = at_;
  const std::uint64_t size = end_at - begin;
  const std::uint64_t count = entries_.size();
  std::string end(kZip64EndSignature);
  append(end, std::uint64_t{44});
  append(end, std::uint16_t{0x031e});
  append(end, std::uint16_t{45});
  append(end, std::uint64_t{0});  // disks
  append(end, count);
  append(end, count);
  append(end, size);
  append(end, begin);
  end += kLocatorSignature;
  append(end, std::uint32_t{0});
  append(end, end_at);
  append(end, std::uint32_t{1});
  end += kEndSignature;
  append(end, std::uint32_t{0});
  const auto few =
      static_cast<std::uint16_t>(std::min<std::uint64_t>(count, 0xffff));
  append(end, few);
  append(end, few);
  append(end, saturated(size));
  append(end, saturated(begin));
  append(end, std::uint16_t{0});
  return put(end);
}

std::string torch_archive_root(std::string_view file_name) {
  const bool ascii = std::ranges::all_of(
      file_name, [](char c) { return static_cast<unsigned char>(c) < 128; });
  const std::string_view stem = file_name.substr(0, file_name.rfind('.'));
  return ascii && !stem.empty() ? std::string(stem) : "archive";
}

}  // namespace postflight
