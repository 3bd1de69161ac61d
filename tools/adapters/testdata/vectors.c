/* Writes the files of the test's table into the folder argv[1], and prints the
 * errno of each call. */
#include "plumbline_dump.h"

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
    char path[8][4096];
    const char *names[8] = {"a.layers.bin", "int8.bin", "f32.bin", "a.logits.bin",
                            "none.bin", "a.probes.safetensors", "a.json", "engine.json"};
    int i;
    if (argc != 2) return 2;
    for (i = 0; i < 8; i++) snprintf(path[i], sizeof path[i], "%s/%s", argv[1], names[i]);
    printf("%d\n", plumbline_f32_layers(path[0], "foobar", 2, 3, layers));
    printf("%d\n", plumbline_int8_layers(path[1], "foobar", 2, 3, m, e, codes));
    printf("%d\n", plumbline_logits(path[2], 1, 3, logits));
    printf("%d\n", plumbline_logits(path[3], 2, 2, integers));
    printf("%d\n", plumbline_logits(path[4], 0, 0, NULL));
    printf("%d\n", plumbline_probes(path[5], probes, 2));
    printf("%d\n", plumbline_case(path[6], "foobar", ids, 3, out, 2, "a \"b\" \\c\n\t\x01 \xc3\xbc \xf0\x9f\x98\x80"));
    printf("%d\n", plumbline_engine(path[7], "name", "my engine", "layers", "f32", "logits", "i32", "kv_cache", "int8", (char *)NULL));
    /* What is no dump leaves none. */
    printf("%d\n", plumbline_f32_layers("bad.bin", "foobar", 0, 3, layers) == EINVAL);
    printf("%d\n", plumbline_int8_layers("bad.bin", "foobar", 2, 3, bad, e, codes) == EINVAL);
    printf("%d\n", plumbline_logits("bad.bin", 1, 0, logits) == EINVAL);
    printf("%d\n", plumbline_logits("no such folder/bad.bin", 1, 3, logits) == ENOENT);
    return 0;
}
