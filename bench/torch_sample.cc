#include "torch_sample.h"

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/zip/crc32.h"
#include "pickle/builder.h"
#include "pickle/writing/writer.h"

namespace postflight {
namespace {

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

class Archive {
 public:
  explicit Archive(const std::filesystem::path& path)
      : out_(path, std::ios::binary) {}

  void add(const std::string& record, std::string_view contents) {
    const std::string name = "sample/" + record;
    const std::uint32_t crc = crc32_of(as_bytes(contents));
    const std::uint64_t start = at_ + 30 + name.size() + 4;
    const auto padding = static_cast<std::uint16_t>((64 - start % 64) % 64);
    std::string local = "PK\3\4";
    append(local, std::uint16_t{0});
    append(local, std::uint16_t{0x0808});
    local.append(18, '\0');
    append(local, static_cast<std::uint16_t>(name.size()));
    append(local, static_cast<std::uint16_t>(padding + 4));
    local += name + "FB";
    append(local, padding);
    local.append(padding, 'Z');
    std::string descriptor = "PK\7\10";
    append(descriptor, crc);
    append(descriptor, static_cast<std::uint32_t>(contents.size()));
    append(descriptor, static_cast<std::uint32_t>(contents.size()));
    directory_ += "PK\1\2";
    append(directory_, std::uint32_t{0});
    append(directory_, std::uint16_t{0x0808});
    directory_.append(6, '\0');
    append(directory_, crc);
    append(directory_, static_cast<std::uint32_t>(contents.size()));
    append(directory_, static_cast<std::uint32_t>(contents.size()));
    append(directory_, static_cast<std::uint16_t>(name.size()));
    directory_.append(12, '\0');
    append(directory_, static_cast<std::uint32_t>(at_));
    directory_ += name;
    ++entries_;
    write(local);
    write(contents);
    write(descriptor);
  }

  void finish() {
    std::string end = "PK\5\6";
    append(end, std::uint32_t{0});
    append(end, entries_);
    append(end, entries_);
    append(end, static_cast<std::uint32_t>(directory_.size()));
    append(end, static_cast<std::uint32_t>(at_));
    append(end, std::uint16_t{0});
    write(directory_);
    write(end);
  }

 private:
  void write(std::string_view text) {
    out_.write(text.data(), static_cast<std::streamsize>(text.size()));
    at_ += text.size();
  }

  std::ofstream out_;
  std::uint64_t at_ = 0;
  std::uint16_t entries_ = 0;
  std::string directory_;
};

Value tensor(Builder& builder, const std::string& key, std::int64_t count,
             std::span<const Value> shape, std::span<const Value> stride) {
  return builder.reduce(
      builder.global("torch._utils", "_rebuild_tensor_v2"),
      builder.tuple(
          {builder.persistent(builder.tuple(
               {builder.interned("storage"),
                builder.global("torch", "FloatStorage"), builder.string(key),
                builder.interned("cpu"), builder.integer(count)})),
           builder.integer(0), builder.tuple(shape), builder.tuple(stride),
           Builder::boolean(false),
           builder.reduce(builder.global("collections", "OrderedDict"),
                          builder.tuple({}))}));
}

}  // namespace

void write_torch_sample(const std::filesystem::path& path, int tensors,
                        std::int64_t elements) {
  Builder builder;
  const Value root = builder.reduce(
      builder.global("collections", "OrderedDict"), builder.tuple({}));
  const std::vector<Value> shape = {builder.integer(elements / 32),
                                    builder.integer(32)};
  const std::vector<Value> stride = {builder.integer(32), builder.integer(1)};
  for (int i = 0; i < tensors; ++i)
    builder.set_item(
        root, builder.string(fmt::format("layers.{}.weight", i)),
        tensor(builder, fmt::format("{}", i), elements, shape, stride));
  Archive archive(path);
  archive.add("data.pkl", *write_pickle(root));
  archive.add("byteorder", "little");
  std::string contents(static_cast<std::size_t>(elements) * 4, '\0');
  for (int i = 0; i < tensors; ++i) {
    for (std::size_t j = 0; j < contents.size(); j += 61)
      contents[j] = static_cast<char>(i + static_cast<int>(j));
    archive.add(fmt::format("data/{}", i), contents);
  }
  archive.add("version", "3\n");
  archive.finish();
}

void write_transposed_sample(const std::filesystem::path& path,
                             std::int64_t rows, std::int64_t columns) {
  Builder builder;
  const std::vector<Value> shape = {builder.integer(rows),
                                    builder.integer(columns)};
  const std::vector<Value> stride = {builder.integer(1), builder.integer(rows)};
  Archive archive(path);
  archive.add("data.pkl", *write_pickle(tensor(builder, "0", rows * columns,
                                               shape, stride)));
  archive.add("data/0",
              std::string(static_cast<std::size_t>(rows * columns) * 4, 'x'));
  archive.add("version", "3\n");
  archive.finish();
}

}  // namespace postflight
