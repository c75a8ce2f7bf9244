#pragma once

#include <cstdint>

namespace postflight {

// Every cap on the cost of reading a file. A file that needs more is refused
// with an error that names the cap; no size from a file is trusted unchecked.
struct Limits {
  // CPython's own cap on decimal integers in text (sys.int_max_str_digits);
  // converting more is quadratic work.
  std::uint64_t max_integer_digits = 4300;
  // The inflated size of one archive entry or compressed file. Deflate cannot
  // exceed 1032:1, which bounds small decompression bombs; this stops large
  // ones.
  std::uint64_t max_inflated_bytes = 4ULL << 30;
  // A decoder's window of earlier output: the default of the zstd program
  // (--long=27).
  std::uint64_t max_window_bytes = 128ULL << 20;
  // One block of a stream with checksums or encryption, which is buffered until
  // it is verified.
  std::uint64_t max_stream_block_bytes = 16 << 20;
  // A long name or a set of pax records in a tar archive.
  std::uint64_t max_tar_extension_bytes = 1 << 20;
  // Memory for all values of one pickle reader: usually 2 to 8 bytes per byte
  // of the pickle, at most 64.
  std::uint64_t max_value_bytes = ~std::uint64_t{0};
  // Pickles in one file; each costs a few hundred bytes.
  std::uint64_t max_pickles = 50'000;
  // Archives inside archives, pickles inside pickles.
  std::uint32_t max_nesting = 8;
  // One flight-recorder dump in an archive or compressed; the largest seen are
  // about 10 MB.
  std::uint64_t max_dump_bytes = 1ULL << 30;
  // Nesting depth of a JSON file; the known ones have five levels.
  std::uint32_t max_json_depth = 512;
  // Entries of a zip archive, or of all concatenated archives in one file.
  std::uint64_t max_archive_entries = 16'000'000;
  // Total size of a checkpoint's tensors once read, beyond a few times the size
  // of its files: a stride of 0 can repeat one byte indefinitely.
  std::uint64_t max_materialised_bytes = 64ULL << 30;
  // Bytes read into memory from a pipe or from a file that cannot be mapped.
  std::uint64_t max_pipe_bytes = 4ULL << 30;
  // Hosts and ranks that a host list may expand to. The largest known jobs have
  // a quarter of that.
  std::uint64_t max_listed_hosts = 100'000;
  std::uint64_t max_listed_ranks = 1'000'000;
  // Members of all process groups of a job together: forty groups of 100,000
  // ranks. One text in a dump can be the list of a thousand groups.
  std::uint64_t max_group_members = 4'000'000;
  // Bytes examined of a line of a job log, and bytes of it kept as a message.
  // Relevant lines can be recognised by their first few hundred bytes.
  std::uint64_t max_log_line_bytes = 16 << 10;
  std::uint64_t max_log_message_bytes = 500;
  // Distinct events of one kind kept from all logs of a job, and the ranks kept
  // for all of them together.
  std::uint64_t max_log_events = 1'000;
  std::uint64_t max_log_event_ranks = 4'000'000;
  // Characters kept of a function or file name in a profiled process, and the
  // size of its line table; those of generated functions reach about 100 kB.
  std::uint64_t max_python_name = 1'000;
  std::uint64_t max_line_table_bytes = 4 << 20;
  // One block of a profile log; we write blocks of 64 kB.
  std::uint64_t max_profile_block_bytes = 16 << 20;
  // Samples of all profiles of one report; each takes 40 bytes.
  std::uint64_t max_profile_samples = 100'000'000;
  // Processes whose tracebacks may be interleaved in one log.
  std::uint64_t max_open_tracebacks = 10'000;
};

}  // namespace postflight
