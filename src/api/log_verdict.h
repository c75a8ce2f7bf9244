#pragma once

#include "base/context.h"
#include "flight/diagnosis/verdict.h"
#include "flight/matching/matching.h"
#include "joblog/job_log.h"
#include "joblog/reported_job.h"

namespace postflight {

// Says what the logs of a job tell of its end, without a dump of any rank.
// `matching` is that of the job that they report.
Verdict judge_logs(const JobLog& log, const ReportedJob& reported,
                   const Matching& matching, const Context& context);

}  // namespace postflight
