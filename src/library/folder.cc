#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/rendezvous.h"
#include "base/shared_temporary_folder.h"
#include "library/boundary.h"
#include "library/context.h"

using namespace postflight;

namespace postflight {
namespace {

// Exchanges keys and values by the caller's functions, such as those of
// torch.distributed or MPI.
class CallerRendezvous final : public Rendezvous {
 public:
  explicit CallerRendezvous(const postflight_folder_options& options)
      : options_(options) {}

  Result<> publish(std::string_view key, std::string_view value) override {
    if (options_.publish(options_.user, std::string(key).c_str(),
                         std::string(value).c_str()) != 0)
      return fail(ErrorKind::kIo, "{} could not be made known to the group",
                  key);
    return {};
  }

  Result<std::string> await(std::string_view key,
                            Clock::Duration limit) override {
    std::array<char, 4096> value{};
    if (options_.await(options_.user, std::string(key).c_str(),
                       std::chrono::duration<double>(limit).count(),
                       value.data(), value.size()) != 0)
      return fail(ErrorKind::kIo, "waited for {} in vain", key);
    value.back() = '\0';
    return std::string(value.data());
  }

  // Keys stay, as a group exchanges each of them once.
  void withdraw(std::string_view) override {}

 private:
  const postflight_folder_options options_;
};

}  // namespace
}  // namespace postflight

struct postflight_folder {
  std::shared_ptr<SharedContext> context = {};
  SteadyClock clock = {};
  std::unique_ptr<Rendezvous> rendezvous = {};
  std::optional<SharedTemporaryFolder> folder = {};
  std::string path = {};
};

namespace postflight {
namespace {

Result<> check(const postflight_folder_options& options) {
  if (options.size != sizeof(options))
    return fail(ErrorKind::kUsage,
                "postflight_folder_options has {} bytes instead of {}; begin "
                "with POSTFLIGHT_SIZED",
                options.size, sizeof(options));
  if (options.world_size <= 1)
    return {};
  if (options.rank >= options.world_size)
    return fail(ErrorKind::kUsage, "there is no rank {} in a group of {}",
                options.rank, options.world_size);
  if (options.meeting_folder == nullptr &&
      (options.publish == nullptr || options.await == nullptr))
    return fail(ErrorKind::kUsage,
                "a group needs a folder to meet in, or functions to exchange "
                "keys and values");
  return {};
}

Result<> make(const postflight_folder_options& options,
              postflight_folder& made) {
  const std::string parent = text_or_empty(options.parent);
  if (options.world_size <= 1) {
    made.folder.emplace(TRY(SharedTemporaryFolder::create(parent)));
    return {};
  }
  if (options.meeting_folder != nullptr)
    made.rendezvous =
        std::make_unique<FolderRendezvous>(options.meeting_folder, made.clock);
  else
    made.rendezvous = std::make_unique<CallerRendezvous>(options);
  SharedFolderOptions shared{
      .rank = options.rank, .world_size = options.world_size, .parent = parent};
  if (options.time_limit > 0)
    shared.time_limit = std::chrono::duration_cast<Clock::Duration>(
        std::chrono::duration<double>(options.time_limit));
  made.folder.emplace(
      TRY(SharedTemporaryFolder::create(*made.rendezvous, made.clock, shared)));
  return {};
}

}  // namespace
}  // namespace postflight

postflight_status postflight_folder_new(
    const postflight_folder_options* options, postflight_folder** folder,
    postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    TRY(check(*options));
    auto made = std::make_unique<postflight_folder>();
    made->context = shared_context(options->context);
    return interruptible(*made->context, [&]() -> Result<> {
      TRY(make(*options, *made));
      made->path = made->folder->path().native();
      hand_out(std::move(made), folder);
      return {};
    });
  });
}

const char* postflight_folder_path(const postflight_folder* folder) {
  return folder->path.c_str();
}

postflight_status postflight_folder_finish(postflight_folder* folder,
                                           postflight_error** error) {
  return guarded(error, [&] {
    return interruptible(*folder->context,
                         [&] { return folder->folder->finish(); });
  });
}

void postflight_folder_free(postflight_folder* folder) {
  delete folder;
}
