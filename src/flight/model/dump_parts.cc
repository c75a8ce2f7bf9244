#include "flight/model/dump_parts.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/file.h"
#include "stream/codec/compression.h"
#include "stream/filter_source.h"
#include "stream/memory_stream.h"
#include "stream/tar/reader.h"

namespace postflight {
namespace {

class PartReader {
 public:
  PartReader(Machine& machine, const Limits& limits)
      : machine_(machine), limits_(limits) {
    limits_.max_inflated_bytes =
        std::min(limits_.max_inflated_bytes, limits_.max_dump_bytes);
  }

  std::vector<DumpPart> read(const std::string& file, Bytes bytes) && {
    const Compression compression = sniff_compression(bytes);
    MemorySource plain(bytes);
    if (compression == Compression::kNone) {
      if (looks_like_tar(bytes))
        read_archive(file, plain);
      else
        read_one(file, bytes, {});
      return std::move(parts_);
    }
    if (holds_archive(compression, bytes)) {
      Result<std::unique_ptr<Filter>> decoder =
          make_decoder(compression, limits_);
      if (!decoder) {
        skip(file, decoder.error());
        return std::move(parts_);
      }
      FilterSource source(plain, *std::move(decoder));
      read_archive(file, source);
      return std::move(parts_);
    }
    Decompressed decoded = decompress(bytes, limits_);
    read_one(file, as_bytes(decoded.bytes), std::move(decoded.damage));
    return std::move(parts_);
  }

 private:
  bool holds_archive(Compression compression, Bytes bytes) {
    Result<std::unique_ptr<Filter>> decoder =
        make_decoder(compression, limits_);
    if (!decoder)
      return false;
    MemorySource plain(bytes);
    FilterSource source(plain, *std::move(decoder));
    std::array<std::byte, kTarBlock> front;
    const Result<std::size_t> count = read_fully(source, front);
    return count && *count == kTarBlock && looks_like_tar(front);
  }

  void read_archive(const std::string& file, Source& source) {
    TarReader archive(source, limits_);
    for (;;) {
      Result<std::optional<TarMember>> member = archive.next();
      if (!member) {
        skip(file, member.error());
        return;
      }
      if (!*member)
        return;
      if ((*member)->kind != TarKind::kFile)
        continue;
      const std::string name = file + "/" + (*member)->path;
      std::string contents;
      std::optional<Error> damage = read_member(archive, contents);
      if (sniff_compression(as_bytes(contents)) == Compression::kNone) {
        read_one(name, as_bytes(contents), std::move(damage));
        continue;
      }
      Decompressed decoded = decompress(as_bytes(contents), limits_);
      if (!decoded.damage)
        decoded.damage = std::move(damage);
      read_one(name, as_bytes(decoded.bytes), std::move(decoded.damage));
    }
  }

  // Reads on while there is more, whatever the header says of the size.
  std::optional<Error> read_member(TarReader& archive, std::string& contents) {
    std::array<std::byte, 64 << 10> piece;
    for (;;) {
      Result<Taken> taken = archive.read(piece);
      if (!taken)
        return std::move(taken).error();
      if (taken->at_end)
        return std::nullopt;
      if (contents.size() + taken->count > limits_.max_dump_bytes)
        return Error(ErrorKind::kRefused,
                     fmt::format("it has more than the {} bytes that a dump "
                                 "may have (max_dump_bytes)",
                                 limits_.max_dump_bytes));
      contents += as_text(Bytes(piece).first(taken->count));
    }
  }

  void read_one(const std::string& file, Bytes bytes,
                std::optional<Error> damage) {
    Result<Dump> dump = read_dump(bytes, machine_, limits_);
    if (!dump) {
      skip(file, damage && bytes.empty() ? *damage : dump.error(),
           bytes.empty() && !damage);
      return;
    }
    if (damage)
      dump->damage = std::move(damage);
    parts_.push_back({file, *std::move(dump), std::nullopt});
  }

  void skip(const std::string& file, const Error& error, bool empty = false) {
    parts_.push_back(
        {file, std::nullopt,
         SkippedFile{file, std::string(error.message()), empty, -1}});
  }

  Machine& machine_;
  Limits limits_;
  std::vector<DumpPart> parts_;
};

}  // namespace

DumpParts read_dump_parts(const std::string& file, Machine& machine,
                          const Limits& limits) {
  DumpParts read;
  const Result<MappedFile> mapped = MappedFile::open(file, limits);
  if (!mapped) {
    read.parts.push_back(
        {file, std::nullopt,
         SkippedFile{file, std::string(mapped.error().message()), false, -1}});
    return read;
  }
  read.bytes = mapped->bytes().size();
  read.parts = PartReader(machine, limits).read(file, mapped->bytes());
  // What was cut off meanwhile has been read as zeros.
  if (mapped->shrank()) {
    read.parts.clear();
    read.parts.push_back(
        {file, std::nullopt,
         SkippedFile{file,
                     "it became shorter while it was read; is it still being "
                     "written?",
                     false, -1}});
  }
  return read;
}

}  // namespace postflight
