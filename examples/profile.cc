// Profiles a part of this program, for `postflight profile report`.
//
//     c++ -std=c++17 profile.cc $(pkg-config --cflags --libs postflight)
//     ./a.out busy.pflog && postflight profile report busy.pflog

#include <chrono>
#include <cstdio>

#include <postflight/profile.h>

namespace {

void be_busy(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  volatile unsigned sum = 0;
  while (std::chrono::steady_clock::now() < end)
    for (unsigned i = 0; i < 10000; ++i)
      sum = sum + i;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: profile FILE\n");
    return 2;
  }
  try {
    postflight::Session session(argv[1]);
    {
      const postflight::Phase outer("epoch");
      const postflight::Phase inner("load");
      be_busy(std::chrono::milliseconds(700));
    }
    session.finish();
    std::printf("%s\n", session.file().c_str());
    return 0;
  } catch (const postflight::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
