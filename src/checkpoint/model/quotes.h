#pragma once

#include "checkpoint/model/tree.h"

namespace postflight {

// Marks the keys to quote because two paths of the tree would otherwise be
// printed alike: {"a.b": 1, "a": {"b": 2}} has the paths "a.b" and a."b".
void set_quotes(Tree& tree);

}  // namespace postflight
