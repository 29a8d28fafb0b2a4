/* The C interface of the Rust core; declared there in r/core/src/sys.rs. */
#ifndef TRUNKLINE_H
#define TRUNKLINE_H

#include <stddef.h>
#include <stdint.h>

typedef struct trunkline_core trunkline_core;
typedef struct trunkline_job trunkline_job;

trunkline_core *trunkline_core_new(void);
void trunkline_core_free(trunkline_core *core);
trunkline_job *trunkline_job_new(const trunkline_core *core, const uint8_t *request, size_t length);
int32_t trunkline_job_wait(trunkline_job *job, uint32_t timeout_ms);
const uint8_t *trunkline_job_reply(const trunkline_job *job, size_t *length);
void trunkline_job_progress(const trunkline_job *job, double *received, double *expected);
void trunkline_job_free(trunkline_job *job);

#endif
