// One temporary folder for a group of processes, for C++17 and later.

#ifndef POSTFLIGHT_TEMPORARY_FOLDER_H
#define POSTFLIGHT_TEMPORARY_FOLDER_H

#include <string>

#include <postflight/context.h>
#include <postflight/postflight.h>

namespace postflight {

class SharedTemporaryFolder {
 public:
  // An ordinary temporary folder, in `parent` or $TMPDIR.
  explicit SharedTemporaryFolder(const std::string& parent = {})
      : SharedTemporaryFolder(make(parent, 0, 1, {})) {}
  // For a group that meets in an empty folder that all of its ranks see. Rank 0
  // makes it, and removes it when all are done with it.
  SharedTemporaryFolder(const std::string& parent, std::size_t rank,
                        std::size_t world_size,
                        const std::string& meeting_folder)
      : SharedTemporaryFolder(make(parent, rank, world_size, meeting_folder)) {}
  // For a group that exchanges keys and values in its own way.
  explicit SharedTemporaryFolder(const postflight_folder_options& options)
      : handle_(detail::make<postflight_folder, postflight_folder_free>(
            postflight_folder_new, &options)) {}

  std::string path() const { return postflight_folder_path(handle_.get()); }
  // The destructor does it, too, but forgets errors.
  void finish() { detail::call(postflight_folder_finish, handle_.get()); }

 private:
  using Handle = detail::Owned<postflight_folder, postflight_folder_free>;
  explicit SharedTemporaryFolder(Handle handle) : handle_(std::move(handle)) {}

  static Handle make(const std::string& parent, std::size_t rank,
                     std::size_t world_size,
                     const std::string& meeting_folder) {
    postflight_folder_options options{};
    options.size = sizeof(options);
    options.rank = rank;
    options.world_size = world_size;
    options.parent = detail::text_or_null(parent);
    options.meeting_folder = detail::text_or_null(meeting_folder);
    return detail::make<postflight_folder, postflight_folder_free>(
        postflight_folder_new, &options);
  }

  Handle handle_;
};

}  // namespace postflight

#endif
