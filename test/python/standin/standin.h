/* What the emitter writes for a model that computes y = 2x + w, by hand: it
 * tests the test tools. */
#ifndef STANDIN_H
#define STANDIN_H

#include "memplan/Runtime/Status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct standin_t standin_t;
extern const memplan_tensor_info standin_inputs[];
extern const memplan_tensor_info standin_outputs[];
size_t standin_num_inputs(void);
size_t standin_num_outputs(void);
size_t standin_weights_bytes(void);
size_t standin_arena_bytes(void);
memplan_status standin_load(standin_t **out, const char *weights_path,
                            void *device_block);
memplan_status standin_run(standin_t *model, const void *const *inputs,
                           void *const *outputs, cudaStream_t stream);
void standin_free(standin_t *model);

#ifdef __cplusplus
}
#endif

#endif
