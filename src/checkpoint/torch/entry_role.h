#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/zip/directory.h"
#include "checkpoint/zip/local_header.h"

namespace postflight {

// What the names in an archive say of its entries. Names only add to what is
// looked into; content decides.

bool has_pickle_name(std::string_view name);

// A name, shortened for messages; archives allow 64 KB.
std::string shown_entry(std::string_view name);

// Whether an archive is one of torch's, so that some entries are raw storages.
bool has_storages(const ZipDirectory& directory);
// Whether an entry of such an archive holds the raw bytes of tensors, which
// nothing unpickles: archive/data/0, p/.data/0.storage, archive/constants/0.
bool is_storage_name(std::string_view name);

// The Python modules that an archive has in it, with their packages: a
// torch.package resolves names to them first. The code of TorchScript is not
// Python.
struct PythonModules {
  std::set<std::string, std::less<>> names;
  std::uint64_t sources = 0;
  std::string first;  // the entry

  std::string doubt() const;
};
PythonModules python_modules(const ZipDirectory& directory);

// Whether who unpacks a file of that name writes outside of his folder.
bool leaves_folder(std::string_view path);

// Why readers could take an entry differently, by its name and headers.
struct EntryDoubt {
  std::string_view kind;
  std::string message;
};
std::vector<EntryDoubt> entry_doubts(const ZipEntry& entry,
                                     const LocalHeader& local);

// "bzip2", "method 97".
std::string method_name(std::uint16_t method);

}  // namespace postflight
