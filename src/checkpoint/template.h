#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "checkpoint/model/checkpoint.h"

namespace postflight {

// What is wanted of a checkpoint, as a tree.
struct Template {
  enum class Kind : std::uint8_t {
    kEverything,  // null: all that is below
    kDict,
    kList,
    kTensor,  // one of this dtype and shape
    kValue,   // any other value of this type
  };
  Kind kind = Kind::kEverything;
  std::vector<std::pair<std::string, Template>> items = {};  // of a dict
  std::vector<Template> list = {};
  std::string dtype = {};
  std::vector<std::int64_t> shape = {};
  std::string type = {};           // of a value: "int"
  std::span<std::byte> into = {};  // where a tensor goes, if anywhere
};

// Reads the JSON of docs/checkpoints.md: objects and arrays nest, null takes
// everything, {"$tensor": {"dtype", "shape"}} and {"$value": ...} must fit.
Result<Template> parse_template(Bytes json);

// The nodes of a checkpoint that a template asks for.
struct Selection {
  struct Chosen {
    std::uint32_t node = 0;
    const Template* wanted = nullptr;  // null below an "everything"
  };
  std::vector<Chosen> tensors;
  std::vector<std::uint32_t> values;
  // As torch's reader words them: a.b, a[0]. A subtree is named by its top.
  std::vector<std::string> missing;

  // Of what the template leaves out, which may be nearly all of a large file,
  // the first so many in the same words.
  std::vector<std::string> unexpected(const Checkpoint& checkpoint,
                                      std::size_t most) const;
  std::size_t unexpected_count() const;

  // What a dict has beside the keys that are wanted; or, if there are no nodes,
  // the path itself.
  struct LeftOut {
    std::string path;
    std::vector<std::uint32_t> nodes = {};
  };
  std::vector<LeftOut> left_out;
};

// Fails, in the words of torch's reader, where the checkpoint has something of
// another type, dtype or shape than wanted. A None in the checkpoint fits
// everything, numbers fit numbers, any kind of dict fits a dict.
Result<Selection> select(const Checkpoint& checkpoint, std::uint32_t root,
                         const Template& wanted);

}  // namespace postflight
