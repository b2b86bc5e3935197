// SPDX-License-Identifier: Apache-2.0
// A libamdhip64.so without a GPU: it notes the calls, checks what HIP checks, fails where it is told to, and hands a launch
// with the memory registered at that moment to a callback. Without libc, so that it links with lld alone.
typedef unsigned long size_t;
typedef int (*launch_t)(const char *kernel, const void *image, const unsigned *dims, const void *kernarg, size_t kernarg_size,
                        void *const *addresses, const size_t *sizes, unsigned count, unsigned lds);

char fake_log[1 << 16];
char fake_failing[64]; // the call that fails, "" for none
char fake_device[64] = "Made-up MI300X";
size_t fake_shift; // added to every device address
static size_t logged;
static launch_t run;
static void *addresses[64];
static size_t sizes[64];
static unsigned registered;
static const void *image;
static char wanted[256];
static int failed; // the last launch; HIP tells when waiting for it

enum { SUCCESS, INVALID_VALUE = 1, LAUNCH_FAILURE = 719, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713, TOLD_TO = 999 };

static void note(char letter) {
    if (logged < sizeof fake_log - 1) // what does not fit is not noted
        fake_log[logged++] = letter;
}

static int enter(const char *name) {
    int same = 1;
    for (size_t i = 0;; i++) {
        same &= name[i] == fake_failing[i];
        if (!name[i])
            break;
        note(name[i]);
    }
    note('\n');
    return same ? TOLD_TO : SUCCESS;
}

#define ENTER if (enter(__func__)) return TOLD_TO

void fake_reset(launch_t callback) {
    run = callback;
    logged = registered = fake_shift = fake_failing[0] = failed = 0;
    for (size_t i = 0; i < sizeof fake_log; i++)
        fake_log[i] = 0;
}

unsigned fake_registered(void) { return registered; }

const char *hipGetErrorString(int error) {
    return error == TOLD_TO ? "made-up failure" : error == LAUNCH_FAILURE ? "unspecified launch failure" : "invalid argument";
}

int hipSetDevice(int device) { ENTER; return device ? INVALID_VALUE : SUCCESS; }

int hipDeviceGetName(char *name, int space, int device) {
    ENTER;
    for (int i = 0; i < space && (i == 0 || fake_device[i - 1]); i++)
        name[i] = fake_device[i];
    return device ? INVALID_VALUE : SUCCESS;
}

int hipRuntimeGetVersion(int *version) { ENTER; *version = 60443483; return SUCCESS; }

int hipHostRegister(void *address, size_t size, unsigned flags) {
    ENTER;
    if (!address || !size || flags != 2 || registered == 64)
        return INVALID_VALUE;
    for (unsigned i = 0; i < registered; i++)
        if ((char *)address < (char *)addresses[i] + sizes[i] && (char *)addresses[i] < (char *)address + size)
            return ALREADY_REGISTERED;
    addresses[registered] = address;
    sizes[registered++] = size;
    return SUCCESS;
}

int hipHostGetDevicePointer(void **device, void *host, unsigned flags) {
    ENTER;
    *device = (char *)host + fake_shift;
    return flags ? INVALID_VALUE : SUCCESS;
}

int hipHostUnregister(void *address) {
    ENTER;
    for (unsigned i = 0; i < registered; i++)
        if (addresses[i] == address) {
            addresses[i] = addresses[--registered];
            sizes[i] = sizes[registered];
            return SUCCESS;
        }
    return NOT_REGISTERED;
}

int hipModuleLoadData(void **module, const void *given) {
    ENTER;
    image = given;
    *module = &image;
    return SUCCESS;
}

int hipModuleGetFunction(void **function, void *module, const char *name) {
    ENTER;
    for (size_t i = 0; i < sizeof wanted && (i == 0 || name[i - 1]); i++)
        wanted[i] = name[i];
    *function = wanted;
    return module == &image ? SUCCESS : INVALID_VALUE;
}

int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned lds,
                          void *stream, void **parameters, void **extra) {
    ENTER;
    if (function != wanted || stream || parameters || !extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3)
        return INVALID_VALUE;
    const unsigned dims[] = {gx, gy, gz, bx, by, bz};
    failed = run(wanted, image, dims, extra[1], *(size_t *)extra[3], addresses, sizes, registered, lds);
    return SUCCESS;
}

int hipDeviceSynchronize(void) { ENTER; return failed ? LAUNCH_FAILURE : SUCCESS; }

int hipModuleUnload(void *module) { ENTER; return module == &image ? SUCCESS : INVALID_VALUE; }
