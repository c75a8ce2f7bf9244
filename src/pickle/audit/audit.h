#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pickle/audit/safety.h"
#include "pickle/audit/trust.h"
#include "pickle/machine.h"

namespace postflight {

// One name that Python would import, and how often the pickle refers to it.
struct GlobalUse {
  std::string module;
  std::string name;
  Trust trust = Trust::kUnknown;
  std::string reason;
  std::uint64_t uses = 0;
  // Whether it is used otherwise than to call it: whoever gets hold of it may
  // call it with anything.
  bool as_value = false;
};

// One thing that Python would call, and how often. `callable` is a dotted name,
// or says what kind of value is called if it is no name.
struct CallUse {
  std::string callable;
  Making making = Making::kReduce;
  Trust trust = Trust::kUnknown;
  std::string reason;
  std::uint64_t uses = 0;
  Value first;  // the object of the first such call
};

// What loading a pickle in Python would import and call, each in the order of
// its first appearance.
struct Audit {
  std::vector<GlobalUse> globals;
  std::vector<CallUse> calls;
  // What else keeps the pickle from being safe, such as opcodes that readers
  // take differently. `where` is a byte of the pickle.
  std::vector<Reason> doubts;

  // The worst of all globals and calls.
  Trust worst() const;
  // Whether more than plain data and torch's rebuilding functions is in it.
  bool runs_code() const { return worst() > Trust::kTorch; }
  // All of it as a verdict; calls come before imports.
  SafetyVerdict verdict() const;
};

struct AuditOptions {
  // Whether the pickle is in a TorchScript archive, whose types are its own.
  bool is_script = false;
};

// Audits what `machine` met in its latest load(), even if that failed: Python
// would have got as far. Trust is given to a call with its arguments in its
// place, and to a name only if no call of it can do harm: a name that is handed
// on as a value may be called with anything.
Audit audit(const Machine& machine, const AuditOptions& options = {});

}  // namespace postflight
