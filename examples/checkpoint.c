/* Lists the tensors of a checkpoint, and reads the first.
 *
 *     cc checkpoint.c $(pkg-config --cflags --libs postflight) -o checkpoint
 *     ./checkpoint model.pt
 */

#include <inttypes.h>
#include <postflight/postflight.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(postflight_error* error) {
  fprintf(stderr, "%s\n", postflight_error_message(error));
  postflight_error_free(error);
  return 2;
}

static void print(const char* path, const postflight_tensor* tensor) {
  printf("%s  %.*s [", path, (int)tensor->dtype.size, tensor->dtype.data);
  for (uint32_t i = 0; i < tensor->dimensions; ++i)
    printf("%s%" PRId64, i == 0 ? "" : ", ", tensor->shape[i]);
  printf("]  %" PRIu64 " bytes\n", tensor->bytes);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: checkpoint FILE\n");
    return 2;
  }
  postflight_error* error = NULL;
  postflight_checkpoint* checkpoint = NULL;
  if (postflight_checkpoint_open(NULL, argv[1], NULL, &checkpoint, &error))
    return fail(error);

  const postflight_node* nodes = NULL;
  size_t count = 0;
  if (postflight_checkpoint_nodes(checkpoint, &nodes, &count, &error))
    return fail(error);
  int first = 1;
  for (size_t i = 0; i < count; ++i) {
    if (nodes[i].kind != POSTFLIGHT_TENSOR)
      continue;
    postflight_tensor tensor;
    postflight_text* path = NULL;
    if (postflight_checkpoint_tensor(checkpoint, nodes[i].index, &tensor,
                                     &error) ||
        postflight_checkpoint_path(checkpoint, (uint32_t)i, &path, &error))
      return fail(error);
    print(postflight_text_data(path), &tensor);
    postflight_text_free(path);

    if (!first || !(tensor.flags & POSTFLIGHT_READABLE))
      continue;
    first = 0;
    unsigned char* bytes = malloc(tensor.bytes + 1);
    if (bytes == NULL)
      return 2;
    if (postflight_tensor_read(checkpoint, nodes[i].index,
                               POSTFLIGHT_CHECK_CRC, bytes, tensor.bytes,
                               &error))
      return fail(error);
    printf("  its first byte is %d\n", tensor.bytes == 0 ? -1 : bytes[0]);
    free(bytes);
  }
  postflight_checkpoint_free(checkpoint);
  return 0;
}
