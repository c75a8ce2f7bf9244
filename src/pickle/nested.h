#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pickle/object.h"

namespace postflight {

// The bytes that a call of torch.storage._load_from_bytes loads as a pickle of
// its own: pickle.dumps writes tensors this way.
struct NestedPickle {
  std::string_view text;  // in the outer pickle
  bool is_encoded =
      false;  // as UTF-8 that stands for Latin-1: before protocol 3

  // nullopt if the text has characters that no byte stands for.
  std::optional<std::string> bytes() const;
};

bool is_nested_load(const Object& object);
// nullopt if only Python could tell.
std::optional<NestedPickle> nested_pickle(const Object& load);

}  // namespace postflight
