// Two functions that g++ 12's static runtime takes from glibc 2.35 and 2.36.
// With our own, the program runs on glibc 2.34.

#include <link.h>
#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

// As <dlfcn.h> declares it from 2.35 on, under a name of ours so that both
// headers do.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  struct link_map* link_map;
  void* eh_frame;
  unsigned long long reserved[7];
};

namespace {

struct Query {
  std::uintptr_t address;
  FoundObject* found;
};

int look(struct dl_phdr_info* object, std::size_t, void* data) {
  const auto* const query = static_cast<const Query*>(data);
  std::uintptr_t low = UINTPTR_MAX;
  std::uintptr_t high = 0;
  void* eh_frame = nullptr;
  bool holds_it = false;
  for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const std::uintptr_t start = object->dlpi_addr + header.p_vaddr;
    const std::uintptr_t end = start + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      low = start < low ? start : low;
      high = end > high ? end : high;
      if (query->address >= start && query->address < end)
        holds_it = true;
    } else if (header.p_type == PT_GNU_EH_FRAME) {
      eh_frame = reinterpret_cast<void*>(start);
    }
  }
  if (!holds_it)
    return 0;
  if (eh_frame == nullptr)
    return -1;
  *query->found = {};
  query->found->map_start = reinterpret_cast<void*>(low);
  query->found->map_end = reinterpret_cast<void*>(high);
  query->found->eh_frame = eh_frame;
  return 1;
}

}  // namespace

// Finds the unwind tables of the object that holds an address; 0 if found.
extern "C" int postflight_dl_find_object(
    void* address, FoundObject* found) __asm__("_dl_find_object");
extern "C" int postflight_dl_find_object(void* address, FoundObject* found) {
  Query query = {reinterpret_cast<std::uintptr_t>(address), found};
  return dl_iterate_phdr(look, &query) == 1 ? 0 : -1;
}

extern "C" std::uint32_t postflight_arc4random() __asm__("arc4random");
extern "C" std::uint32_t postflight_arc4random() {
  std::uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) !=
         static_cast<ssize_t>(sizeof number)) {
    if (errno != EINTR)
      std::abort();
  }
  return number;
}
