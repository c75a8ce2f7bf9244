/* Says what happened to a hung job, as JSON.
 *
 *     cc diagnose.c $(pkg-config --cflags --libs postflight) -o diagnose
 *     ./diagnose dumps/
 */

#include <postflight/postflight.h>
#include <stdio.h>

static int fail(postflight_error* error) {
  fprintf(stderr, "%s\n", postflight_error_message(error));
  postflight_error_free(error);
  return 2;
}

int main(int argc, char** argv) {
  struct postflight_evidence evidence = POSTFLIGHT_SIZED(evidence);
  evidence.dumps = (const char* const*)(argv + 1);
  evidence.dump_count = (size_t)(argc - 1);

  postflight_error* error = NULL;
  postflight_job* job = NULL;
  postflight_text* verdict = NULL;
  int problem = 0;
  if (postflight_job_read(NULL, &evidence, 1, &job, &error) ||
      postflight_job_verdict(job, &verdict, &error) ||
      postflight_job_is_problem(job, 0, &problem, &error))
    return fail(error);
  fputs(postflight_text_data(verdict), stdout);
  postflight_text_free(verdict);
  postflight_job_free(job);
  return problem;
}
