#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/rendezvous.h"
#include "base/temporary_folder.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>

#include <sys/types.h>

namespace postflight {

struct SharedFolderOptions {
  std::size_t rank = 0;
  std::size_t world_size = 1;
  std::filesystem::path parent = {};  // seen by all ranks; else $TMPDIR
  // How long a rank waits for rank 0 to create the folder, and rank 0 for all
  // other ranks to finish.
  Clock::Duration time_limit = std::chrono::minutes(5);
};

// One temporary folder for a group of processes. Rank 0 creates it and
// publishes its name. Every rank reports when it is done, at the latest in its
// destructor; rank 0 then waits for all of them and removes the folder, once.
// A rank that died is waited for up to the time limit.
class SharedTemporaryFolder {
 public:
  // Without a group: an ordinary temporary folder.
  static Result<SharedTemporaryFolder> create(
      std::filesystem::path parent = {});
  // `rendezvous` and `clock` have to outlive the folder.
  static Result<SharedTemporaryFolder> create(
      Rendezvous& rendezvous, const Clock& clock,
      const SharedFolderOptions& options);

  SharedTemporaryFolder(SharedTemporaryFolder&& other) noexcept;
  SharedTemporaryFolder& operator=(SharedTemporaryFolder&&) = delete;
  ~SharedTemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  // Reports that this rank is done; on rank 0, waits for the others and removes
  // the folder, even if it fails because one of them did not answer.
  Result<> finish();

 private:
  SharedTemporaryFolder(Rendezvous* rendezvous, const Clock* clock,
                        SharedFolderOptions options);
  Result<> make();
  Result<> join();
  Result<> wait_for_others();

  Rendezvous* rendezvous_;
  const Clock* clock_;
  SharedFolderOptions options_;
  std::optional<TemporaryFolder> owned_;  // on rank 0
  std::filesystem::path path_;
  pid_t owner_;
  bool finished_ = false;
};

}  // namespace postflight
