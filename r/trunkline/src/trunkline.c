/* Between R and the Rust core: bytes in, bytes out, and the user's interrupt in between. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <R.h>
#include <Rinternals.h>
#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

#include "trunkline.h"

/* How long one step of waiting lasts before R looks for an interrupt, in milliseconds. */
#define STEP_MS 50
/* Width of R's own progress bar. */
#define BAR_WIDTH 50

static void free_core(SEXP pointer)
{
    trunkline_core *core = R_ExternalPtrAddr(pointer);
    if (core) {
        R_ClearExternalPtr(pointer);
        trunkline_core_free(core);
    }
}

/* Makes a core whose threads leave all signals to R's own thread. */
static SEXP core_new(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    trunkline_core *core = trunkline_core_new();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!core)
        Rf_error("cannot start a thread for transfers");
    SEXP pointer = PROTECT(R_MakeExternalPtr(core, R_NilValue, R_NilValue));
    R_RegisterCFinalizerEx(pointer, free_core, TRUE);
    UNPROTECT(1);
    return pointer;
}

static SEXP core_free(SEXP pointer)
{
    free_core(pointer);
    return R_NilValue;
}

struct call {
    trunkline_job *job;
    int show_progress;
    int drawn;
};

static void draw_progress(struct call *call)
{
    double received, expected;
    trunkline_job_progress(call->job, &received, &expected);
    if (expected <= 0)
        return;
    int width = (int) (BAR_WIDTH * received / expected);
    if (width > BAR_WIDTH)
        width = BAR_WIDTH;
    for (; call->drawn < width; call->drawn++)
        REprintf("=");
}

static SEXP wait_for_reply(void *data)
{
    struct call *call = data;
    while (!trunkline_job_wait(call->job, STEP_MS)) {
        R_CheckUserInterrupt(); /* may leave; end_call() then stops the transfers */
        if (call->show_progress)
            draw_progress(call);
    }
    if (call->show_progress) {
        draw_progress(call);
        if (call->drawn > 0)
            REprintf("\n");
    }
    size_t length;
    const uint8_t *bytes = trunkline_job_reply(call->job, &length);
    SEXP reply = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t) length));
    memcpy(RAW(reply), bytes, length);
    UNPROTECT(1);
    return reply;
}

static void end_call(void *data)
{
    struct call *call = data;
    trunkline_job_free(call->job);
}

static SEXP core_call(SEXP pointer, SEXP request, SEXP show_progress)
{
    trunkline_core *core = R_ExternalPtrAddr(pointer);
    if (!core)
        Rf_error("the connection pool is closed");
    if (TYPEOF(request) != RAWSXP)
        Rf_error("a request is a raw vector");
    struct call call = {
        trunkline_job_new(core, RAW(request), (size_t) XLENGTH(request)),
        Rf_asLogical(show_progress) == TRUE,
        0,
    };
    return R_ExecWithCleanup(wait_for_reply, &call, end_call, &call);
}

static const R_CallMethodDef call_methods[] = {
    {"core_new", (DL_FUNC) &core_new, 0},
    {"core_free", (DL_FUNC) &core_free, 1},
    {"core_call", (DL_FUNC) &core_call, 3},
    {NULL, NULL, 0}
};

void attribute_visible R_init_trunkline(DllInfo *info)
{
    R_registerRoutines(info, NULL, call_methods, NULL, NULL);
    R_useDynamicSymbols(info, FALSE);
    R_forceSymbols(info, TRUE);
}
