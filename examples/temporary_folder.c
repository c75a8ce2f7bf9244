/* A temporary folder that the ranks of a group share: each gives its rank, how
 * many there are, and an empty folder that all of them see.
 *
 *     cc temporary_folder.c $(pkg-config --cflags --libs postflight)
 *     mkdir meet; ./a.out 1 2 meet & ./a.out 0 2 meet
 */

#include <postflight/postflight.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(postflight_error* error) {
  fprintf(stderr, "%s\n", postflight_error_message(error));
  postflight_error_free(error);
  return 2;
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: temporary_folder RANK WORLD_SIZE MEETING_FOLDER\n");
    return 2;
  }
  struct postflight_folder_options options = POSTFLIGHT_SIZED(options);
  options.rank = strtoul(argv[1], NULL, 10);
  options.world_size = strtoul(argv[2], NULL, 10);
  options.meeting_folder = argv[3];
  options.time_limit = 30;

  postflight_error* error = NULL;
  postflight_folder* folder = NULL;
  if (postflight_folder_new(&options, &folder, &error))
    return fail(error);
  printf("rank %zu: %s\n", options.rank, postflight_folder_path(folder));
  if (postflight_folder_finish(folder, &error))
    return fail(error);
  postflight_folder_free(folder);
  return 0;
}
