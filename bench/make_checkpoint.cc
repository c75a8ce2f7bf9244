// make_checkpoint FILE TENSORS ELEMENTS: a file as torch.save writes it.

#include <cstdlib>

#include "torch_sample.h"

int main(int argc, char** argv) {
  if (argc != 4)
    return 2;
  postflight::write_torch_sample(argv[1], std::atoi(argv[2]),
                                 std::atoll(argv[3]));
  return 0;
}
