#pragma once

#include <cstddef>
#include <map>
#include <string_view>

#include "base/output.h"
#include "base/terminal.h"
#include "checkpoint/verification/scan.h"
#include "json/writer.h"

namespace postflight {

// A line for each file that loading could run something from, as it is found,
// and a summary; or schema postflight.ckpt.scan/1; or SARIF 2.1.0.
class ScanReport {
 public:
  enum class Form : std::uint8_t { kText, kJson, kSarif };
  ScanReport(Form form, const Terminal& terminal, Output& out);

  void add(const ScannedFile& file);
  void finish();

  bool found() const { return found_; }    // something that is not SAFE
  bool failed() const { return failed_; }  // to read a file

 private:
  void add_text(const ScannedFile& file);
  void add_json(const ScannedFile& file);
  void add_sarif(const ScannedFile& file);

  Form form_;
  const Terminal& terminal_;
  Output& out_;
  JsonWriter json_;
  std::map<Safety, std::size_t> counts_;
  std::size_t others_ = 0;
  bool found_ = false;
  bool failed_ = false;
};

}  // namespace postflight
