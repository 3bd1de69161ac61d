/* Writes the files of the test's table into the folder argv[1], and prints the
 * errno of each call. */
#include "plumbline_dump.h"

#define REFUSED(call) printf("%d\n", (call) == EINVAL)
#define END (char *)NULL

int main(int argc, char **argv) {
    const float layers[6] = {1.0f, -2.5f, 3.0f, 0.1f, 65504.0f, -0.0f};
    const int64_t m[2] = {1073741825, 2147483647}, e[2] = {-38, 4};
    const int8_t codes[6] = {1, -2, -128, 127, 0, -1};
    const float logits[3] = {0.5f, 7.0f, -1.0f};
    const int32_t integers[4] = {5, -7, 2147483647, -2147483647 - 1};
    const float embed[2] = {1.0f, 2.0f}, resid[2] = {-1.0f, 0.25f};
    const plumbline_probe probes[2] = {{"embed", 2, 1, embed}, {"blocks.0.resid_post", 1, 2, resid}};
    const int32_t ids[3] = {4, 5, 151645}, out[2] = {6, 0};
    const int64_t bad[2] = {1, 0};
    char path[8][4096], bad_path[4096];
    const char *names[8] = {"a.layers.bin", "int8.bin", "f32.bin", "a.logits.bin",
                            "none.bin", "a.probes.safetensors", "a.json", "engine.json"};
    int i;
    if (argc != 2) return 2;
    for (i = 0; i < 8; i++) snprintf(path[i], sizeof path[i], "%s/%s", argv[1], names[i]);
    snprintf(bad_path, sizeof bad_path, "%s/bad.bin", argv[1]);
    printf("%d\n", plumbline_f32_layers(path[0], "foobar", 2, 3, layers));
    printf("%d\n", plumbline_int8_layers(path[1], "foobar", 2, 3, m, e, codes));
    printf("%d\n", plumbline_logits(path[2], 1, 3, logits));
    printf("%d\n", plumbline_logits(path[3], 2, 2, integers));
    printf("%d\n", plumbline_logits(path[4], 0, 0, NULL));
    printf("%d\n", plumbline_probes(path[5], probes, 2));
    printf("%d\n", plumbline_case(path[6], "foobar", ids, 3, out, 2, "a \"b\" \\c\n\t\x01 \xc3\xbc \xf0\x9f\x98\x80"));
    printf("%d\n", plumbline_engine(path[7], "name", "my engine", "layers", "f32", "logits", "i32", "kv_cache", "int8", (char *)NULL));
    /* What is no dump leaves none. */
    printf("%d\n", plumbline_f32_layers(bad_path, "foobar", 0, 3, layers) == EINVAL);
    printf("%d\n", plumbline_int8_layers(bad_path, "foobar", 2, 3, bad, e, codes) == EINVAL);
    printf("%d\n", plumbline_logits(bad_path, 1, 0, logits) == EINVAL);
    printf("%d\n", plumbline_logits("no such folder/bad.bin", 1, 3, logits) == ENOENT);
    {
        const uint64_t huge = UINT64_C(1) << 62;
        const int64_t edge_e[2] = {-1022, 1016}, low[2] = {0, -1023}, high[2] = {0, 1017}, ones[2] = {1, 1};
        const int32_t negative[2] = {1, -1};
        const char *names[5] = {"a\"b", "a\\b", "a\nb", "__metadata__",
                                "0123456789012345678901234567890123456789012345678901234567890"};
        plumbline_probe p[2];
        REFUSED(plumbline_f32_layers(bad_path, "foobar", huge, 4, layers));
        REFUSED(plumbline_int8_layers(bad_path, "foobar", huge, 4, m, e, codes));
        REFUSED(plumbline_int8_layers(bad_path, "foobar", 2, 3, ones, low, codes));
        REFUSED(plumbline_int8_layers(bad_path, "foobar", 2, 3, ones, high, codes));
        REFUSED(plumbline_logits(bad_path, huge, 4, logits));
        REFUSED(plumbline_probes(bad_path, NULL, 0));
        for (i = 0; i < 5; i++) {
            p[0] = probes[0]; p[0].name = names[i];
            REFUSED(plumbline_probes(bad_path, p, 1));
        }
        p[0] = p[1] = probes[0];
        REFUSED(plumbline_probes(bad_path, p, 2)); /* a name twice */
        p[0].positions = 0; REFUSED(plumbline_probes(bad_path, p, 1));
        p[0].positions = huge; p[0].width = 4; REFUSED(plumbline_probes(bad_path, p, 1));
        p[0].width = 0; REFUSED(plumbline_probes(bad_path, p, 1));
        REFUSED(plumbline_case(bad_path, "foobar", ids, 0, NULL, 0, NULL));
        REFUSED(plumbline_case(bad_path, "foobar", negative, 2, NULL, 0, NULL));
        REFUSED(plumbline_case(bad_path, "foobar", ids, 3, negative, 2, NULL));
        REFUSED(plumbline_engine(bad_path, NULL));
        REFUSED(plumbline_engine(bad_path, "layers", "f32", END));
        REFUSED(plumbline_engine(bad_path, "name", " ", END));
        REFUSED(plumbline_engine(bad_path, "name", END));
        REFUSED(plumbline_engine(bad_path, "name", "a", "name", "b", END));
        REFUSED(plumbline_engine(bad_path, "name", "a", "layers", "f64", END));
        REFUSED(plumbline_engine(bad_path, "name", "a", "layers", "i32", END));
        REFUSED(plumbline_engine(bad_path, "name", "a", "logits", "int8-scaled", END));
        /* The edge of what may be: got as far as the name that is taken. */
        printf("%d\n", plumbline_int8_layers(path[1], "foobar", 2, 3, ones, edge_e, codes) != EINVAL);
        p[0] = probes[0]; p[0].name = names[4] + 1;
        printf("%d\n", plumbline_probes(path[5], p, 1) != EINVAL);
    }
    return 0;
}
