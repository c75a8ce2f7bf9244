// The flight-recorder dumps of a job and what they say, for C++17 and later.

#ifndef POSTFLIGHT_JOB_H
#define POSTFLIGHT_JOB_H

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <postflight/context.h>
#include <postflight/postflight.h>

namespace postflight {

struct Evidence {
  std::vector<std::string> dumps = {};  // files, folders and globs
  std::string hosts = {};               // a file or a Slurm node list
  std::vector<std::string> logs = {};
  std::vector<std::string> stacks = {};
};

// All entries of a job, one column for each field.
class Entries {
 public:
  explicit Entries(const postflight_job* job)
      : handle_(detail::make<postflight_columns, postflight_columns_free>(
            postflight_job_entries, job)) {}

  std::size_t columns() const {
    return postflight_columns_count(handle_.get());
  }
  // Valid while the Entries live.
  postflight_column operator[](std::size_t place) const {
    postflight_column column;
    detail::call(postflight_columns_at, handle_.get(), place, &column);
    return column;
  }
  postflight_column operator[](std::string_view name) const {
    for (std::size_t i = 0; i < columns(); ++i)
      if (const postflight_column column = (*this)[i];
          detail::view(column.name) == name)
        return column;
    throw Error(POSTFLIGHT_USAGE, "no column is called " + std::string(name));
  }

 private:
  detail::Owned<postflight_columns, postflight_columns_free> handle_;
};

class Job {
 public:
  // Only reads the dumps.
  static Job read(const Evidence& evidence, const Context* context = nullptr) {
    return Job(evidence, context, 0);
  }
  // Also says what happened.
  static Job diagnose(const Evidence& evidence,
                      const Context* context = nullptr) {
    return Job(evidence, context, 1);
  }

  // postflight.trace/1; of a job that was diagnosed.
  std::string verdict() const {
    return detail::text(postflight_job_verdict, handle());
  }
  bool is_problem(bool strict = false) const {
    int problem = 0;
    detail::call(postflight_job_is_problem, handle(), strict ? 1 : 0, &problem);
    return problem != 0;
  }
  Entries entries() const { return Entries(handle_.get()); }

  const postflight_job* handle() const { return handle_.get(); }

 private:
  Job(const Evidence& evidence, const Context* context, int diagnose) {
    const std::vector<const char*> dumps = detail::pointers(evidence.dumps);
    const std::vector<const char*> logs = detail::pointers(evidence.logs);
    const std::vector<const char*> stacks = detail::pointers(evidence.stacks);
    postflight_evidence given{};
    given.size = sizeof(given);
    given.dumps = dumps.data();
    given.dump_count = dumps.size();
    given.hosts = detail::text_or_null(evidence.hosts);
    given.logs = logs.data();
    given.log_count = logs.size();
    given.stacks = stacks.data();
    given.stack_count = stacks.size();
    handle_ = detail::make<postflight_job, postflight_job_free>(
        postflight_job_read, context == nullptr ? nullptr : context->handle(),
        &given, diagnose);
  }

  detail::Owned<postflight_job, postflight_job_free> handle_;
};

}  // namespace postflight

#endif
