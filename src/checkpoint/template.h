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

// Which parts of a checkpoint are wanted, as a tree.
struct Template {
  enum class Kind : std::uint8_t {
    kEverything,  // null: everything below
    kDict,
    kList,
    kTensor,  // of this dtype and shape
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

// Reads a template as docs/checkpoints.md describes it: objects and arrays
// nest, null is everything, {"$tensor": {"dtype", "shape"}} and {"$value": ...}
// must fit.
Result<Template> parse_template(Bytes json);

// The nodes of a checkpoint that a template asks for.
struct Selection {
  struct Chosen {
    std::uint32_t node = 0;
    const Template* wanted = nullptr;  // null below an "everything"
  };
  std::vector<Chosen> tensors;
  std::vector<std::uint32_t> values;
  // Paths as torch's reader prints them: a.b, a[0]. A missing subtree is named
  // by its root.
  std::vector<std::string> missing;

  // The first `most` paths that the template leaves out; that may be nearly all
  // of a large file.
  std::vector<std::string> unexpected(const Checkpoint& checkpoint,
                                      std::size_t most) const;
  std::size_t unexpected_count() const;

  // The other nodes of the dict at `path`; without nodes, `path` itself.
  struct LeftOut {
    std::string path;
    std::vector<std::uint32_t> nodes = {};
  };
  std::vector<LeftOut> left_out;
};

// Fails, with the message of torch's reader, if a type, dtype or shape differs.
// A None in the checkpoint fits everything, numbers fit numbers, any kind of
// dict fits a dict.
Result<Selection> select(const Checkpoint& checkpoint, std::uint32_t root,
                         const Template& wanted);

}  // namespace postflight
