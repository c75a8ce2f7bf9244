#include "base/shared_temporary_folder.h"

#include "base/units.h"

#include <string>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace postflight {

namespace {

// Rank 0 publishes either "+<path>" or "-<error>", so that no rank waits for a
// folder that could not be created.
constexpr std::string_view kNameKey = "temporary_folder";
constexpr char kMade = '+';
constexpr char kFailed = '-';

std::string done_key(std::size_t rank) {
  return fmt::format("temporary_folder.done.{}", rank);
}

}  // namespace

SharedTemporaryFolder::SharedTemporaryFolder(Rendezvous* rendezvous,
                                             const Clock* clock,
                                             SharedFolderOptions options)
    : rendezvous_(rendezvous),
      clock_(clock),
      options_(std::move(options)),
      owner_(::getpid()) {}

SharedTemporaryFolder::SharedTemporaryFolder(
    SharedTemporaryFolder&& other) noexcept
    : rendezvous_(other.rendezvous_),
      clock_(other.clock_),
      options_(std::move(other.options_)),
      owned_(std::move(other.owned_)),
      path_(std::move(other.path_)),
      owner_(other.owner_),
      finished_(std::exchange(other.finished_, true)) {}

SharedTemporaryFolder::~SharedTemporaryFolder() {
  static_cast<void>(finish());
}

Result<SharedTemporaryFolder> SharedTemporaryFolder::create(
    std::filesystem::path parent) {
  SharedTemporaryFolder folder(nullptr, nullptr, {.parent = std::move(parent)});
  TRY(folder.make());
  return folder;
}

Result<SharedTemporaryFolder> SharedTemporaryFolder::create(
    Rendezvous& rendezvous, const Clock& clock,
    const SharedFolderOptions& options) {
  if (options.rank >= options.world_size)
    return fail(ErrorKind::kUsage, "rank {} is outside the group of {}",
                options.rank, options.world_size);
  SharedTemporaryFolder folder(&rendezvous, &clock, options);
  // A rank that fails here reports that it is done in its destructor.
  TRY(options.rank == 0 ? folder.make() : folder.join());
  return folder;
}

Result<> SharedTemporaryFolder::make() {
  Result<TemporaryFolder> made = TemporaryFolder::create(options_.parent);
  const bool has_group = options_.world_size > 1;
  if (!made) {
    finished_ = true;  // there is nothing to wait for
    if (has_group)
      static_cast<void>(rendezvous_->publish(
          kNameKey, fmt::format("{}{}", kFailed, made.error().message())));
    return tl::unexpected<Error>(std::move(made).error());
  }
  path_ = made->path();
  owned_ = *std::move(made);
  if (!has_group)
    return {};
  Result<> published = rendezvous_->publish(
      kNameKey, fmt::format("{}{}", kMade, path_.string()));
  finished_ = !published;  // nobody knows of the folder; it goes at once
  return published;
}

Result<> SharedTemporaryFolder::join() {
  const std::string answer =
      TRY(rendezvous_->await(kNameKey, options_.time_limit));
  if (answer.empty() || answer.front() != kMade)
    return fail(ErrorKind::kIo, "rank 0 could not create the shared folder: {}",
                answer.empty() ? "it did not say why" : answer.substr(1));
  path_ = answer.substr(1);
  std::error_code ignored;
  if (!std::filesystem::is_directory(path_, ignored))
    return fail(ErrorKind::kIo,
                "rank {} cannot see {}, which rank 0 created; give a parent "
                "folder that all ranks share",
                options_.rank, path_.string());
  return {};
}

Result<> SharedTemporaryFolder::finish() {
  if (std::exchange(finished_, true) || ::getpid() != owner_)
    return {};
  if (options_.rank > 0)
    return rendezvous_->publish(done_key(options_.rank), "");
  Result<> all_done = wait_for_others();
  Result<> removed = owned_->remove();
  return all_done ? std::move(removed) : std::move(all_done);
}

Result<> SharedTemporaryFolder::wait_for_others() {
  if (options_.world_size == 1)
    return {};
  // One deadline for the whole group; once it has passed, the remaining ranks
  // are still checked once each.
  const Clock::TimePoint deadline = clock_->now() + options_.time_limit;
  std::size_t missing = 0;
  std::size_t first_missing = 0;
  for (std::size_t rank = options_.world_size - 1; rank > 0; --rank) {
    if (rendezvous_->await(done_key(rank), deadline - clock_->now())) {
      rendezvous_->withdraw(done_key(rank));
    } else {
      ++missing;
      first_missing = rank;
    }
  }
  rendezvous_->withdraw(kNameKey);
  if (missing == 0)
    return {};
  return fail(
      ErrorKind::kIo,
      "{} of {} ranks, the first of them rank {}, did not finish within "
      "{}; removed the shared folder {} anyway",
      missing, options_.world_size, first_missing,
      human_duration(options_.time_limit), path_.string());
}

}  // namespace postflight
