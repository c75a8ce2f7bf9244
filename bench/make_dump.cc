// Writes a synthetic dump to standard output: make_dump [ENTRIES].

#include <cstdio>
#include <cstdlib>
#include <string>

#include "dump.h"

int main(int argc, char** argv) {
  const std::string dump = postflight::synthetic_dump(
      {.entries = argc > 1 ? std::atoi(argv[1]) : 2000});
  return std::fwrite(dump.data(), 1, dump.size(), stdout) == dump.size() ? 0
                                                                         : 1;
}
