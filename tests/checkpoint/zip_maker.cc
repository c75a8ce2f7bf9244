#include "checkpoint/zip_maker.h"

#include <algorithm>

#include <zlib.h>

namespace postflight {
namespace {

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_narrow(std::string& out, std::uint64_t value) {
  put(out,
      static_cast<std::uint32_t>(std::min<std::uint64_t>(value, 0xffffffff)));
}

std::string deflated(const std::string& data) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()), '\0');
  std::string in = data;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void put_local(std::string& out, const MadeZipEntry& entry) {
  const std::string& name = entry.local_name.value_or(entry.name);
  out += "PK\3\4";
  put<std::uint16_t>(out, 20);
  put(out, entry.flags);
  put(out, entry.method.value_or(entry.deflated ? 8 : 0));
  out.append(16, '\0');  // time, CRC and sizes stand in the directory
  put(out, static_cast<std::uint16_t>(name.size()));
  put(out, static_cast<std::uint16_t>(entry.local_extra.size()));
  out += name + entry.local_extra;
}

void put_entry(std::string& out, const MadeZipEntry& entry,
               std::uint64_t compressed_size, std::uint64_t offset) {
  const std::uint64_t packed = entry.compressed_size.value_or(compressed_size);
  const std::uint64_t size = entry.size.value_or(entry.contents.size());
  const std::uint64_t at = entry.header_offset.value_or(offset);
  std::string extra;
  if (entry.zip64) {
    put<std::uint16_t>(extra, 1);
    put<std::uint16_t>(extra, 24);
    put(extra, size);
    put(extra, packed);
    put(extra, at);
  }
  extra = entry.extra.value_or(extra);
  out += "PK\1\2";
  put<std::uint32_t>(out, 20);
  put(out, entry.flags);
  put(out, entry.method.value_or(entry.deflated ? 8 : 0));
  put<std::uint32_t>(out, 0);
  put(out, entry.crc.value_or(static_cast<std::uint32_t>(
               crc32_z(0, reinterpret_cast<const Bytef*>(entry.contents.data()),
                       entry.contents.size()))));
  put_narrow(out, entry.zip64 ? ~0ULL : packed);
  put_narrow(out, entry.zip64 ? ~0ULL : size);
  put(out, static_cast<std::uint16_t>(entry.name.size()));
  put(out, static_cast<std::uint16_t>(extra.size()));
  out.append(10, '\0');
  put_narrow(out, entry.zip64 ? ~0ULL : at);
  out += entry.name + extra;
}

}  // namespace

std::string make_zip(const std::vector<MadeZipEntry>& entries,
                     const MadeEnd& end) {
  std::string out;
  std::string directory;
  for (const MadeZipEntry& entry : entries) {
    const std::uint64_t at = out.size();
    const std::string payload =
        entry.deflated ? deflated(entry.contents) : entry.contents;
    put_local(out, entry);
    out += payload + entry.after;
    put_entry(directory, entry, payload.size(), at);
  }
  const std::uint64_t offset = end.directory_offset.value_or(out.size());
  const std::uint64_t size = end.directory_size.value_or(directory.size());
  const std::uint64_t count = end.entries.value_or(entries.size());
  out += directory;
  if (end.zip64) {
    const std::uint64_t at = out.size();
    out += "PK\6\6";
    put<std::uint64_t>(out, 44);
    out.append(12, '\0');
    for (const std::uint64_t wide : {count, count, size, offset})
      put(out, wide);
    out += "PK\6\7";
    put<std::uint32_t>(out, 0);
    put(out, end.zip64_offset.value_or(at));
    put<std::uint32_t>(out, 1);
  }
  const auto narrow = end.narrow_entries.value_or(static_cast<std::uint16_t>(
      end.zip64 ? 0xffff : std::min<std::uint64_t>(count, 0xffff)));
  out += "PK\5\6";
  put(out, end.disk);
  put(out, end.disk);
  put(out, narrow);
  put(out, narrow);
  put_narrow(out, end.zip64 ? ~0ULL : size);
  put_narrow(out, end.zip64 ? ~0ULL : offset);
  put(out, end.comment_size.value_or(
               static_cast<std::uint16_t>(end.comment.size())));
  return out + end.comment;
}

}  // namespace postflight
