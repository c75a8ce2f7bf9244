// Reads pickles and writes them again, for tests/oracle/writer_test.py:
//
//   pickle_rewrite [--protocol 2|4] [--dialect python|recorder]
//                  [--into FOLDER] FILE...
//
// Without --into the pickles go to stdout. A file that cannot be read or
// rewritten is named on stderr with the reason, and the rest are processed.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "pickle/machine.h"
#include "pickle/writing/writer.h"

namespace postflight {
namespace {

struct Command {
  WriteOptions options;
  std::filesystem::path folder;
  std::vector<std::filesystem::path> files;
};

Command parse(const std::vector<std::string>& arguments) {
  Command command;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::string next = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (word == "--protocol")
      command.options.protocol = std::atoi(next.c_str());
    else if (word == "--dialect")
      command.options.dialect =
          next == "recorder" ? Dialect::kRecorder : Dialect::kPython;
    else if (word == "--into")
      command.folder = next;
    else {
      command.files.emplace_back(word);
      continue;
    }
    ++i;
  }
  return command;
}

Result<std::string> rewrite(const std::filesystem::path& file,
                            const WriteOptions& options) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  Machine machine;
  const Pickle pickle = TRY(machine.load(as_bytes(bytes)));
  return write_pickle(pickle.root, options);
}

int run(const Command& command) {
  int status = 0;
  for (const std::filesystem::path& file : command.files) {
    const Result<std::string> written = rewrite(file, command.options);
    if (!written) {
      std::cerr << file.string() << ": " << written.error().message() << '\n';
      status = 2;
    } else if (command.folder.empty()) {
      std::cout << *written;
    } else {
      std::ofstream(command.folder / file.filename(), std::ios::binary)
          << *written;
    }
  }
  return status;
}

}  // namespace
}  // namespace postflight

int main(int count, char** arguments) {
  return postflight::run(postflight::parse({arguments + 1, arguments + count}));
}
