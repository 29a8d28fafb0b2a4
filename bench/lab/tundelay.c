// A delay line between two network namespaces, for kernels without netem.
//
//   tundelay NAMESPACE_A NAMESPACE_B DELAY_US RATE_KBIT
//
// Makes a TUN device `lab0` in each namespace and carries every packet from one to the other,
// DELAY_US microseconds later. RATE_KBIT 0 means no rate limit. Prints `up` once both devices
// exist; the caller gives them addresses. SIGTERM ends it, with the counters as last words.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/if.h>
#include <linux/if_tun.h>

enum {
    PACKET_BYTES_MAX = 1500, // the devices' MTU
    QUEUE_PACKETS_MAX = 16384, // 24 MB a direction: more than any window at 100 ms
};

// A router's buffer: what waits longer than this behind a rate limit is dropped.
#define BACKLOG_NS_MAX UINT64_C(100000000)

struct packet {
    uint64_t due_ns;
    ssize_t bytes;
    char data[PACKET_BYTES_MAX];
};

// One direction. The reader thread alone writes `tail`, the writer thread alone `head`;
// the mutex is held only to move them, never during a system call.
struct line {
    int from, to;
    uint64_t delay_ns;
    double ns_per_byte;
    uint64_t wire_free_ns;
    struct packet *queue;
    unsigned head, tail;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    atomic_ulong carried, dropped;
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t due_ns) {
    struct timespec due = {.tv_sec = (time_t)(due_ns / 1000000000u),
                           .tv_nsec = (long)(due_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
    }
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

// The device lives in the namespace it was opened in, whoever holds it later.
static int open_tun(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/var/run/netns/%s", name);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) < 0) fail(name);
    close(space);
    int tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (tun < 0) fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strcpy(request.ifr_name, "lab0");
    if (ioctl(tun, TUNSETIFF, &request) < 0) fail("TUNSETIFF");
    return tun;
}

static void *read_packets(void *argument) {
    struct line *line = argument;
    for (;;) {
        struct packet *slot = &line->queue[line->tail % QUEUE_PACKETS_MAX];
        ssize_t bytes = read(line->from, slot->data, sizeof slot->data);
        if (bytes <= 0) { // the device is not up yet
            usleep(1000);
            continue;
        }
        uint64_t now = now_ns();
        uint64_t start = line->wire_free_ns > now ? line->wire_free_ns : now;
        pthread_mutex_lock(&line->lock);
        // One slot stays free: the packet read next needs a place before it is known to fit.
        int is_full = line->tail - line->head >= QUEUE_PACKETS_MAX - 1;
        if (is_full || start - now > BACKLOG_NS_MAX) {
            pthread_mutex_unlock(&line->lock);
            atomic_fetch_add(&line->dropped, 1);
            continue;
        }
        line->wire_free_ns = start + (uint64_t)((double)bytes * line->ns_per_byte);
        slot->due_ns = line->wire_free_ns + line->delay_ns;
        slot->bytes = bytes;
        line->tail++;
        pthread_cond_signal(&line->filled);
        pthread_mutex_unlock(&line->lock);
    }
    return NULL;
}

static void *write_packets(void *argument) {
    struct line *line = argument;
    for (;;) {
        pthread_mutex_lock(&line->lock);
        while (line->head == line->tail) pthread_cond_wait(&line->filled, &line->lock);
        struct packet *slot = &line->queue[line->head % QUEUE_PACKETS_MAX];
        pthread_mutex_unlock(&line->lock);
        if (now_ns() < slot->due_ns) sleep_until(slot->due_ns);
        atomic_ulong *counter =
            write(line->to, slot->data, (size_t)slot->bytes) < 0 ? &line->dropped : &line->carried;
        atomic_fetch_add(counter, 1);
        pthread_mutex_lock(&line->lock);
        line->head++;
        pthread_mutex_unlock(&line->lock);
    }
    return NULL;
}

static void start(struct line *line, int from, int to, uint64_t delay_us, double kbit) {
    line->from = from;
    line->to = to;
    line->delay_ns = delay_us * 1000;
    line->ns_per_byte = kbit > 0 ? 8e6 / kbit : 0;
    line->queue = calloc(QUEUE_PACKETS_MAX, sizeof *line->queue);
    if (!line->queue) fail("calloc");
    pthread_mutex_init(&line->lock, NULL);
    pthread_cond_init(&line->filled, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, read_packets, line)) fail("pthread_create");
    if (pthread_create(&thread, NULL, write_packets, line)) fail("pthread_create");
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: tundelay NAMESPACE_A NAMESPACE_B DELAY_US RATE_KBIT\n");
        return 2;
    }
    // Blocked before the threads start, so that only sigwait below sees them.
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stops, NULL);

    static struct line forth, back;
    int a = open_tun(arguments[1]), b = open_tun(arguments[2]);
    uint64_t delay_us = strtoull(arguments[3], NULL, 10);
    double kbit = atof(arguments[4]);
    start(&forth, a, b, delay_us, kbit);
    start(&back, b, a, delay_us, kbit);
    puts("up");
    fflush(stdout);

    int which;
    sigwait(&stops, &which);
    printf("carried %lu dropped %lu\n", atomic_load(&forth.carried) + atomic_load(&back.carried),
           atomic_load(&forth.dropped) + atomic_load(&back.dropped));
    return 0;
}
