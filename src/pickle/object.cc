#include "pickle/object.h"

namespace postflight {

static_assert(sizeof(Object) == 40);

std::string_view making_name(Making making) {
  switch (making) {
    case Making::kReduce:
      return "reduce";
    case Making::kNew:
      return "new";
    case Making::kNewEx:
      return "new_ex";
    case Making::kInstance:
      return "instance";
    case Making::kTouched:
      return "touched";
  }
  return "";
}

}  // namespace postflight
