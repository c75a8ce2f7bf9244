#include "profile/python_child.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace postflight {

std::vector<std::string> test_pythons() {
  std::vector<std::string> pythons = {"/usr/bin/python3"};
  const char* const home = std::getenv("HOME");
  std::error_code error;
  std::filesystem::directory_iterator versions(
      std::filesystem::path(home == nullptr ? "/" : home) / ".pyenv/versions",
      error);
  for (; !error && versions != std::filesystem::directory_iterator();
       versions.increment(error)) {
    const std::string name = versions->path().filename();
    for (const char* const known :
         {"3.9.", "3.10.", "3.11.", "3.12.", "3.13.", "3.14."})
      if (name.starts_with(known))
        pythons.push_back(versions->path() / "bin/python3");
  }
  std::sort(pythons.begin() + 1, pythons.end());
  return pythons;
}

std::string python_test_name(
    const testing::TestParamInfo<std::string>& tested) {
  std::string name = tested.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

PythonChild::PythonChild(const std::string& python, std::string_view script)
    : folder_(*TemporaryFolder::create()) {
  std::ofstream(script_path()) << script;
  std::array<int, 2> to;
  std::array<int, 2> from;
  EXPECT_EQ(::pipe2(to.data(), O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(from.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  ::posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  std::string program = python;
  std::string path = script_path();
  std::string unbuffered = "-u";
  std::array<char*, 4> arguments = {program.data(), unbuffered.data(),
                                    path.data(), nullptr};
  EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr,
                          arguments.data(), environ),
            0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  to_ = Descriptor(to[1]);
  from_ = Descriptor(from[0]);
}

PythonChild::~PythonChild() {
  if (pid_ <= 0)
    return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string PythonChild::line() {
  std::string text;
  char c = 0;
  while (::read(from_.number(), &c, 1) == 1 && c != '\n')
    text += c;
  return text;
}

void PythonChild::tell(std::string_view text) {
  EXPECT_EQ(::write(to_.number(), text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
}

bool PythonChild::has_ended() const {
  siginfo_t info = {};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info,
                  WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

int PythonChild::wait() {
  { const Descriptor closed = std::move(to_); }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

std::string PythonChild::script_path() const {
  return folder_.path() / "program.py";
}

}  // namespace postflight
