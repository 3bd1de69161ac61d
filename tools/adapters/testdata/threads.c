/* Threads write the same path, 100 paths one after the other, into the folder
 * argv[1]. Exits with 1 unless one thread wrote each, and the others got EEXIST. */
#include "plumbline_dump.h"
#include <pthread.h>

static char path[4096];
static float values[20000];
static pthread_barrier_t start;

static void *run(void *result) {
    pthread_barrier_wait(&start);
    *(int *)result = plumbline_logits(path, 2, 10000, values);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[8];
    int results[8], i, j, written, taken;
    if (argc != 2 || pthread_barrier_init(&start, NULL, 8)) return 2;
    for (i = 0; i < 100; i++) {
        snprintf(path, sizeof path, "%s/%d.bin", argv[1], i);
        for (j = 0; j < 8; j++) if (pthread_create(&threads[j], NULL, run, &results[j])) return 2;
        for (written = taken = j = 0; j < 8; j++) {
            pthread_join(threads[j], NULL);
            written += results[j] == 0;
            taken += results[j] == EEXIST;
        }
        if (written != 1 || taken != 7) {
            fprintf(stderr, "round %d: %d wrote it, %d found it taken\n", i, written, taken);
            return 1;
        }
    }
    return 0;
}
