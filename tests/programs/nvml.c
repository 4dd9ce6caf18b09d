/* Plays the NVIDIA management library: two GPUs, of which the second does not answer. */
#include <string.h>

typedef struct {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
} process_t;

int nvmlInit_v2(void) { return INIT; }

int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle)
{
    *handle = (void *)0x7f0011223344; /* wider than 32 bits, as a real one is */
    return index == 1 ? 15 : 0;       /* NVML_ERROR_GPU_IS_LOST */
}

int nvmlDeviceGetName(void *handle, char *name, unsigned length)
{
    if (handle != (void *)0x7f0011223344) return 2;
    strncpy(name, "NVIDIA H200", length);
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_t *found)
{
    if (handle != (void *)0x7f0011223344 || *count < 2) return 7;
    found[0] = (process_t){4711, 140000000000ull, 0xffffffff, 0xffffffff};
    found[1] = (process_t){4712, ~0ull, 0xffffffff, 0xffffffff};
    *count = 2;
    return 0;
}
