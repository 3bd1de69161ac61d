/* A program under test, as plumbline gate --exec runs it, once per case:
 *
 *   cc -o example example.c
 *   plumbline selftest --exec './example {ids_file} {text_file} {dir}'
 *
 * An engine would run where smoke() is called; as it stands, it answers the two
 * fakes of plumbline selftest, which test the way and not the engine. */
#include "plumbline_dump.h"
#include <stdlib.h>

static int smoke(const char *dir, const char *prompt, const int32_t *ids, uint64_t n) {
    float rows[2][5];
    char path[4096];
    uint64_t i;
    int err, wrong = ids[0] == 5; /* 5,4,3,2,1: every value is one more than it should be */
    if (n != 5) {
        fprintf(stderr, "only the fakes are answered\n");
        return 77; /* unsupported; the last line says why */
    }
    for (i = 0; i < n; i++) {
        rows[0][i] = (float)(ids[i] + wrong);
        rows[1][i] = (float)(-ids[i] + wrong);
    }
    snprintf(path, sizeof path, "%s/engine.json", dir);
    err = plumbline_engine(path, "name", "example.c", "layers", "f32", "logits", "f32", (char *)NULL);
    snprintf(path, sizeof path, "%s/case.layers.bin", dir);
    if (!err) err = plumbline_f32_layers(path, prompt, 2, n, rows[0]);
    snprintf(path, sizeof path, "%s/case.logits.bin", dir);
    if (!err) err = plumbline_logits(path, 1, n, rows[0]);
    if (err) fprintf(stderr, "%s: %s\n", path, strerror(err));
    return err ? 1 : 0;
}

int main(int argc, char **argv) {
    static char prompt[1 << 20];
    int32_t ids[4096];
    uint64_t n = 0;
    FILE *f;
    if (argc != 4 || !(f = fopen(argv[1], "r"))) return 2;
    while (n < 4096 && fscanf(f, "%d", &ids[n]) == 1) n++;
    fclose(f);
    if (!(f = fopen(argv[2], "r"))) return 2;
    prompt[fread(prompt, 1, sizeof prompt - 1, f)] = 0;
    fclose(f);
    return smoke(argv[3], prompt, ids, n);
}
