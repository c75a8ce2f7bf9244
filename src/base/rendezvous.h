#pragma once

#include "base/clock.h"
#include "base/error.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace postflight {

// A key-value exchange between the processes of a group. Keys are short names
// without slashes.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Makes `value` visible to the group under `key`.
  virtual Result<> publish(std::string_view key, std::string_view value) = 0;
  // Waits up to `limit` for `key`; checks at least once.
  virtual Result<std::string> await(std::string_view key,
                                    Clock::Duration limit) = 0;
  // Removes a key, if present.
  virtual void withdraw(std::string_view key) = 0;
};

// Uses a folder that the whole group shares: a key is a file that appears
// atomically. Each launch of a job needs its own folder, as a file left by a
// killed launch would be taken for an answer.
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
