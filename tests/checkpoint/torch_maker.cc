#include "checkpoint/torch_maker.h"

#include "base/test_files.h"
#include "checkpoint/expect.h"
#include "checkpoint/zip_maker.h"
#include "pickle/writing/writer.h"

namespace postflight {
namespace {

Value numbers(Builder& builder, const std::vector<std::int64_t>& all) {
  std::vector<Value> items;
  for (const std::int64_t number : all)
    items.push_back(builder.integer(number));
  return builder.tuple(items);
}

template <class T>
std::string number_bytes(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

}  // namespace

Value storage_id(Builder& builder, const MadeTensor& tensor) {
  return builder.persistent(builder.tuple(
      {builder.string("storage"), builder.global("torch", tensor.storage_class),
       builder.string(tensor.key), builder.string(tensor.device),
       builder.integer(tensor.count)}));
}

Value make_tensor(Builder& builder, const MadeTensor& tensor) {
  std::vector<Value> arguments = {
      storage_id(builder, tensor),
      builder.integer(tensor.offset),
      numbers(builder, tensor.shape),
      numbers(builder, tensor.stride),
      Builder::boolean(tensor.requires_grad),
      builder.reduce(builder.global("collections", "OrderedDict"),
                     builder.tuple({}))};
  if (!tensor.dtype.empty())
    arguments.push_back(builder.global("torch", tensor.dtype));
  if (tensor.conj || tensor.neg) {
    const Value metadata = builder.dict();
    if (tensor.conj)
      builder.set_item(metadata, "conj", Builder::boolean(true));
    if (tensor.neg)
      builder.set_item(metadata, "neg", Builder::boolean(true));
    arguments.push_back(metadata);
  }
  return builder.reduce(
      builder.global("torch._utils", tensor.dtype.empty()
                                         ? "_rebuild_tensor_v2"
                                         : "_rebuild_tensor_v3"),
      builder.tuple(arguments));
}

std::string torch_file(const Value& root, const MadeFile& file) {
  std::vector<MadeZipEntry> entries;
  const auto add = [&](const std::string& name, const std::string& contents) {
    MadeZipEntry entry;
    entry.name = "made/" + name;
    entry.contents = contents;
    entry.deflated = file.deflated;
    entries.push_back(entry);
  };
  add("data.pkl", must(write_pickle(root)));
  add("byteorder", file.byteorder);
  for (const MadeRecord& record : file.storages)
    add("data/" + record.key, record.bytes);
  add("version", "3\n");
  return make_zip(entries);
}

std::string legacy_file(const Value& root, const MadeFile& file,
                        const std::vector<std::int64_t>& counts) {
  Builder builder;
  std::string out = must(write_pickle(
      builder.big_integer("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")));
  out += must(write_pickle(builder.integer(1001)));
  out += must(write_pickle(builder.dict()));
  out += must(write_pickle(root));
  std::vector<Value> keys;
  for (const MadeRecord& record : file.storages)
    keys.push_back(builder.string(record.key));
  out += must(write_pickle(builder.list(keys)));
  for (std::size_t i = 0; i < counts.size(); ++i)
    out += number_bytes(counts[i]) + file.storages[i].bytes;
  return out;
}

std::string tar_member(std::string_view name, std::string_view contents) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  header.replace(124, 11, fmt::format("{:011o}", contents.size()));
  header.replace(156, 1, "0");
  header.replace(257, 6, std::string("ustar\0", 6));
  header.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : header)
    sum += static_cast<unsigned char>(c);
  header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
  std::string out = header + std::string(contents);
  out.append((512 - out.size() % 512) % 512, '\0');
  return out;
}

std::string tar_file(const Value& root) {
  Builder builder;
  std::string storages = must(write_pickle(builder.integer(1)));
  storages += must(
      write_pickle(builder.tuple({builder.integer(3), builder.string("cpu"),
                                  builder.global("torch", "FloatStorage")})));
  storages += number_bytes(std::int64_t{6});
  storages += bytes_of(std::vector<float>{0, 1, 2, 3, 4, 5});
  storages += must(write_pickle(builder.list(std::span<const Value>())));
  std::string tensors = must(write_pickle(builder.integer(1)));
  tensors += must(
      write_pickle(builder.tuple({builder.integer(7), builder.integer(3),
                                  builder.global("torch", "FloatTensor")})));
  tensors += number_bytes(std::int32_t{2}) + number_bytes(std::int32_t{0});
  for (const std::int64_t number : {2, 2, 3, 1, 1})  // sizes, strides, offset
    tensors += number_bytes(number);
  return tar_member("sys_info", must(write_pickle(builder.dict()))) +
         tar_member("pickle", must(write_pickle(root))) +
         tar_member("storages", storages) + tar_member("tensors", tensors) +
         std::string(1024, '\0');
}

}  // namespace postflight
