#include "base/descriptor.h"

#include <unistd.h>

namespace postflight {

Descriptor::~Descriptor() {
  if (is_open())
    ::close(number_);
}

}  // namespace postflight
