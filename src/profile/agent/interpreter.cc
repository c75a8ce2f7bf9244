#include "profile/agent/interpreter.h"

#include <cstddef>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "profile/agent/fault_guard.h"

namespace postflight {
namespace {

struct CodeRange {
  std::uint64_t inside;
  std::uint64_t start;
  std::uint64_t end;
};

// Finds the segment that has the address.
int find_code(dl_phdr_info* library, std::size_t, void* to) {
  CodeRange& range = *static_cast<CodeRange*>(to);
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    const std::uint64_t start = library->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 ||
        range.inside < start || range.inside >= start + segment.p_memsz)
      continue;
    range.start = start;
    range.end = start + segment.p_memsz;
    return 1;
  }
  return 0;
}

template <class Function>
void look_up_symbol(Function& function, const char* name) {
  if (function == nullptr)
    *reinterpret_cast<void**>(&function) = ::dlsym(RTLD_DEFAULT, name);
}

}  // namespace

bool Interpreter::find() {
  look_up_symbol(first_state_, "PyGILState_GetThisThreadState");
  if (first_state_ == nullptr)
    return false;
  look_up_symbol(current_state_, "PyThreadState_GetUnchecked");
  look_up_symbol(current_state_, "_PyThreadState_UncheckedGet");
  look_up_symbol(is_ending_, "Py_IsFinalizing");
  look_up_symbol(is_ending_, "_Py_IsFinalizing");
  CodeRange range = {reinterpret_cast<std::uint64_t>(first_state_), 0, 0};
  ::dl_iterate_phdr(find_code, &range);
  start_ = range.start;
  end_ = range.end;
  return true;
}

void* Interpreter::thread_state(const RingLayout& layout, bool guarded) const {
  if (first_state_ == nullptr)
    return nullptr;
  if (guarded && current_state_ != nullptr) {
    void* const state = current_state_();
    std::uint64_t thread = 0;
    if (state != nullptr &&
        guarded_word(reinterpret_cast<std::uint64_t>(state) + layout.thread_id,
                     thread) &&
        thread == static_cast<std::uint64_t>(::pthread_self()))
      return state;
  }
  return first_state_();
}

std::uint32_t Interpreter::flags(const void* state, const RingLayout& layout,
                                 bool guarded) const {
  const std::uint32_t ending =
      is_ending_ != nullptr && is_ending_() != 0 ? kRecordEnding : 0;
  if (state == nullptr || current_state_ == nullptr)
    return ending;
  if (current_state_() != state)
    return ending | kRecordNoGil;
  std::uint64_t interpreter = 0;
  std::uint64_t collecting = 0;
  const bool garbage =
      guarded && layout.has_collecting != 0 &&
      guarded_word(
          reinterpret_cast<std::uint64_t>(state) + layout.thread_interpreter,
          interpreter) &&
      guarded_word(interpreter + layout.collecting, collecting) &&
      static_cast<std::uint32_t>(collecting) == 1;
  return ending | kRecordGil | (garbage ? kRecordGarbage : 0);
}

std::uint32_t Interpreter::place_flags(std::uint64_t instruction) const {
  if (end_ == 0)
    return 0;
  return start_ <= instruction && instruction < end_ ? kRecordInterpreter
                                                     : kRecordLibrary;
}

}  // namespace postflight
