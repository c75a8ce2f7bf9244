#pragma once

#include <string_view>

#include "base/output.h"
#include "base/terminal.h"
#include "checkpoint/torch/pickle_file.h"

namespace postflight {

struct PickleReportOptions {
  bool all = false;  // long lists and strings in full
  bool tree = true;  // the values, not only what would run
};

// What a file's pickles hold and what loading them would do: the verdict on
// the first line, then for each pickle its imports, its calls and its value.
void write_pickle_report(std::string_view name, const PickleFile& file,
                         const PickleReportOptions& options,
                         const Terminal& terminal, Output& out);

// The same as one line of JSON, schema postflight.pickle/1.
void write_pickle_report_json(std::string_view name, const PickleFile& file,
                              const PickleReportOptions& options, Output& out);

// The opcodes of all pickles, a line each, as pickletools shows them; as one
// line of JSON, schema postflight.pickle.disassembly/1.
void write_disassembly(std::string_view name, const PickleFile& file,
                       const PickleReportOptions& options,
                       const Terminal& terminal, Output& out);
void write_disassembly_json(std::string_view name, const PickleFile& file,
                            Output& out);

// What each pickle does as Python that is never run; as one line of JSON,
// schema postflight.pickle.decompilation/1.
void write_decompilation(std::string_view name, const PickleFile& file,
                         const PickleReportOptions& options,
                         const Terminal& terminal, Output& out);
void write_decompilation_json(std::string_view name, const PickleFile& file,
                              const PickleReportOptions& options, Output& out);

// What each of Python's unpicklers would see in each pickle; as one line of
// JSON, schema postflight.pickle.loaders/1.
void write_loaders(std::string_view name, const PickleFile& file,
                   const Terminal& terminal, Output& out);
void write_loaders_json(std::string_view name, const PickleFile& file,
                        Output& out);

}  // namespace postflight
