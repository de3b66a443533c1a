// What nobody can do without who reads an Arrow stream: ask for each array, and release it.
#include <stdint.h>

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, void*);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray*);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

// How many rows there are, -1 after an error.
int64_t walk(struct ArrowArrayStream* stream) {
  int64_t rows = 0;
  for (;;) {
    struct ArrowArray array = {0};
    if (stream->get_next(stream, &array) != 0) rows = -1;
    if (rows < 0 || array.release == 0) break;
    rows += array.length;
    array.release(&array);
  }
  stream->release(stream);
  return rows;
}
