/* postflight as a library: what the commands of the program do, for C and for
 * everything that can call C. The C++ headers beside this one wrap it.
 *
 * Status. A function that can fail returns a postflight_status and, if `error`
 * is not NULL, sets *error to an object with a sentence, which the caller
 * frees. Outputs are set only if it returns POSTFLIGHT_OK.
 *
 * Handles. What a _new, _open or _read function returns is freed by the _free
 * function of its type, which takes NULL, too. Handles may be freed in any
 * order: a handle that needs another one, or a mapped file, keeps it alive.
 *
 * Text. Strings that go in end with a NUL and are UTF-8 or a path's bytes. What
 * comes out as a postflight_string may contain any byte of a file, NUL
 * included: escape it before you print it. A postflight_text also ends with a
 * NUL.
 *
 * Answers with structure are JSON, the same that the program prints with
 * --json; docs/schema has a schema for each.
 *
 * Threads and processes. Different threads may use the same handle, except that
 * a handle is freed once, by one thread, and that settings of a context are
 * changed while no other thread uses it. The library has no threads between
 * calls, so that a process may fork, and installs no signal handlers. A file
 * that is truncated while it is read is an error, except where a view of its
 * mapped bytes was asked for: see postflight_tensor_view().
 *
 * The interface is only ever extended. Structures that go in begin with their
 * size, and what is not set in them is 0: initialise them by POSTFLIGHT_SIZED
 * in C, and by {} and the size in C++.
 */

#ifndef POSTFLIGHT_POSTFLIGHT_H
#define POSTFLIGHT_POSTFLIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POSTFLIGHT_ABI 1

/* struct postflight_open_options options{};
 options.size = sizeof(options); */
#define POSTFLIGHT_SIZED(variable) \
  { .size = sizeof(variable) }

/* ---- errors and texts ------------------------------------------------- */

typedef enum postflight_status {
  POSTFLIGHT_OK = 0,
  POSTFLIGHT_IO = 1,          /* a file could not be opened, read or written */
  POSTFLIGHT_CORRUPT = 2,     /* the bytes break the rules of their format */
  POSTFLIGHT_UNSUPPORTED = 3, /* well formed, but not supported */
  POSTFLIGHT_REFUSED = 4,     /* it would exceed a limit */
  POSTFLIGHT_USAGE = 5,       /* invalid arguments */
  POSTFLIGHT_INTERRUPTED = 6, /* by postflight_context_set_interrupt() */
  POSTFLIGHT_NO_MEMORY = 7,
} postflight_status;

typedef struct postflight_error postflight_error;
postflight_status postflight_error_status(const postflight_error* error);
/* A sentence without a full stop, valid until the error is freed. */
const char* postflight_error_message(const postflight_error* error);
void postflight_error_free(postflight_error* error);

/* A view; not terminated by a NUL. */
typedef struct postflight_string {
  const char* data;
  size_t size;
} postflight_string;

typedef struct postflight_text postflight_text;
const char* postflight_text_data(const postflight_text* text);
size_t postflight_text_size(const postflight_text* text);
void postflight_text_free(postflight_text* text);

/* "0.1.0", of the library that is loaded, and its POSTFLIGHT_ABI. */
const char* postflight_version(void);
uint32_t postflight_abi(void);

/* ---- context ---------------------------------------------------------- */

typedef enum postflight_log_level {
  POSTFLIGHT_DEBUG = 0,
  POSTFLIGHT_INFO = 1,
  POSTFLIGHT_WARNING = 2,
  POSTFLIGHT_ERROR = 3,
} postflight_log_level;

/* Called with one message at a time, possibly by a thread of the library's. */
typedef void (*postflight_log_function)(void* user, postflight_log_level level,
                                        const char* channel,
                                        const char* message);
/* What calls share. Functions that take a context also take NULL, for the
 * defaults: as many threads as processors, and no log. */
typedef struct postflight_context postflight_context;
postflight_status postflight_context_new(postflight_context** context,
                                         postflight_error** error);
void postflight_context_free(postflight_context* context);
void postflight_context_set_threads(postflight_context* context,
                                    size_t threads);
void postflight_context_set_log(postflight_context* context,
                                postflight_log_function function, void* user);
/* Called now and then, at most some twenty times a second, while a function
 * that takes long is at work, and only on the thread that called that function;
 * by one thread at a time. Once it returns something else than 0, the function
 * soon returns POSTFLIGHT_INTERRUPTED. Memory that it was to fill has any
 * contents then. */
typedef int (*postflight_interrupt_function)(void* user);
void postflight_context_set_interrupt(postflight_context* context,
                                      postflight_interrupt_function function,
                                      void* user);
/* Messages of a channel below `level` are dropped; POSTFLIGHT_INFO by default.
 * *before, unless NULL, becomes the level before. */
postflight_status postflight_context_set_log_level(postflight_context* context,
                                                   const char* channel,
                                                   postflight_log_level level,
                                                   postflight_log_level* before,
                                                   postflight_error** error);
/* One of the caps of src/base/limits.h, "max_materialised_bytes" for one. */
postflight_status postflight_context_set_limit(postflight_context* context,
                                               const char* name, uint64_t value,
                                               postflight_error** error);

/* ---- checkpoints ------------------------------------------------------ */

typedef struct postflight_checkpoint postflight_checkpoint;

struct postflight_open_options {
  size_t size;
  /* In a folder of rank files, only that of this rank; needs has_rank. */
  uint32_t rank;
  uint32_t has_rank;
  /* Shared libraries of transforms, see postflight_transform.h. */
  const char* const* plugins;
  size_t plugin_count;
  /* For encrypted items: the text of a key file; NULL: none. */
  const char* key;
};

/* Opens a file or folder of any format. Nothing in it is run, and no tensor is
 * read. */
postflight_status postflight_checkpoint_open(
    postflight_context* context, const char* path,
    const struct postflight_open_options* options,
    postflight_checkpoint** checkpoint, postflight_error** error);
/* The same for a file in memory, which stays unchanged until the checkpoint and
 * what was read with it are freed. `name` stands for its path in messages. */
postflight_status postflight_checkpoint_open_bytes(
    postflight_context* context, const void* data, size_t size,
    const char* name, const struct postflight_open_options* options,
    postflight_checkpoint** checkpoint, postflight_error** error);
void postflight_checkpoint_free(postflight_checkpoint* checkpoint);

/* "safetensors": what it was recognised as, by the name that listings have. */
const char* postflight_checkpoint_format(
    const postflight_checkpoint* checkpoint);
/* postflight.ckpt.ls/1; with all != 0, values too. */
postflight_status postflight_checkpoint_list(
    const postflight_checkpoint* checkpoint, int all, postflight_text** json,
    postflight_error** error);
/* postflight.ckpt.verify/1: whether it is complete and undamaged. */
postflight_status postflight_checkpoint_verify(
    const postflight_checkpoint* checkpoint, postflight_text** json,
    postflight_error** error);
/* postflight.ckpt.digest/1: the SHA-256 of each tensor. */
postflight_status postflight_checkpoint_digest(
    const postflight_checkpoint* checkpoint, postflight_text** json,
    postflight_error** error);

typedef enum postflight_node_kind {
  POSTFLIGHT_DICT = 0, /* and similar ones: OrderedDict, defaultdict */
  POSTFLIGHT_LIST = 1,
  POSTFLIGHT_TUPLE = 2, /* and named tuples */
  POSTFLIGHT_SET = 3,
  POSTFLIGHT_OBJECT = 4,    /* of a class of which only the name is known */
  POSTFLIGHT_TENSOR = 5,    /* `index` is for postflight_checkpoint_tensor() */
  POSTFLIGHT_REFERENCE = 6, /* to the earlier node `index` */
  POSTFLIGHT_VALUE = 7,
} postflight_node_kind;

typedef enum postflight_key_kind {
  POSTFLIGHT_KEY_ROOT = 0,
  POSTFLIGHT_KEY_STRING = 1,    /* of a dict */
  POSTFLIGHT_KEY_INTEGER = 2,   /* of a dict */
  POSTFLIGHT_KEY_INDEX = 3,     /* of a list or tuple */
  POSTFLIGHT_KEY_ATTRIBUTE = 4, /* of an object, or beside a dict's items */
  POSTFLIGHT_KEY_OTHER = 5,     /* the text is Python's repr of the key */
} postflight_key_kind;

typedef enum postflight_value_kind {
  POSTFLIGHT_NONE = 0,
  POSTFLIGHT_BOOLEAN = 1,     /* integer */
  POSTFLIGHT_INTEGER = 2,     /* integer */
  POSTFLIGHT_BIG_INTEGER = 3, /* text: two's complement, little-endian */
  POSTFLIGHT_FLOAT = 4,       /* floating */
  POSTFLIGHT_STRING = 5,      /* text: UTF-8, if the file is right */
  POSTFLIGHT_BYTES = 6,       /* text; also Python 2's str */
  POSTFLIGHT_BYTEARRAY = 7,   /* text */
  POSTFLIGHT_OTHER = 8,       /* text: about Python's repr; type: its type */
} postflight_value_kind;

/* A node of the object tree. Nodes are in one array, each before those below
 * it: the first child of node i is node i + 1, and a node's next sibling is
 * node `end`. Node 0 is the root. */
typedef struct postflight_node {
  uint32_t kind;     /* postflight_node_kind */
  uint32_t key_kind; /* postflight_key_kind */
  postflight_string key;
  int64_t key_number;
  uint32_t parent;
  uint32_t end;
  uint32_t index;
  uint32_t children;
  postflight_string type; /* "OrderedDict", "int"; empty: the kind says it */
  uint32_t value_kind;    /* postflight_value_kind, of a POSTFLIGHT_VALUE */
  uint32_t reserved;
  int64_t integer;
  double floating;
  postflight_string text;
} postflight_node;

#define POSTFLIGHT_NO_INDEX UINT32_MAX

/* All nodes; valid while the checkpoint lives. */
postflight_status postflight_checkpoint_nodes(
    const postflight_checkpoint* checkpoint, const postflight_node** nodes,
    size_t* count, postflight_error** error);
/* The node with this path, as the program prints it: model.layers.0.weight,
 * opt[0].m. */
postflight_status postflight_checkpoint_find(
    const postflight_checkpoint* checkpoint, const char* path, uint32_t* node,
    postflight_error** error);
/* The printed path of a node. */
postflight_status postflight_checkpoint_path(
    const postflight_checkpoint* checkpoint, uint32_t node,
    postflight_text** path, postflight_error** error);

typedef enum postflight_tensor_flag {
  POSTFLIGHT_PARAMETER = 1,
  POSTFLIGHT_BUFFER = 2,
  POSTFLIGHT_REQUIRES_GRAD = 4,
  POSTFLIGHT_READABLE = 8,   /* it has bytes, and they are available */
  POSTFLIGHT_HAS_PARTS = 16, /* the tensors and values below it describe it */
  POSTFLIGHT_CONTIGUOUS = 32,
  POSTFLIGHT_SHAPE_UNKNOWN = 64,
  /* What is read has this resolved; but it is another view than one without. */
  POSTFLIGHT_CONJUGATED = 128,
  POSTFLIGHT_NEGATED = 256,
} postflight_tensor_flag;

/* A tensor as the file describes it; valid while the checkpoint lives. */
typedef struct postflight_tensor {
  postflight_string dtype;   /* "float32", torch's name without "torch." */
  postflight_string device;  /* it was saved on */
  postflight_string layout;  /* "strided", "sparse_coo", "DTensor" */
  postflight_string type;    /* of a subclass; else empty */
  postflight_string problem; /* why its bytes are unavailable; else empty */
  const int64_t* shape;
  const int64_t* stride; /* in elements */
  uint32_t dimensions;
  uint32_t flags;     /* of postflight_tensor_flag */
  uint32_t storage;   /* tensors with the same number share it */
  uint32_t item_size; /* bytes per element; 0: unknown */
  uint64_t offset;    /* in the storage, in elements */
  uint64_t elements;
  uint64_t bytes; /* once read: all elements, row-major */
} postflight_tensor;

postflight_status postflight_checkpoint_tensor(
    const postflight_checkpoint* checkpoint, uint32_t index,
    postflight_tensor* tensor, postflight_error** error);
size_t postflight_checkpoint_tensor_count(
    const postflight_checkpoint* checkpoint);

typedef enum postflight_read_flag {
  /* Records of tensors that are read whole are compared with their CRC; those
   * of slices and of mapped views are not. */
  POSTFLIGHT_CHECK_CRC = 1, /* of slices, too */
  POSTFLIGHT_SKIP_CRC = 2,  /* of none */
} postflight_read_flag;

/* Reads the tensor with this index into memory of the caller's, as the
 * row-major, little-endian bytes of its true values: strides are followed, byte
 * order, conjugation and negation resolved. `size` is the tensor's `bytes`. */
postflight_status postflight_tensor_read(
    const postflight_checkpoint* checkpoint, uint32_t index, uint32_t flags,
    void* to, size_t size, postflight_error** error);

struct postflight_target {
  uint32_t index; /* of the tensor */
  uint32_t reserved;
  void* to;
  size_t size;
};
/* The same for many, on several threads, in the order of the file. */
postflight_status postflight_tensors_read(
    const postflight_checkpoint* checkpoint,
    const struct postflight_target* targets, size_t count, uint32_t flags,
    postflight_error** error);

/* A part of a tensor: "[0:128, :, 3]" as numpy reads it, with positive steps.
 * *dimensions is at least as large as the tensor has and becomes the number of
 * those of the result, whose sizes go to `shape`. With a NULL `to` nothing is
 * read, and *size becomes the number of bytes that it takes. */
postflight_status postflight_tensor_read_slice(
    const postflight_checkpoint* checkpoint, uint32_t index, const char* slice,
    uint32_t flags, int64_t* shape, uint32_t* dimensions, void* to,
    size_t* size, postflight_error** error);

/* The bytes of a tensor in the mapped file, valid while the checkpoint lives.
 * Fails with POSTFLIGHT_UNSUPPORTED if they need a conversion; read it then.
 * Touching them after another process has truncated the file raises SIGBUS, as
 * any mapped file does; no other function has that danger. */
postflight_status postflight_tensor_view(
    const postflight_checkpoint* checkpoint, uint32_t index, const void** data,
    size_t* size, postflight_error** error);

/* Where those bytes are in a file, for programs that map or read it themselves.
 * Fails as the function above does, and for a file in memory. */
postflight_status postflight_tensor_place(
    const postflight_checkpoint* checkpoint, uint32_t index,
    postflight_text** path, uint64_t* offset, postflight_error** error);

/* ---- partial reads ---------------------------------------------------- */

typedef struct postflight_plan postflight_plan;

struct postflight_plan_options {
  size_t size;
  /* The wanted tree as JSON, see docs/checkpoints.md: objects and arrays nest,
   * null is everything, {"$tensor": {"dtype", "shape"}} and {"$value": ...}
   * must fit. NULL: what `keys` select. */
  const char* wanted;
  const char* const* keys; /* globs over printed paths; none: everything */
  size_t key_count;
  const char* slice;        /* the same part of each tensor, or NULL */
  const char* map_location; /* "cpu", "cuda:0=cpu", "meta", or NULL */
  int skip_unreadable;      /* instead of failing */
};

typedef struct postflight_planned {
  uint32_t node;
  uint32_t index; /* of the tensor */
  postflight_string device;
  const int64_t* shape; /* of the slice, if there is one */
  uint32_t dimensions;
  uint32_t has_bytes; /* not on the meta device, or if it has parts */
  uint64_t bytes;
} postflight_planned;

/* Selects tensors and values. Fails, with the message of torch's reader, if a
 * type, dtype or shape differs from the wanted one. */
postflight_status postflight_plan_new(
    const postflight_checkpoint* checkpoint,
    const struct postflight_plan_options* options, postflight_plan** plan,
    postflight_error** error);
void postflight_plan_free(postflight_plan* plan);
size_t postflight_plan_count(const postflight_plan* plan);
/* Valid while the plan lives. */
postflight_status postflight_plan_at(const postflight_plan* plan, size_t place,
                                     postflight_planned* planned,
                                     postflight_error** error);
/* The nodes of the values that were selected; valid while the plan lives. */
const uint32_t* postflight_plan_values(const postflight_plan* plan,
                                       size_t* count);
/* postflight.ckpt.read/1: the tensors, and the keys that are missing,
 * unexpected or unreadable. */
postflight_status postflight_plan_json(const postflight_plan* plan,
                                       postflight_text** json,
                                       postflight_error** error);
/* Reads each planned tensor, in order, into the memory at the same place of
 * `to`, which has room for its bytes; one that has none may be NULL. Everything
 * is checked before the first byte is written. */
postflight_status postflight_plan_read(const postflight_plan* plan,
                                       void* const* to, size_t count,
                                       uint32_t flags,
                                       postflight_error** error);

/* ---- pickles ---------------------------------------------------------- */

/* postflight.pickle/1: the pickles of a file, and what loading them would do.
 * *safe becomes 1 only if the verdict is SAFE. */
postflight_status postflight_pickle_inspect(postflight_context* context,
                                            const char* path, int* safe,
                                            postflight_text** json,
                                            postflight_error** error);
/* The same for the bytes of a file: what is loaded then should be these. */
postflight_status postflight_pickle_inspect_bytes(postflight_context* context,
                                                  const void* data, size_t size,
                                                  const char* name, int* safe,
                                                  postflight_text** json,
                                                  postflight_error** error);

/* ---- flight-recorder dumps -------------------------------------------- */

typedef struct postflight_job postflight_job;

struct postflight_evidence {
  size_t size;
  const char* const* dumps; /* files, folders and globs */
  size_t dump_count;
  const char* hosts;       /* a host file or a Slurm node list, or NULL */
  const char* const* logs; /* files or globs */
  size_t log_count;
  const char* const* stacks; /* saved stacks, the oldest first */
  size_t stack_count;
};

/* Reads dumps; with diagnose != 0, also says what happened, and then there may
 * be logs alone. */
postflight_status postflight_job_read(
    postflight_context* context, const struct postflight_evidence* evidence,
    int diagnose, postflight_job** job, postflight_error** error);
void postflight_job_free(postflight_job* job);
/* postflight.trace/1: the verdict. Of a job that was read with diagnose. */
postflight_status postflight_job_verdict(const postflight_job* job,
                                         postflight_text** json,
                                         postflight_error** error);
/* Whether the verdict calls for action, as the exit status of `trace` says;
 * with strict != 0, warnings do, too. */
postflight_status postflight_job_is_problem(const postflight_job* job,
                                            int strict, int* problem,
                                            postflight_error** error);

typedef enum postflight_column_type {
  POSTFLIGHT_INT32 = 0,
  POSTFLIGHT_INT64 = 1,
  POSTFLIGHT_FLOAT64 = 2,
  POSTFLIGHT_BOOL = 3,    /* a byte, 0 or 1 */
  POSTFLIGHT_STRINGS = 4, /* uint32_t: the place in `strings` */
} postflight_column_type;

typedef struct postflight_column {
  postflight_string name; /* "sequence" */
  uint32_t type;          /* postflight_column_type */
  uint32_t reserved;
  const void* data;
  size_t count;
  const postflight_string* strings;
  size_t string_count;
} postflight_column;

/* All entries of a job, in order of ranks and records, as columns. Times are
 * nanoseconds since 1970, 0 where none was recorded; durations are NaN there.
 * Stacks and sizes are JSON. */
typedef struct postflight_columns postflight_columns;
postflight_status postflight_job_entries(const postflight_job* job,
                                         postflight_columns** columns,
                                         postflight_error** error);
void postflight_columns_free(postflight_columns* columns);
size_t postflight_columns_count(const postflight_columns* columns);
/* All of them. Their data are in one block of memory. */
const postflight_column* postflight_columns_data(
    const postflight_columns* columns);
/* Valid while the columns live. */
postflight_status postflight_columns_at(const postflight_columns* columns,
                                        size_t place, postflight_column* column,
                                        postflight_error** error);

/* ---- streams ---------------------------------------------------------- */

struct postflight_transform; /* see postflight_transform.h */

/* The transforms by name: those built in, and those that are added. */
typedef struct postflight_registry postflight_registry;
postflight_status postflight_registry_new(postflight_registry** registry,
                                          postflight_error** error);
void postflight_registry_free(postflight_registry* registry);
/* Loads a plug-in, which runs its code. It stays loaded. */
postflight_status postflight_registry_load(postflight_registry* registry,
                                           const char* path,
                                           postflight_error** error);
/* Adds a transform of the program's own, which stays valid until everything
 * that was made with the registry is freed. */
postflight_status postflight_registry_add(
    postflight_registry* registry, const struct postflight_transform* transform,
    postflight_error** error);
/* postflight.stream.list/1 */
postflight_status postflight_registry_list(const postflight_registry* registry,
                                           postflight_text** json,
                                           postflight_error** error);

/* Transforms that data goes through: the first, then the second, then to disk.
 * Each as the program's --with takes it, "stream.zstd/1:level=9". */
typedef struct postflight_chain postflight_chain;
postflight_status postflight_chain_new(const postflight_registry* registry,
                                       const char* const* transforms,
                                       size_t count, const char* key,
                                       postflight_chain** chain,
                                       postflight_error** error);
void postflight_chain_free(postflight_chain* chain);
/* The descriptors as a checkpoint stores them, a JSON array. */
postflight_status postflight_chain_descriptors(const postflight_chain* chain,
                                               postflight_text** json,
                                               postflight_error** error);

/* Writes all of `data`; 0, or something else if that failed. */
typedef int (*postflight_write_function)(void* user, const void* data,
                                         size_t size);
/* Reads up to `size` bytes, at least one: how many; 0 at the end; negative if
 * that failed. */
typedef ptrdiff_t (*postflight_read_function)(void* user, void* to,
                                              size_t size);

/* Encodes what is written to it. */
typedef struct postflight_writer postflight_writer;
postflight_status postflight_writer_new(const postflight_chain* chain,
                                        postflight_write_function function,
                                        void* user, postflight_writer** writer,
                                        postflight_error** error);
postflight_status postflight_writer_write(postflight_writer* writer,
                                          const void* data, size_t size,
                                          postflight_error** error);
postflight_status postflight_writer_flush(postflight_writer* writer,
                                          postflight_error** error);
/* Writes the end; without it, readers find the data truncated. */
postflight_status postflight_writer_finish(postflight_writer* writer,
                                           postflight_error** error);
/* Of a writer that was made with a NULL function: what it has encoded since the
 * last call. Valid until the next call with the writer. */
void postflight_writer_take(postflight_writer* writer, const void** data,
                            size_t* size);
void postflight_writer_free(postflight_writer* writer);

/* Decodes what it reads. */
typedef struct postflight_reader postflight_reader;
postflight_status postflight_reader_new(const postflight_chain* chain,
                                        postflight_read_function function,
                                        void* user, postflight_reader** reader,
                                        postflight_error** error);
/* *count is 0 only at the end, or if the reader is hungry. */
postflight_status postflight_reader_read(postflight_reader* reader, void* to,
                                         size_t size, size_t* count,
                                         postflight_error** error);
/* For a reader that was made with a NULL function: the next bytes to decode,
 * which are copied; none (size 0) say that there are no more. */
postflight_status postflight_reader_feed(postflight_reader* reader,
                                         const void* data, size_t size,
                                         postflight_error** error);
/* Whether it has used up what it was fed, and was not told of the end. */
int postflight_reader_is_hungry(const postflight_reader* reader);
void postflight_reader_free(postflight_reader* reader);

/* ---- a temporary folder for a group of processes ---------------------- */

typedef struct postflight_folder postflight_folder;

struct postflight_folder_options {
  size_t size;
  size_t rank;
  size_t world_size;  /* 0 or 1: an ordinary temporary folder */
  const char* parent; /* of the folder; NULL: $TMPDIR. Seen by all ranks */
  /* How the name reaches the other ranks: an empty folder that all of them see,
   * or, if it is NULL, the functions below. */
  const char* meeting_folder;
  void* user;
  /* Makes a value visible to the group under a key; 0 on success. */
  int (*publish)(void* user, const char* key, const char* value);
  /* Waits for a key up to a time limit, and copies its value, with its NUL,
   * to `value`; 0 on success. */
  int (*await)(void* user, const char* key, double seconds, char* value,
               size_t size);
  double time_limit;           /* in seconds, for each wait; 0: five minutes */
  postflight_context* context; /* whose function interrupts waits, or NULL */
};

/* Rank 0 makes the folder. */
postflight_status postflight_folder_new(
    const struct postflight_folder_options* options, postflight_folder** folder,
    postflight_error** error);
const char* postflight_folder_path(const postflight_folder* folder);
/* Says that this rank is done. On rank 0, waits for the others and removes the
 * folder. _free does the same if it has not been done, and forgets errors. */
postflight_status postflight_folder_finish(postflight_folder* folder,
                                           postflight_error** error);
void postflight_folder_free(postflight_folder* folder);

/* ---- profiling ------------------------------------------------------- */

/* A phase of the calling thread, until its end. Phases nest. They cost next to
 * nothing unless a session runs, or `postflight profile` has launched this
 * program without its agent (--engine external). `frame_id` may be NULL. */
void postflight_phase_begin(const char* name, const char* frame_id);
void postflight_phase_end(void);

/* A profile of this process and its children, taken from another process, the
 * program postflight, which has to be installed. */
typedef struct postflight_session postflight_session;

struct postflight_session_options {
  size_t size;
  const char* output;   /* NULL: profile.pflog; must not exist */
  double interval;      /* between samples, in seconds; 0: 1/99 */
  double duration;      /* in seconds; 0: until it is stopped */
  const char* mode;     /* "cpu" or "wall"; NULL: "cpu" */
  size_t most_frames;   /* of a stack; 0: 500 */
  int without_children; /* leave out processes that this one starts */
  const char* program;  /* NULL: the one installed beside the library, or else
                           that on PATH */
};

/* Returns once samples are taken. One session runs at a time. */
postflight_status postflight_session_new(
    const struct postflight_session_options* options,
    postflight_session** session, postflight_error** error);
/* Ends it; its file is complete then. _free does the same if it has not been
 * done. */
postflight_status postflight_session_finish(postflight_session* session,
                                            postflight_error** error);
void postflight_session_free(postflight_session* session);
/* Where the samples are, for `postflight profile report`. */
const char* postflight_session_file(const postflight_session* session);

/* ---- profiling of compilations --------------------------------------- */

/* Profiles the phases of a compilation, with the contract of torch's
 * StrobelightCompileTimeProfiler: the outermost phase of each thread counts,
 * whatever happens to the profiler the work runs exactly once, and the
 * variables COMPILE_STROBELIGHT_* and POSTFLIGHT_* (docs/profiler.md) have
 * their effect. */
typedef struct postflight_compile_profiler postflight_compile_profiler;

/* A profiler of the program's own. The functions return 0 on success. */
struct postflight_phase_profiler {
  size_t size;
  void* user;
  int (*start)(void* user, const char* phase, const char* frame_id);
  /* Called once for each successful start, by the same thread. */
  int (*stop)(void* user, const char* phase, const char* frame_id,
              uint64_t* samples);
  int exclusive; /* it profiles one thread at a time */
};

struct postflight_compile_options {
  size_t size;
  postflight_context* context; /* whose log gets torch's lines, or NULL */
  const char* output;          /* NULL: profile.pflog, profile-rank0.pflog */
  /* NULL: a session for all phases. */
  const struct postflight_phase_profiler* profiler;
};

typedef struct postflight_compile_counters {
  uint64_t success;
  uint64_t failed; /* the profiler failed, or the work */
  uint64_t ignored_recursive;
  uint64_t ignored_concurrent;
  uint64_t filtered;
  uint64_t empty; /* without samples; not of sessions */
} postflight_compile_counters;

/* If the profiler cannot be made, that is logged and nothing is profiled: the
 * work is more important. */
postflight_status postflight_compile_profiler_new(
    const struct postflight_compile_options* options,
    postflight_compile_profiler** profiler, postflight_error** error);
void postflight_compile_profiler_free(postflight_compile_profiler* profiler);
int postflight_compile_profiler_is_enabled(
    const postflight_compile_profiler* profiler);
/* Returns what the work returns; 0 is success. `frame_id` may be NULL. */
int postflight_compile_profiler_run(postflight_compile_profiler* profiler,
                                    const char* phase, const char* frame_id,
                                    int (*work)(void* user), void* user);
postflight_compile_counters postflight_compile_profiler_counters(
    const postflight_compile_profiler* profiler);
/* "2026-11-15-17:02:33_4711_node3_rank7": a tag of every sample. */
const char* postflight_compile_profiler_identifier(
    const postflight_compile_profiler* profiler);
/* Of the file, or what POSTFLIGHT_URL_COMMAND has made of it. */
const char* postflight_compile_profiler_url(
    const postflight_compile_profiler* profiler);

#ifdef __cplusplus
}
#endif

#endif
