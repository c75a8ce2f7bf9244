#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/log/profile.h"

namespace postflight {

struct ImportTime {
  std::string module;
  std::uint64_t ns = 0;
};

// What torch.compile took for one function.
struct CompileTime {
  std::string function;  // "f (model.py:40)"; empty: not known
  std::uint64_t ns = 0;
  // Of that, where the stack says so. Compilers are processes of their own.
  std::uint64_t dynamo_ns = 0;
  std::uint64_t aot_ns = 0;
  std::uint64_t inductor_ns = 0;
  std::uint64_t compilers_ns = 0;
  std::size_t compilers = 0;   // started
  std::size_t recompiles = 0;  // as far as they were sampled
};

// A profile as the author of a program sees it. What the standard library and
// torch do on behalf of a function is time of that function. An import is one
// frame, whatever runs in it, and so is the compilation of a function by torch.
// Threads that only wait are left out.
struct FoldedProfile {
  Profile profile = {};
  std::vector<ImportTime> imports = {};  // by the outermost module, most first
  std::vector<CompileTime> compilations = {};  // most first
  std::size_t idle_threads = 0;                // left out
};

// What the frame of an import is called.
constexpr const char* kImportFrame = "import";
// That of a compilation, in front of what is compiled.
constexpr const char* kCompileFrame = "torch.compile";

// For each thread, whether it is the first of the program that was profiled;
// there is one for each rank.
std::vector<bool> main_threads(const Profile& profile);

FoldedProfile fold(const Profile& profile);

}  // namespace postflight
