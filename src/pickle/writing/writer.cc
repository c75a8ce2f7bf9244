#include "pickle/writing/writer.h"

#include "pickle/writing/python_writer.h"
#include "pickle/writing/recorder_writer.h"

namespace postflight {

Result<std::string> write_pickle(const Value& root,
                                 const WriteOptions& options) {
  if (options.protocol != 2 && options.protocol != 4)
    return fail(ErrorKind::kUsage,
                "cannot write pickle protocol {}; use 2 or 4",
                options.protocol);
  if (options.dialect == Dialect::kPython)
    return write_python_pickle(root, options.protocol, options.max_bytes);
  if (options.protocol != 2)
    return fail(ErrorKind::kUsage,
                "flight recorders write pickle protocol 2, not {}",
                options.protocol);
  return write_recorder_pickle(root, options.max_bytes);
}

}  // namespace postflight
