/* A stand-in for the CUDA driver that computes nothing: what is left of a launch is the host's own
   part (gpu_host.py). Memory is the host's, copies copy.

   Where a driver takes time an environment variable may say so, in ns: IDLE_LAUNCH, IDLE_ASK (is
   the stream capturing?), IDLE_EVENT, IDLE_ALLOCATION, IDLE_PINNED (a MiB of pinned memory). As in
   a driver, launches and allocations of a process wait for each other.

   What is queued takes time on its stream, in order, if these say so: IDLE_KERNEL, ns of a kernel
   for each 1056 programs (eight on each of 132 SMs), and IDLE_COPY, ns of a copy or a fill beside
   what its bytes take at 25 bytes a ns. Events and streams are over when that time has come.

   Where a kernel of one argument is launched with a slab, each warp takes a chunk of IDLE_CHUNK
   times 16 bytes there. Heads of chunks are written when the slab is copied. */
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

/* When all that was queued on a stream is over. */
typedef struct { uint64_t number, end; } Stream;
static Stream streams[64];
static pthread_mutex_t timeline = PTHREAD_MUTEX_INITIALIZER, context = PTHREAD_MUTEX_INITIALIZER;

static Stream *stream_of(uint64_t number) { /* under `timeline` */
    int n = 0;
    while (n < 63 && streams[n].number != number && streams[n].end) n++;
    streams[n].number = number;
    return streams + n;
}
static uint64_t queue(uint64_t number, uint64_t ns) {
    pthread_mutex_lock(&timeline);
    Stream *stream = stream_of(number);
    uint64_t begin = now();
    if (stream->end > begin) begin = stream->end;
    uint64_t end = stream->end = begin + ns;
    pthread_mutex_unlock(&timeline);
    return end;
}
static int wait_until(uint64_t end) {
    for (uint64_t t; (t = now()) < end;)
        if (end - t > 100000) nanosleep(&(struct timespec){0, end - t - 50000}, 0);
    return 0;
}
static uint64_t transfer(size_t bytes) {
    static long ns = -1;
    return said("IDLE_COPY", &ns) ? ns + bytes / 25 : 0;
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
int cuEventCreate(uint64_t **event, unsigned flags) { return !(*event = calloc(1, 8)); }
int cuEventDestroy_v2(uint64_t *event) { return free(event), 0; }
int cuEventRecord(uint64_t *event, uint64_t stream) {
    static long ns = -1;
    *event = queue(stream, 0);
    return take_time("IDLE_EVENT", &ns);
}
int cuEventQuery(uint64_t *event) { return now() < *event ? 600 : 0; }
int cuEventSynchronize(uint64_t *event) { return wait_until(*event); }
int cuStreamSynchronize(uint64_t stream) { return wait_until(queue(stream, 0)); }
int cuCtxSynchronize(void) {
    for (int n = 0; n < 64; n++) wait_until(streams[n].end);
    return 0;
}
int cuStreamIsCapturing(uint64_t stream, int *status) {
    static long ns = -1;
    return *status = 0, take_time("IDLE_ASK", &ns);
}

/* Slabs begin with how much is taken of them, and how much there is, both by 16 bytes: whoever sets
   the latter word makes one. */
typedef struct { uint32_t first, count, units, launch; } Taken; /* chunks of a launch */
typedef struct { uint32_t *memory; size_t size; Taken *taken; int launches; } Slab;
typedef struct { char *memory; size_t size; } Piece; /* what was allocated */
enum { MOST_SLABS = 1024, MOST_PIECES = 64, MOST_TAKEN = 1 << 16 };
static Slab slabs[MOST_SLABS];
static Piece pieces[MOST_PIECES];
static int slab_count, piece_count;

static Slab *slab(const void *address) { /* under `timeline` */
    for (int n = 0; n < slab_count; n++)
        if ((char *)address >= (char *)slabs[n].memory &&
            (char *)address < (char *)slabs[n].memory + slabs[n].size) return slabs + n;
    return 0;
}

static long chunk(void) {
    static long size = -1;
    return said("IDLE_CHUNK", &size);
}

static void take(void *address, uint32_t programs, uint32_t units, uint32_t launch) {
    pthread_mutex_lock(&timeline);
    Slab *of = slab(address);
    if (of && !of->taken) of->taken = memory(MOST_TAKEN * sizeof(Taken));
    if (of && of->launches < MOST_TAKEN) {
        of->taken[of->launches++] = (Taken){of->memory[0], programs * units, units, launch};
        of->memory[0] += programs * units * chunk();
    }
    pthread_mutex_unlock(&timeline);
}

/* The heads of the chunks in `size` bytes from an address on, in a copy of them. Launches go on: what
   is noted of those before stays as it is. */
static void write_heads(char *copy, const char *address, size_t size) {
    pthread_mutex_lock(&timeline);
    Slab *found = slab(address), of = found ? *found : (Slab){0};
    pthread_mutex_unlock(&timeline);
    for (int n = 0; n < of.launches; n++) {
        Taken taken = of.taken[n];
        for (uint32_t k = 0; k < taken.count; k++) {
            uint64_t first = taken.first + (uint64_t)k * chunk();
            if (first + chunk() > of.memory[1]) break;
            uint32_t head[8] = {k / taken.units, k % taken.units, 0, 0, taken.launch, 16 * chunk()};
            long place = (char *)of.memory + 16 + 16 * first - address;
            long begin = place < 0 ? -place : 0, end = (long)size - place < 32 ? size - place : 32;
            if (begin < end) memcpy(copy + place + begin, (char *)head + begin, end - begin);
        }
    }
}

/* The arguments lie one behind the other, 8 bytes each; a slab is the third one, and the number of
   the launch the fourth. */
int cuLaunchKernelEx(const uint32_t *config, uint64_t function, char **parameters, void **extra) {
    static long ns = -1, kernel = -1;
    uint64_t stream;
    memcpy(&stream, config + 8, 8);
    pthread_mutex_lock(&context);
    take_time("IDLE_LAUNCH", &ns);
    if (chunk() && parameters[2] == parameters[0] + 16)
        take(*(void **)parameters[2], config[0], config[3] / 32, *(uint32_t *)parameters[3]);
    if (said("IDLE_KERNEL", &kernel)) queue(stream, kernel * ((config[0] + 1055) / 1056));
    pthread_mutex_unlock(&context);
    return 0;
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
    pthread_mutex_lock(&context);
    pthread_mutex_lock(&timeline);
    if (piece_count < MOST_PIECES) pieces[piece_count++] = (Piece){*address, size};
    pthread_mutex_unlock(&timeline);
    take_time("IDLE_ALLOCATION", &ns);
    pthread_mutex_unlock(&context);
    return 0;
}
int cuMemFree_v2(char *address) {
    pthread_mutex_lock(&timeline);
    int n = 0;
    while (n < piece_count && pieces[n].memory != address) n++;
    if (n < piece_count) {
        for (int k = slab_count; k--;)
            if ((char *)slabs[k].memory - address < pieces[n].size) {
                if (slabs[k].taken) munmap(slabs[k].taken, MOST_TAKEN * sizeof(Taken));
                slabs[k] = slabs[--slab_count];
            }
        munmap(address, pieces[n].size);
        pieces[n] = pieces[--piece_count];
    }
    pthread_mutex_unlock(&timeline);
    return 0;
}
int cuMemsetD8Async(uint32_t *address, unsigned char value, size_t size, uint64_t stream) {
    Slab *of = slab(address);
    if (of && of->memory == address) of->memory[0] = of->launches = 0;
    queue(stream, transfer(0));
    return 0;
}
int cuMemsetD2D8Async(void *address, size_t pitch, unsigned char value, size_t width, size_t height,
                      uint64_t stream) {
    queue(stream, transfer(0));
    return 0;
}
int cuMemHostAlloc(void **address, size_t size, unsigned flags) {
    static long ns = -1;
    *address = memory(size);
    pthread_mutex_lock(&context);
    for (size_t n = 0; n < size >> 20; n++) take_time("IDLE_PINNED", &ns);
    pthread_mutex_unlock(&context);
    return 0;
}
int cuMemAddressReserve(void **address, size_t size, size_t to, void *at, uint64_t flags) {
    return *address = memory(size), 0;
}
int cuMemAddressFree(void *address, size_t size) { return munmap(address, size); }
int cuMemsetD32Async(uint32_t *address, unsigned value, size_t count, uint64_t stream) {
    pthread_mutex_lock(&timeline);
    if (count == 1 && !slab(address) && slab_count < MOST_SLABS)
        slabs[slab_count++] = (Slab){address - 1, 16 + 16ul * value};
    pthread_mutex_unlock(&timeline);
    while (count--) address[count] = value;
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *host, const void *address, size_t size, uint64_t stream) {
    memcpy(host, address, size);
    write_heads(host, address, size);
    queue(stream, transfer(size));
    return 0;
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
    queue(stream, transfer(rows->width * rows->height));
    return 0;
}

/* What Proton calls by ctypes and is nothing here. */
int cuEventElapsedTime(void) { return 0; }

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
