/* A stand-in for the CUDA driver that does nothing, at once: what is left of a launch is the host's
   own part (gpu_host.py). Memory is the host's, events are over, copies copy.

   Where a driver takes time an environment variable may say so, in ns: IDLE_LAUNCH, IDLE_ASK (is
   the stream capturing?), IDLE_EVENT, IDLE_ALLOCATION. Of a slab a program takes IDLE_CHUNKS times
   16 bytes, where a kernel of one argument is launched with one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static int nothing(void) { return 0; }

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static long said(const char *name, long *number) {
    if (*number < 0) *number = getenv(name) ? atol(getenv(name)) : 0;
    return *number;
}

static int take_time(const char *name, long *ns) {
    said(name, ns);
    for (uint64_t end = now() + *ns; *ns && now() < end;) {}
    return 0;
}

static void *memory(size_t size) {
    return mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static uint64_t next_handle(void) {
    static uint64_t last = 0x1000;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/* One device, of compute capability 9.0 (attributes 75 and 76); its context is current. */
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int number) { return *device = number, 0; }
int cuDeviceGetName(char *name, int size, int device) { return strncpy(name, "idle", size), 0; }
int cuDeviceTotalMem_v2(size_t *size, int device) { return *size = 140ul << 30, 0; }
int cuDeviceGetAttribute(int *value, int kind, int device) {
    return *value = kind == 75 ? 9 : kind == 76 ? 0 : kind == 16 ? 132 : 32, 0;
}
int cuCtxGetCurrent(uint64_t *context) { return *context = 1, 0; }
int cuCtxGetDevice(int *device) { return *device = 0, 0; }
int cuDevicePrimaryCtxRetain(uint64_t *context, int device) { return *context = 1, 0; }
int cuPointerGetAttribute(int *value, int kind, uint64_t address) { return *value = 0, 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, uint64_t f, int threads, size_t shared) {
    return *count = 8, 0;
}
int cuModuleLoadData(uint64_t *module, const void *image) { return *module = next_handle(), 0; }
static uint64_t exchange; /* the kernel of clock_exchange.py */
int cuModuleGetFunction(uint64_t *function, uint64_t module, const char *name) {
    *function = next_handle();
    if (!strcmp(name, "exchange")) exchange = *function;
    return 0;
}

int cuStreamCreate(uint64_t *stream, unsigned flags) { return *stream = next_handle(), 0; }
int cuEventCreate(uint64_t *event, unsigned flags) { return *event = next_handle(), 0; }
int cuEventRecord(uint64_t event, uint64_t stream) {
    static long ns = -1;
    return take_time("IDLE_EVENT", &ns);
}
int cuStreamIsCapturing(uint64_t stream, int *status) {
    static long ns = -1;
    return *status = 0, take_time("IDLE_ASK", &ns);
}

/* What was allocated: slabs. They begin with how much is taken of them. */
static uint32_t *allocated[64];
static int allocations;

static uint32_t *slab(const void *address) {
    for (int n = 0; n < allocations; n++)
        if (allocated[n] == address) return allocated[n];
    return 0;
}

/* The arguments lie one behind the other, 8 bytes each; a slab is the third one. */
int cuLaunchKernelEx(const uint32_t *config, uint64_t function, char **parameters, void **extra) {
    static long ns = -1, chunks = -1;
    if (said("IDLE_CHUNKS", &chunks) && parameters[2] == parameters[0] + 16) {
        uint32_t *taken = slab(*(void **)parameters[2]);
        if (taken) __atomic_add_fetch(taken, config[0] * chunks, __ATOMIC_RELAXED);
    }
    return take_time("IDLE_LAUNCH", &ns);
}
/* That kernel, on a thread: it answers each question, a number, with the time, and then reads the
   host's clock, with the time before and behind. */
static volatile uint64_t *cell;
static uint64_t questions, readings;
static void *answer(void *nothing) {
    for (uint64_t number = 1; number <= questions; number++) {
        while (cell[0] != number) {}
        cell[16] = now() << 2 | (number & 3);
    }
    for (volatile uint64_t *found = cell + 48, *end = found + 3 * readings; found < end; found += 3)
        do found[0] = now(), found[1] = cell[32], found[2] = now();
        while (!found[1]);
    cell[16] = 0;
    return nothing;
}
int cuLaunchKernel(uint64_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, uint64_t stream, void **parameters, void **extra) {
    pthread_t thread;
    if (function != exchange) return 0;
    cell = *(volatile uint64_t **)parameters[0];
    questions = *(uint64_t *)parameters[1];
    readings = *(uint64_t *)parameters[3];
    return pthread_create(&thread, 0, answer, 0) || pthread_detach(thread);
}
int cuStreamGetId(uint64_t stream, uint64_t *id) { return *id = stream, 0; }
int cuStreamQuery(uint64_t stream) { return 600; } /* the kernel above may run */

int cuMemAlloc_v2(void **address, size_t size) {
    static long ns = -1;
    *address = memory(size);
    if (allocations < 64) allocated[allocations++] = *address;
    return take_time("IDLE_ALLOCATION", &ns);
}
int cuMemFree_v2(void *address) {
    for (int n = 0; n < allocations; n++)
        if (allocated[n] == address) allocated[n] = allocated[--allocations];
    return 0;
}
int cuMemsetD8Async(void *address, unsigned char value, size_t size, uint64_t stream) {
    uint32_t *taken = slab(address);
    if (taken) *taken = 0;
    return 0;
}
int cuMemHostAlloc(void **address, size_t size, unsigned flags) { return *address = memory(size), 0; }
int cuMemAddressReserve(void **address, size_t size, size_t to, void *at, uint64_t flags) {
    return *address = memory(size), 0;
}
int cuMemAddressFree(void *address, size_t size) { return munmap(address, size); }
int cuMemsetD32Async(uint32_t *address, unsigned value, size_t count, uint64_t stream) {
    while (count--) address[count] = value;
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *host, const void *address, size_t size, uint64_t stream) {
    return memcpy(host, address, size), 0;
}
typedef struct { /* CUDA_MEMCPY2D */
    size_t from_x, from_y, from_kind;
    char *from_host, *from_device;
    void *from_array;
    size_t from_pitch, to_x, to_y, to_kind;
    char *to_host, *to_device;
    void *to_array;
    size_t to_pitch, width, height;
} Rows;
int cuMemcpy2DAsync_v2(const Rows *rows, uint64_t stream) {
    for (size_t n = 0; n < rows->height; n++)
        memcpy(rows->to_host + n * rows->to_pitch, rows->from_device + n * rows->from_pitch, rows->width);
    return 0;
}

/* What Proton calls by ctypes and is nothing here. */
int cuEventSynchronize(void) { return 0; }
int cuEventQuery(void) { return 0; }
int cuEventElapsedTime(void) { return 0; }
int cuEventDestroy_v2(void) { return 0; }
int cuStreamSynchronize(void) { return 0; }

/* How cuda.bindings finds functions: whatever is not above is nothing. */
int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status) {
    char versioned[128];
    void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    *found = dlsym(self, versioned);
    if (!*found) *found = dlsym(self, name);
    if (!*found) *found = (void *)nothing;
    if (status) *status = 0;
    return 0;
}
int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, found, version, flags, 0);
}
