#pragma once

#include "base/error.h"
#include "base/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace postflight {

inline void write_file(const std::filesystem::path& path,
                       std::string_view contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The value of a result that the test relies on.
template <class T>
T must(Result<T> result) {
  if (!result)
    throw std::runtime_error(std::string(result.error().message()));
  return *std::move(result);
}

inline TemporaryFolder scratch_folder() {
  return must(TemporaryFolder::create());
}

template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "no error" : std::string(result.error().message());
}

}  // namespace postflight
