#pragma once

#include "base/context.h"
#include "flight/diagnosis/verdict.h"
#include "flight/model/job.h"
#include "joblog/job_log.h"

namespace postflight {

// Where the dumps do not tell who is at fault, names who is according to the
// logs: the rank without a dump that ended first, or what judge_logs() names.
void consult_logs(const JobLog& log, const Job& job, const Context& context,
                  Verdict& verdict);

// Adds what the log of each rank at fault says of it, that about its end first,
// to the evidence.
void cite_log(const JobLog& log, Verdict& verdict);

}  // namespace postflight
