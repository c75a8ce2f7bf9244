#pragma once

#include "base/clock.h"
#include "base/error.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace postflight {

// How the processes of a group tell each other things. Keys are short names
// without slashes.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Makes `value` known to the group under `key`.
  virtual Result<> publish(std::string_view key, std::string_view value) = 0;
  // Waits up to `limit` for `key`; looks at least once.
  virtual Result<std::string> await(std::string_view key,
                                    Clock::Duration limit) = 0;
  // Takes a key back, if it is there.
  virtual void withdraw(std::string_view key) = 0;
};

// Over a folder that the whole group can see: a key is a file that appears
// whole. Each launch of a job needs a folder of its own, as a file left by one
// that was killed would be taken for an answer.
class FolderRendezvous final : public Rendezvous {
 public:
  // `clock` has to outlive it.
  FolderRendezvous(std::filesystem::path folder, Clock& clock);

  Result<> publish(std::string_view key, std::string_view value) override;
  Result<std::string> await(std::string_view key,
                            Clock::Duration limit) override;
  void withdraw(std::string_view key) override;

 private:
  std::filesystem::path folder_;
  Clock& clock_;
};

}  // namespace postflight
