#include "library/job.h"

#include <string>
#include <utility>
#include <vector>

#include "library/boundary.h"
#include "report/flight/trace_text.h"

using namespace postflight;

namespace postflight {
namespace {

std::vector<std::string> texts(const char* const* texts, std::size_t count) {
  return {texts, texts + count};
}

Result<JobEvidence> evidence_of(const postflight_evidence& given,
                                int diagnose) {
  if (given.size != sizeof(given))
    return fail(ErrorKind::kUsage,
                "postflight_evidence has {} bytes instead of {}; begin with "
                "POSTFLIGHT_SIZED",
                given.size, sizeof(given));
  if (given.dump_count == 0 && (diagnose == 0 || given.log_count == 0))
    return fail(ErrorKind::kUsage, "no dumps were given");
  return JobEvidence{.dumps = texts(given.dumps, given.dump_count),
                     .hosts = text_or_empty(given.hosts),
                     .logs = texts(given.logs, given.log_count),
                     .stacks = texts(given.stacks, given.stack_count)};
}

Result<const Investigation*> investigation(const postflight_job& job) {
  if (!job.shared->found)
    return fail(ErrorKind::kUsage,
                "the job was read without a diagnosis; read it with one");
  return &*job.shared->found;
}

}  // namespace
}  // namespace postflight

postflight_status postflight_job_read(postflight_context* context,
                                      const postflight_evidence* evidence,
                                      int diagnose, postflight_job** job,
                                      postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    auto shared = shared_from_members<SharedJob>(shared_context(context));
    const Context& with = shared->context->context;
    const JobEvidence known = TRY(evidence_of(*evidence, diagnose));
    return interruptible(*shared->context, [&]() -> Result<> {
      if (diagnose != 0)
        shared->found.emplace(TRY(investigate(known, with)));
      else
        shared->dumps.emplace(TRY(load_job(known.dumps, known.load, with)));
      hand_out(from_members<postflight_job>(std::move(shared)), job);
      return {};
    });
  });
}

void postflight_job_free(postflight_job* job) {
  delete job;
}

postflight_status postflight_job_verdict(const postflight_job* job,
                                         postflight_text** json,
                                         postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const Investigation& found = *TRY(investigation(*job));
    hand_out(written([&](Output& out) {
               write_trace_json(found.job(), found.verdict, out,
                                found.stacks ? &*found.stacks : nullptr);
             }),
             json);
    return {};
  });
}

postflight_status postflight_job_is_problem(const postflight_job* job,
                                            int strict, int* problem,
                                            postflight_error** error) {
  return guarded(error, [&]() -> Result<> {
    const Investigation& found = *TRY(investigation(*job));
    *problem = is_problem(found.verdict, strict != 0) ? 1 : 0;
    return {};
  });
}
