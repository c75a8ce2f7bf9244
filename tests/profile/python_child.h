#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/types.h>

#include "base/descriptor.h"
#include "base/temporary_folder.h"

namespace postflight {

// The interpreters that tests run: Debian's, and others where there are any
// ($HOME/.pyenv/versions/3.9 to 3.14).
std::vector<std::string> test_pythons();

// What a test with one of them is called: names of tests are letters and
// digits.
std::string python_test_name(const testing::TestParamInfo<std::string>& tested);

// A Python program that runs beside the test, and ends with it. What it reads
// from stdin is what the test tells it, so that both can wait for each other.
class PythonChild {
 public:
  PythonChild(const std::string& python, std::string_view script);
  PythonChild(const PythonChild&) = delete;
  PythonChild& operator=(const PythonChild&) = delete;
  ~PythonChild();

  pid_t pid() const { return pid_; }
  // The next line it prints, without the newline; waits for it.
  std::string line();
  void tell(std::string_view text);
  bool has_ended() const;
  // Closes its stdin and waits for its end.
  int wait();
  std::string script_path() const;

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  Descriptor to_;
  Descriptor from_;
};

}  // namespace postflight
