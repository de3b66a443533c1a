/* A column made in C, and a sum taken in C, for anyone who speaks DLPack.
 *
 *     cc -shared -fPIC -I DIRECTORY_OF_DLPACK squares.c -o squares.so
 */
#include <dlpack/dlpack.h>
#include <stdlib.h>

typedef struct {
  DLManagedTensorVersioned tensor; /* first, so that a pointer to either is a pointer to both */
  int64_t shape, stride;
  float data[];
} Column;

static void delete_column(DLManagedTensorVersioned *self) { free(self); }

DLManagedTensorVersioned *squares(int64_t count) {
  Column *column = calloc(1, sizeof *column + count * sizeof *column->data);
  if (!column) return NULL;
  for (int64_t i = 0; i < count; i++) column->data[i] = (float)(i * i);
  column->shape = count;
  column->stride = 1;
  column->tensor = (DLManagedTensorVersioned){
      .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
      .deleter = delete_column,
      .dl_tensor = {.data = column->data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1},
                    .shape = &column->shape, .strides = &column->stride}};
  return &column->tensor;
}

/* Only looks: the tensor stays the caller's. */
double total(const DLManagedTensorVersioned *managed) {
  const DLTensor *t = &managed->dl_tensor;
  const float *data = (const float *)((const char *)t->data + t->byte_offset);
  double sum = 0;
  for (int64_t i = 0; i < t->shape[0]; i++) sum += data[i * t->strides[0]];
  return sum;
}
