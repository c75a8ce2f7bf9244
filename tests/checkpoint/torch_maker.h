#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pickle/builder.h"

namespace postflight {

// What the files of torch.save hold, made by hand for tests.
struct MadeTensor {
  std::string_view storage_class = "FloatStorage";
  std::string_view key = "0";
  std::int64_t count = 0;  // elements of the storage
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> stride = {};
  bool requires_grad = false;
  std::string_view device = "cpu";
  std::string_view dtype = {};  // not empty: _rebuild_tensor_v3
  bool conj = false;
  bool neg = false;
};

Value storage_id(Builder& builder, const MadeTensor& tensor);
Value make_tensor(Builder& builder, const MadeTensor& tensor);

struct MadeRecord {
  std::string key;
  std::string bytes;
};

struct MadeFile {
  std::vector<MadeRecord> storages = {};
  std::string byteorder = "little";
  bool deflated = false;
};

// A zip as torch.save lays it out.
std::string torch_file(const Value& root, const MadeFile& file);
// The stream that torch wrote before 1.6. `counts`: elements of each storage.
std::string legacy_file(const Value& root, const MadeFile& file,
                        const std::vector<std::int64_t>& counts);
// The tar from before 0.1.10 with one float tensor, which `root` refers to by
// persistent(integer 7).
std::string tar_file(const Value& root);
std::string tar_member(std::string_view name, std::string_view contents);

// The bytes of numbers, as they lie in memory.
template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()),
          numbers.size() * sizeof(T)};
}

}  // namespace postflight
