#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace postflight::synthetic {

struct Tensor {
  std::vector<std::int64_t> shape;
  std::string_view dtype;

  bool operator==(const Tensor&) const = default;
};

struct SourceLine {
  std::string_view function;
  std::string_view file;
  int line = 0;
};

// A line of the training program that calls a collective: what it calls, on
// which tensors, and from where.
struct CallSite {
  std::string_view name;  // "all_reduce", without the backend
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<SourceLine> stack;  // innermost first
  bool backward = false;          // called by autograd's thread

  // Whether NCCL on one rank can tell a call from another's.
  bool agrees_with(const CallSite& other) const {
    return name == other.name && inputs == other.inputs &&
           outputs == other.outputs;
  }
};

using CallSites = std::vector<CallSite>;
using SiteId = std::uint32_t;

// Where in the step a call is made.
enum class Phase : std::uint8_t { kSetup, kForward, kBackward, kOptimizer };

// The stack of a call in that phase; `function` is the one in which the model's
// code calls the library, `line` its line.
std::vector<SourceLine> stack_of(Phase phase, std::string_view name,
                                 std::string_view function, int line);

}  // namespace postflight::synthetic
