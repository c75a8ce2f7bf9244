#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "checkpoint/torch/pickle_probe.h"
#include "checkpoint/torch/pickle_streams.h"
#include "checkpoint/torch/search_report.h"
#include "checkpoint/zip/directory.h"
#include "checkpoint/zip/local_header.h"

namespace postflight {

// Finds every pickle inside a file by content: the file itself, the entries of
// archives, of several archives back to back as distributed checkpoints have,
// of archives inside archives, and what is compressed. A truncated zip still
// gives its first record. The streams keep views into `file`.
//
// Fails if the file is of no known format, and says what it seems to be.
Result<PickleStreams> find_pickle_streams(Bytes file, const Limits& limits,
                                          Allowance& allowance);

// Looks for pickles in bytes as everything that a reader could take them for:
// a pickle at the front, a zip archive at the end, a tar, a NumPy file, a
// compressed file, and other formats that are known. Whatever it could not look
// into, and whatever different readers would take for different things, is a
// doubt.
class ContainerSearch {
 public:
  ContainerSearch(const Limits& limits, Allowance& allowance);

  // The file itself. Returns whether it is of any known format.
  bool search(Bytes file);

  PickleStreams take() { return std::move(found_.result); }

 private:
  enum class Role {
    kFile,
    kNamed,    // an entry whose name says that it is a pickle
    kEntry,    // any other of an archive
    kStorage,  // an entry of torch's that is a storage
    kStray,    // bytes that nothing refers to
  };
  struct Piece {
    Bytes bytes;
    std::optional<std::uint64_t> offset;  // in the file, unless inflated
    std::string where;                    // of the entry, or empty for the file
    std::uint32_t depth = 0;
    Role role = Role::kFile;
    std::string_view name = {};
    std::optional<std::uint32_t> modules = {};

    Piece entry(std::string_view name) const;  // without its bytes
  };
  // How an entry of an archive could be read.
  struct Reading {
    std::uint16_t method = 0;
    std::uint64_t compressed_size = 0;
    std::uint64_t size = 0;

    bool operator==(const Reading&) const = default;
  };

  bool examine(const Piece& piece);
  bool examine_front(const Piece& piece);
  void examine_bytes(std::vector<std::byte> bytes, Piece piece);

  void search_archives(const Piece& piece, bool front_was_examined);
  void search_stray(
      const Piece& piece, std::uint64_t begin, std::uint64_t end,
      std::string_view what = "they belong to no entry of the archive");
  void search_archive(const Piece& piece, Bytes archive,
                      std::optional<std::uint64_t> offset);
  std::optional<std::uint32_t> add_modules(const ZipDirectory& directory,
                                           const std::string& where);
  void search_entry(const ZipEntry& entry, const LocalHeader& local,
                    const Piece& archive, bool is_storage);
  void read_entry(const ZipEntry& entry, const Reading& reading, Bytes behind,
                  Piece piece);
  void search_headers(const Piece& piece);
  bool looks_promising(Bytes front);

  void search_tar(const Piece& piece);
  void search_old_member(const Piece& piece, bool storages);
  void search_numpy(const Piece& piece);
  bool search_compressed(const Piece& piece);
  void search_seven_zip(const Piece& piece);

  void add_stream(const Piece& piece, Bytes bytes, std::uint64_t from,
                  bool single);

  const Limits& limits_;
  PickleProbe probe_;
  SearchReport found_;
};

}  // namespace postflight
