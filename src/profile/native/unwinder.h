#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "profile/native/debug_info.h"
#include "profile/native/elf_image.h"
#include "profile/native/unwind_table.h"
#include "profile/process/map.h"

namespace postflight {

struct NativeFrame {
  std::string function;    // or "library+0x123"
  std::string file;        // or library
  std::uint32_t line = 0;  // 0: not known
};

// The code of a program or library.
class NativeModule {
 public:
  static Result<std::unique_ptr<NativeModule>> open(const std::string& path,
                                                    std::string name);

  const std::string& name() const { return name_; }
  const UnwindTable& table() const { return table_; }
  // The demangled name of the function at an address (before relocation), from
  // the debug file if one is installed. Empty if not known.
  std::string function(std::uint64_t address) const;
  // Those inlined there, the innermost first, then the function itself.
  const std::vector<NativeFrame>& frames(std::uint64_t address);
  const ElfImage& image() const { return image_; }

  NativeModule(MappedFile file, ElfImage image, std::string name);

 private:
  void add_debug_file();
  // See DebugInfo; the names are demangled. Empty without debug information.
  std::vector<SourcePlace> places(std::uint64_t address);

  MappedFile file_;
  std::optional<MappedFile> debug_file_;
  ElfImage image_;
  UnwindTable table_;
  std::vector<ElfFunction> functions_;
  std::unique_ptr<DebugInfo> debug_info_;
  std::map<std::uint64_t, std::vector<NativeFrame>> frames_;
  std::string name_;
};

// The programs and libraries that processes run, each opened once.
class NativeModules {
 public:
  // The file behind a mapping of a process; null if it cannot be read.
  NativeModule* find(pid_t pid, const Mapping& mapping);

 private:
  // By device, inode and time of change: processes may have different files of
  // the same name.
  std::map<std::array<std::uint64_t, 3>, std::unique_ptr<NativeModule>>
      modules_;
};

// The values of registers by DWARF's numbers; empty: unknown.
using RegisterValues =
    std::array<std::optional<std::uint64_t>, kUnwindRegisters>;

struct NativeStack {
  std::vector<std::uint64_t> frames;  // return addresses, the innermost first
  bool cut = false;                   // the copy ends before the stack does
};

// Unwinds native stacks of a process from copies of their memory.
class NativeUnwinder {
 public:
  // `modules` must outlive it.
  NativeUnwinder(pid_t pid, NativeModules& modules)
      : pid_(pid), modules_(modules) {}

  // Return addresses, the innermost first, as far as the copy and the tables
  // reach. `registers` are rip, rsp, rbp, rbx, r12 to r15; the copy starts at
  // rsp.
  NativeStack unwind(std::span<const std::uint64_t> registers, Bytes stack);
  // The same, where only some registers are known: at least the return address
  // (the current instruction) and rsp.
  NativeStack unwind(RegisterValues values, Bytes stack);
  // The functions at an address: those inlined there, the innermost first, then
  // the function itself. For callers subtract 1 from the address of unwind(),
  // which is behind the call.
  const std::vector<NativeFrame>& frames(std::uint64_t address);

 private:
  struct Placed {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t bias;
    NativeModule* module;
  };

  const Placed* find(std::uint64_t address);
  void refresh();

  pid_t pid_;
  NativeModules& modules_;
  std::vector<Placed> placed_;
  std::map<std::uint64_t, std::vector<NativeFrame>> unknown_;
  std::map<std::uint64_t, std::optional<UnwindRow>> rows_;
  int refreshes_ = 0;
};

}  // namespace postflight
