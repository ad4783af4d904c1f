/*===- Status.h - what emitted C APIs return and describe ------------*- C
-*-===*\
|* *|
|* Plain C, so that a model's header can be included from C, C++ and, through *|
|* a foreign-function interface, from anything else. Needs no CUDA headers. *|
|* *|
\*===---------------------------------------------------------------------===*/

#ifndef MEMPLAN_RUNTIME_STATUS_H
#define MEMPLAN_RUNTIME_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The same declaration as in the CUDA headers, which may come before or after.
 * In host builds a stream is only passed around: all work is synchronous. */
typedef struct CUstream_st *cudaStream_t;

typedef enum memplan_status {
  MEMPLAN_OK = 0,
  MEMPLAN_ERROR_ARGUMENT = 1, /* the caller's pointer, size or shape */
  MEMPLAN_ERROR_MEMORY = 2,   /* an allocation failed */
  MEMPLAN_ERROR_FILE = 3,     /* a file can't be opened or read */
  MEMPLAN_ERROR_FORMAT = 4,   /* a file isn't the one this code was made for */
  MEMPLAN_ERROR_DEVICE = 5,   /* the CUDA runtime refused a call or a launch */
  MEMPLAN_ERROR_LIBRARY = 6,  /* cuBLASLt refused a call */
  MEMPLAN_ERROR_CHECK = 7     /* a checked host build found a broken rule */
} memplan_status;

/* The enumerator's name, such as "MEMPLAN_ERROR_FILE"; never NULL. */
const char *memplan_status_name(memplan_status status);

/* What went wrong in this thread's most recent call that didn't return
 * MEMPLAN_OK; "" if none did. Valid until the thread's next error. */
const char *memplan_last_error(void);

typedef enum memplan_dtype {
  MEMPLAN_F32 = 0,
  MEMPLAN_F64 = 1,
  MEMPLAN_F16 = 2,
  MEMPLAN_BF16 = 3,
  MEMPLAN_I8 = 4,
  MEMPLAN_I16 = 5,
  MEMPLAN_I32 = 6,
  MEMPLAN_I64 = 7,
  MEMPLAN_U8 = 8,
  MEMPLAN_U16 = 9,
  MEMPLAN_U32 = 10,
  MEMPLAN_U64 = 11,
  MEMPLAN_BOOL = 12, /* one byte, 0 or 1 */
  MEMPLAN_F8E4M3FN = 13,
  MEMPLAN_F8E4M3FNUZ = 14,
  MEMPLAN_F8E5M2 = 15,
  MEMPLAN_F8E5M2FNUZ = 16,
  MEMPLAN_F8E8M0FNU = 17,
  /* Several elements a byte, the first in its low bits. The last byte may have
   * some left over, which outputs have as 0. */
  MEMPLAN_F4E2M1FN = 18,
  MEMPLAN_I4 = 19,
  MEMPLAN_U4 = 20,
  MEMPLAN_I2 = 21,
  MEMPLAN_U2 = 22
} memplan_dtype;

/* One input or output. The data is dense and row-major. */
typedef struct memplan_tensor_info {
  const char *name; /* the model's own name, UTF-8 */
  memplan_dtype dtype;
  int32_t rank;        /* 0 for a scalar */
  const int64_t *dims; /* `rank` extents; NULL if rank is 0 */
  size_t bytes;        /* of the whole tensor */
} memplan_tensor_info;

#ifdef __cplusplus
}
#endif

#endif /* MEMPLAN_RUNTIME_STATUS_H */
