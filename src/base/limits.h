#pragma once

#include <cstdint>

namespace postflight {

// Every cap on what a file may cost us. A file that asks for more is refused
// with an error that names the cap; nothing is allocated on its word alone.
struct Limits {
  // CPython's own cap on decimal integers in text (sys.int_max_str_digits);
  // converting more is quadratic work.
  std::uint64_t max_integer_digits = 4300;
  // What one archive entry or one compressed file may inflate to. Deflate
  // itself can't do better than 1032:1, so this stops large bombs; small ones
  // stop there.
  std::uint64_t max_inflated_bytes = 4ULL << 30;
  // What a decoder may keep of the bytes before to refer back to: as much as
  // the zstd program allows unless it is told otherwise.
  std::uint64_t max_window_bytes = 128ULL << 20;
  // One block of a stream with checksums or encryption, which is held in memory
  // until it is known to be genuine.
  std::uint64_t max_stream_block_bytes = 16 << 20;
  // A long name or a set of pax records in a tar archive.
  std::uint64_t max_tar_extension_bytes = 1 << 20;
  // What all values of one pickle reader may take. Pickles take 2 to 8 bytes
  // for each of theirs, and none more than 64.
  std::uint64_t max_value_bytes = ~std::uint64_t{0};
  // Pickles in one file; each costs a few hundred bytes.
  std::uint64_t max_pickles = 50'000;
  // Archives inside archives, pickles inside pickles.
  std::uint32_t max_nesting = 8;
  // One flight-recorder dump in an archive or compressed; the largest seen have
  // some 10 MB.
  std::uint64_t max_dump_bytes = 1ULL << 30;
  // Containers inside containers of a JSON file; those we know have five.
  std::uint32_t max_json_depth = 512;
  // Items of a zip archive or concatenated archives in one file.
  std::uint64_t max_archive_entries = 16'000'000;
  // What the tensors of a checkpoint may come to when all are read, beyond a
  // few times its files: a view of one byte can repeat it without end.
  std::uint64_t max_materialised_bytes = 64ULL << 30;
  // What is read into memory from a pipe, or from a file that can't be mapped.
  std::uint64_t max_pipe_bytes = 4ULL << 30;
  // Hosts and ranks that a list of hosts may stand for. The largest jobs known
  // have a quarter of that.
  std::uint64_t max_listed_hosts = 100'000;
  std::uint64_t max_listed_ranks = 1'000'000;
  // Members of all process groups of a job together: forty groups of 100,000
  // ranks. One text in a dump can be the list of a thousand groups.
  std::uint64_t max_group_members = 4'000'000;
  // What is looked at of a line in a job's log, and what is kept of one as a
  // message. The lines worth finding say so in their first few hundred bytes.
  std::uint64_t max_log_line_bytes = 16 << 10;
  std::uint64_t max_log_message_bytes = 500;
  // Events of one kind that differ, kept from all of a job's logs, and the
  // ranks remembered for all of them together.
  std::uint64_t max_log_events = 1'000;
  std::uint64_t max_log_event_ranks = 4'000'000;
  // Characters kept of a function's or file's name in a profiled process, and
  // the table of its lines; generated functions have the longest, some 100 kB.
  std::uint64_t max_python_name = 1'000;
  std::uint64_t max_line_table_bytes = 4 << 20;
  // One block of a profile's log, of which it is written by the 64 kB.
  std::uint64_t max_profile_block_bytes = 16 << 20;
  // Samples of all profiles that are looked at together; each costs 40 bytes.
  std::uint64_t max_profile_samples = 100'000'000;
  // Processes whose tracebacks may be mixed in one log.
  std::uint64_t max_open_tracebacks = 10'000;
};

}  // namespace postflight
