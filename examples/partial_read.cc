// Reads the tensors of a checkpoint that match a glob into memory of our own.
//
//     c++ -std=c++17 partial_read.cc $(pkg-config --cflags --libs postflight)
//     ./a.out model.pt 'model.*'

#include <cstdio>
#include <string>
#include <vector>

#include <postflight/checkpoint.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: partial_read FILE GLOB\n");
    return 2;
  }
  try {
    const auto checkpoint = postflight::Checkpoint::open(argv[1]);
    postflight::PlanOptions options;
    options.keys = {argv[2]};
    const postflight::Plan plan(checkpoint, options);

    std::vector<std::vector<char>> memory(plan.size());
    std::vector<void*> places;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      memory[i].resize(plan[i].bytes);
      places.push_back(memory[i].data());
    }
    plan.read(places);
    for (std::size_t i = 0; i < plan.size(); ++i)
      std::printf("%s  %zu bytes\n", checkpoint.path_of(plan[i].node).c_str(),
                  memory[i].size());
    return 0;
  } catch (const postflight::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
