#include <string>

#include "base/file.h"
#include "checkpoint/model/descriptions.h"
#include "checkpoint/torch/pickle_file.h"
#include "library/boundary.h"
#include "library/context.h"
#include "report/pickle/report.h"

using namespace postflight;

namespace postflight {
namespace {

Result<> inspect_bytes(Bytes bytes, const std::string& name,
                       const Context& context, int* safe,
                       postflight_text** json) {
  const PickleFile file = TRY(PickleFile::read(bytes, context.limits).in(name));
  std::string answer = written(
      [&](Output& out) { write_pickle_report_json(name, file, {}, out); });
  if (safe != nullptr)
    *safe = file.verdict().is_safe() ? 1 : 0;
  if (json != nullptr)
    hand_out(std::move(answer), json);
  return {};
}

}  // namespace
}  // namespace postflight

postflight_status postflight_pickle_inspect(postflight_context* context,
                                            const char* path, int* safe,
                                            postflight_text** json,
                                            postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const auto shared = shared_context(context);
    return interruptible(*shared, [&]() -> Result<> {
      const MappedFile file =
          TRY(MappedFile::open(path, shared->context.limits));
      TRY(copy_descriptions(file, shared->context.limits));
      return inspect_bytes(file.bytes(), path, shared->context, safe, json);
    });
  });
}

postflight_status postflight_pickle_inspect_bytes(postflight_context* context,
                                                  const void* data, size_t size,
                                                  const char* name, int* safe,
                                                  postflight_text** json,
                                                  postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const auto shared = shared_context(context);
    return interruptible(*shared, [&] {
      return inspect_bytes({static_cast<const std::byte*>(data), size}, name,
                           shared->context, safe, json);
    });
  });
}
