#include "stream/tar/reader.h"

#include "stream/memory_stream.h"

#include <algorithm>
#include <array>
#include <utility>

namespace postflight {
namespace {

std::uint64_t padding_behind(std::uint64_t size) {
  return (kTarBlock - size % kTarBlock) % kTarBlock;
}

TarKind kind_of(char type) {
  switch (type) {
    case '0':
    case '\0':
    case '7':  // a contiguous file
      return TarKind::kFile;
    case '1':
    case '2':
      return TarKind::kLink;
    case '5':
      return TarKind::kFolder;
    default:
      return TarKind::kOther;
  }
}

// Links, devices, folders and pipes may state a size, but nothing follows.
bool has_contents(char type) {
  return type < '1' || type > '6';
}

tl::unexpected<Error> cut_inside(const std::string& path, std::uint64_t size) {
  return fail(ErrorKind::kCorrupt,
              "the tar archive is truncated inside {}, which should have {} "
              "bytes; it is probably truncated",
              path, size);
}

}  // namespace

TarReader::TarReader(Source& source, const Limits& limits)
    : source_(source), limits_(limits), start_(source.tell()) {}

Result<std::optional<TarMember>> TarReader::next() {
  if (done_)
    return std::nullopt;
  Result<std::optional<TarMember>> member = read_member();
  done_ = !member || !*member;
  return member;
}

Result<std::optional<TarMember>> TarReader::read_member() {
  TRY(skip_rest());
  PaxRecords records = for_all_;
  for (;;) {
    std::optional<TarHeader> header = TRY(read_header());
    if (!header)
      return std::nullopt;
    if (++members_ > limits_.max_archive_entries)
      return fail(ErrorKind::kRefused,
                  "the tar archive has more than {} members",
                  limits_.max_archive_entries);
    if (header->type == 'L') {
      records.path = TRY(read_extension(*header));
      records.path->resize(
          std::min(records.path->find('\0'), records.path->size()));
      continue;
    }
    if (header->type == 'x' || header->type == 'g') {
      const std::string text = TRY(read_extension(*header));
      TRY(read_pax_records(text, header->type == 'x' ? records : for_all_));
      if (header->type == 'g')
        records = for_all_;
      continue;
    }
    if (header->type == 'K') {  // the target of a link
      records.link = TRY(read_extension(*header));
      records.link->resize(
          std::min(records.link->find('\0'), records.link->size()));
      continue;
    }
    path_ = records.path ? *std::move(records.path) : std::move(header->path);
    if (records.sparse || header->type == 'S')
      return fail(ErrorKind::kUnsupported,
                  "{} is stored as a sparse file; unpack the archive with tar "
                  "first",
                  path_);
    if (header->type == 'M')
      return fail(ErrorKind::kUnsupported,
                  "{} began on another volume; join the volumes with tar first",
                  path_);
    const std::uint64_t size = records.size.value_or(header->size);
    left_ = size_ = has_contents(header->type) ? size : 0;
    padding_ = padding_behind(left_);
    return TarMember{.path = path_,
                     .kind = kind_of(header->type),
                     .offset = source_.tell() - start_,
                     .size = left_,
                     .link = records.link ? *std::move(records.link)
                                          : std::move(header->link)};
  }
}

Result<std::optional<TarHeader>> TarReader::read_header() {
  const std::uint64_t place = source_.tell() - start_;
  std::array<std::byte, kTarBlock> block;
  const std::size_t count = TRY(read_fully(source_, block));
  if (count < kTarBlock)
    return fail(ErrorKind::kCorrupt,
                "the tar archive ends at byte {} without its end mark; it is "
                "probably truncated",
                place + count);
  if (std::ranges::all_of(block, [](std::byte b) { return b == std::byte{}; }))
    return std::nullopt;
  Result<TarHeader> header = read_tar_header(block);
  if (!header)
    return tl::unexpected<Error>(std::move(header).error().in(
        fmt::format("the tar archive is damaged at byte {}", place)));
  return *std::move(header);
}

Result<std::string> TarReader::read_extension(const TarHeader& header) {
  if (header.size > limits_.max_tar_extension_bytes)
    return fail(ErrorKind::kRefused,
                "a name in the tar archive takes {} bytes, more than the {} "
                "allowed",
                header.size, limits_.max_tar_extension_bytes);
  std::string text(header.size, '\0');
  if (TRY(read_fully(source_, std::as_writable_bytes(std::span(text)))) <
          text.size() ||
      !TRY(skip(source_, padding_behind(text.size()))))
    return cut_inside("a member's name", header.size);
  return text;
}

Result<Taken> TarReader::read(std::span<std::byte> to) {
  if (left_ == 0)
    return Taken{.at_end = true};
  const std::size_t most = std::min<std::uint64_t>(to.size(), left_);
  const Taken taken = TRY(source_.read(to.first(most)));
  if (taken.at_end)
    return cut_inside(path_, size_);
  left_ -= taken.count;
  return taken;
}

Result<> TarReader::skip_rest() {
  if (!TRY(skip(source_, std::exchange(left_, 0))))
    return cut_inside(path_, size_);
  // The last member may lack its padding and the end mark.
  TRY(skip(source_, std::exchange(padding_, 0)));
  return {};
}

TarListing list_tar(Bytes archive, const Limits& limits) {
  TarListing listing;
  MemorySource source(archive);
  TarReader reader(source, limits);
  for (;;) {
    Result<std::optional<TarMember>> member = reader.next();
    if (!member) {
      listing.damage = std::move(member).error();
      return listing;
    }
    if (!*member)
      return listing;
    const std::uint64_t there = archive.size() - (*member)->offset;
    if ((*member)->size > there) {
      listing.damage = cut_inside((*member)->path, (*member)->size).value();
      listing.cut = *std::move(*member);
      listing.cut->size = there;
      return listing;
    }
    listing.members.push_back(*std::move(*member));
  }
}

}  // namespace postflight
