#pragma once

#include "base/atomic_file.h"
#include "base/descriptor.h"
#include "stream/sink.h"
#include "stream/source.h"

#include <filesystem>
#include <string>

namespace postflight {

// Reads a file, a pipe or a terminal. With a non-blocking descriptor, reads do
// not block either.
class FileSource : public Source {
 public:
  static Result<FileSource> open(const std::filesystem::path& path);
  // `name` is for messages.
  FileSource(Descriptor descriptor, std::string name);

  Result<Taken> read(std::span<std::byte> to) override;
  std::uint64_t tell() const override { return position_; }
  bool seekable() const override { return seekable_; }
  Result<> seek(std::uint64_t position) override;
  // Blocks until a read would not block.
  void wait() const;
  // The size of a regular file; 0 if unknown.
  std::uint64_t size() const { return size_; }

 private:
  Descriptor descriptor_;
  std::string name_;
  bool seekable_ = false;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
};

// Writes directly to a descriptor, such as standard output. Use AtomicFileSink
// to create a file.
class FileSink : public Sink {
 public:
  // `name` is for messages.
  FileSink(Descriptor descriptor, std::string name);

  Result<> write(Bytes bytes) override;
  Result<> flush() override { return {}; }
  std::uint64_t tell() const override { return position_; }

 private:
  Descriptor descriptor_;
  std::string name_;
  std::uint64_t position_ = 0;
};

// Writes a file that appears, complete, in finish().
class AtomicFileSink : public Sink {
 public:
  explicit AtomicFileSink(AtomicFile file) : file_(std::move(file)) {}

  Result<> write(Bytes bytes) override;
  Result<> flush() override { return {}; }
  Result<> finish() override { return file_.commit(); }
  std::uint64_t tell() const override { return position_; }

 private:
  AtomicFile file_;
  std::uint64_t position_ = 0;
};

}  // namespace postflight
