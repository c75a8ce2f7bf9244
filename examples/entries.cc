// How many entries of a job's dumps are in which state.
//
//     c++ -std=c++17 entries.cc $(pkg-config --cflags --libs postflight)
//     ./a.out dumps/

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include <postflight/job.h>

int main(int argc, char** argv) {
  try {
    postflight::Evidence evidence;
    evidence.dumps.assign(argv + 1, argv + argc);
    const auto job = postflight::Job::read(evidence);
    const postflight::Entries entries = job.entries();
    const postflight_column state = entries["state"];
    std::map<std::string, std::size_t> counts;
    for (std::size_t i = 0; i < state.count; ++i) {
      const auto place = static_cast<const std::uint32_t*>(state.data)[i];
      const postflight_string& name = state.strings[place];
      ++counts[std::string(name.data, name.size)];
    }
    for (const auto& [name, count] : counts)
      std::printf("%s %zu\n", name.c_str(), count);
    return 0;
  } catch (const postflight::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
