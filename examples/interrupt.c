/* The SHA-256 of each tensor, for at most some seconds: how a program ends a
 * long call.
 *
 *     cc -std=c11 interrupt.c $(pkg-config --cflags --libs postflight)
 *     ./a.out model.pt 10
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <postflight/postflight.h>

static int is_over(void* user) {
  return time(NULL) >= *(const time_t*)user;
}

static int fail(postflight_error* error) {
  const int interrupted =
      postflight_error_status(error) == POSTFLIGHT_INTERRUPTED;
  fprintf(stderr, "%s\n", postflight_error_message(error));
  postflight_error_free(error);
  return interrupted ? 3 : 2;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: interrupt CHECKPOINT SECONDS\n");
    return 2;
  }
  time_t end = time(NULL) + atoi(argv[2]);
  postflight_error* error = NULL;
  postflight_context* context = NULL;
  if (postflight_context_new(&context, &error) != POSTFLIGHT_OK)
    return fail(error);
  postflight_context_set_interrupt(context, is_over, &end);
  postflight_checkpoint* checkpoint = NULL;
  int status = 0;
  if (postflight_checkpoint_open(context, argv[1], NULL, &checkpoint, &error) !=
      POSTFLIGHT_OK)
    status = fail(error);
  postflight_text* answer = NULL;
  if (status == 0 && postflight_checkpoint_digest(checkpoint, &answer,
                                                  &error) != POSTFLIGHT_OK)
    status = fail(error);
  if (status == 0)
    puts(postflight_text_data(answer));
  postflight_text_free(answer);
  postflight_checkpoint_free(checkpoint);
  postflight_context_free(context);
  return status;
}
