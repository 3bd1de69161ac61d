/* plumbline_dump.h: the dumps that Plumbline compares, written by an inference engine.
 * One header, C99 or C++, POSIX; include it before the system's headers.
 *   float rows[LAYERS + 1][HIDDEN];  row 0: the last prompt token's embedding,
 *                                    row i: the residual stream after layer i-1
 *   err = plumbline_f32_layers("out/a.layers.bin", prompt, LAYERS + 1, HIDDEN, rows[0]);
 * A dump folder has one engine.json, and per case NAME.json (write it last) with
 * NAME.layers.bin, NAME.logits.bin and NAME.probes.safetensors, each optional. Every
 * function returns 0 or an errno, EINVAL for what Plumbline would refuse. A file appears whole or not at all,
 * whatever other threads write; one that exists is never overwritten (EEXIST). Texts must be UTF-8 (unchecked); prompts are templated. */
#ifndef PLUMBLINE_DUMP_H
#define PLUMBLINE_DUMP_H
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct { FILE *f; const char *path; char tmp[4096]; int err; } plumbline_file;

/* Begins nothing where ok is 0. Another writer's temporary name is left alone. */
static inline void plumbline_begin(plumbline_file *w, const char *path, int ok) {
    const char *slash = strrchr(path, '/'); int fd = -1, n, dir = slash ? (int)(slash + 1 - path) : 0;
    memset(w, 0, sizeof *w); w->path = path; w->err = ok ? 0 : EINVAL;
    for (n = 0; !w->err && fd < 0; n++) {
        if (snprintf(w->tmp, 4096, "%.*s.%s.tmp-%ld-%d", dir, path, path + dir, (long)getpid(), n) > 4095) w->err = ENAMETOOLONG;
        else if ((fd = open(w->tmp, O_WRONLY | O_CREAT | O_EXCL, 0666)) < 0 && errno != EEXIST) w->err = errno;
    }
    if (fd >= 0 && !(w->f = fdopen(fd, "wb"))) { w->err = errno; close(fd); unlink(w->tmp); }
}
static inline int plumbline_end(plumbline_file *w) {
    if (!w->f) return w->err;
    if (!w->err && (fflush(w->f) || fsync(fileno(w->f)))) w->err = errno;
    if (fclose(w->f) && !w->err) w->err = errno;
    if (!w->err && link(w->tmp, w->path)) w->err = errno; /* fails on an existing name */
    if (unlink(w->tmp) && !w->err) w->err = errno;
    return w->err;
}
/* The n low bytes of v, little-endian on any machine. */
static inline void plumbline_put(plumbline_file *w, uint64_t v, int n) {
    for (; n > 0 && !w->err; n--, v >>= 8) if (putc((int)(v & 0xFF), w->f) == EOF) w->err = errno;
}
static inline void plumbline_put4(plumbline_file *w, const void *v, uint64_t n) {
    const char *p = (const char *)v; uint32_t u; for (; n > 0 && !w->err; n--, p += 4) { memcpy(&u, p, 4); plumbline_put(w, u, 4); }
}
static inline void plumbline_text(plumbline_file *w, const char *s) { while (*s) plumbline_put(w, (unsigned char)*s++, 1); }
static inline void plumbline_json(plumbline_file *w, const char *before, const char *s) {
    char hex[8]; for (plumbline_text(w, before), plumbline_text(w, "\""); *s; s++) {
        if (*s == '"' || *s == '\\') plumbline_put(w, '\\', 1);
        snprintf(hex, sizeof hex, "\\u%04x", (unsigned)*s & 0xFF);
        if ((unsigned char)*s < 0x20) plumbline_text(w, hex); else plumbline_put(w, (unsigned char)*s, 1);
    }
    plumbline_text(w, "\"");
}
static inline void plumbline_ids(plumbline_file *w, const char *before, const int32_t *ids, size_t n) {
    char s[16] = ""; for (plumbline_text(w, before); n > 0 && !w->err; n--, ids++, plumbline_text(w, s))
        if (snprintf(s, sizeof s, "%s%ld", *s ? "," : "", (long)*ids), *ids < 0) w->err = EINVAL;
    plumbline_text(w, "]");
}
/* At least one value, and a size of 4 bytes each, with scales, that no int64 overflows at. */
static inline int plumbline_fits(uint64_t rows, uint64_t width) { return rows && width && rows <= (UINT64_C(1) << 58) / width; }
/* The head of a layer dump; the fingerprint is the FNV-1a 64 of the prompt. */
static inline void plumbline_layers(plumbline_file *w, const char *path, const char *prompt, uint64_t rows, uint64_t width) {
    uint64_t h; for (h = UINT64_C(0xCBF29CE484222325); *prompt; prompt++) h = (h ^ (unsigned char)*prompt) * UINT64_C(0x100000001B3);
    plumbline_begin(w, path, plumbline_fits(rows, width));
    plumbline_put(w, rows, 8); plumbline_put(w, width, 8); plumbline_put(w, h, 8); plumbline_put(w, 1, 8); /* token by token, KV cache */
}
static inline int plumbline_f32_layers(const char *path, const char *prompt, uint64_t rows, uint64_t width, const float *values) {
    plumbline_file w; plumbline_layers(&w, path, prompt, rows, width);
    plumbline_put4(&w, values, rows * width); return plumbline_end(&w);
}
/* m * 2^e is positive, normal and finite in a double, times 128 too. */
static inline int plumbline_scale(int64_t m, int64_t e) {
    double d; for (d = (double)m; d >= 2; d /= 2) e += e < 1100;
    return m > 0 && e >= -1022 && e <= 1016;
}
/* The value of a code of row r is code * m[r] * 2^e[r]. */
static inline int plumbline_int8_layers(const char *path, const char *prompt, uint64_t rows, uint64_t width,
                                        const int64_t *m, const int64_t *e, const int8_t *codes) {
    plumbline_file w; uint64_t c;
    for (plumbline_layers(&w, path, prompt, rows, width); rows > 0 && !w.err; rows--, m++, e++) {
        if (!plumbline_scale(*m, *e)) w.err = EINVAL;
        plumbline_put(&w, (uint64_t)*m, 8); plumbline_put(&w, (uint64_t)*e, 8);
        for (c = 0; c < width && !w.err; c++) plumbline_put(&w, (uint8_t)*codes++, 1);
    }
    return plumbline_end(&w);
}
/* Row i holds the logits that chose output token i, float or int32_t; no row, no vocab. */
static inline int plumbline_logits(const char *path, uint64_t rows, uint64_t vocab, const void *values) {
    plumbline_file w; plumbline_begin(&w, path, (!rows && !vocab) || plumbline_fits(rows, vocab));
    plumbline_put(&w, rows, 8); plumbline_put(&w, vocab, 8);
    plumbline_put4(&w, values, rows * vocab); return plumbline_end(&w);
}
/* Probes of shape [positions, width], at least one, each name once, as in Plumbline's
 * documentation: at most 60 bytes, without quotes, backslashes and control characters. */
typedef struct { const char *name; uint64_t positions, width; const float *values; } plumbline_probe;
static inline int plumbline_probes_fit(const plumbline_probe *p, size_t n) {
    uint64_t bytes = 0; size_t i, j; const char *c; for (i = 0; i < n; i++) {
        for (c = p[i].name; (unsigned char)*c >= 0x20 && *c != '"' && *c != '\\';) c++;
        for (j = 0; j < i && strcmp(p[i].name, p[j].name); j++) {}
        if (*c || c - p[i].name > 60 || j < i || !strcmp(p[i].name, "__metadata__")) return 0;
        if (!plumbline_fits(p[i].positions, p[i].width) || (bytes += 4 * p[i].positions * p[i].width) >> 60) return 0;
    }
    return n > 0 && n <= 500000; /* a header has at most 100 MB */
}
static inline int plumbline_probes(const char *path, const plumbline_probe *p, size_t n) {
    plumbline_file w; uint64_t len = 0, at; char s[200]; size_t i, pass;
    for (plumbline_begin(&w, path, plumbline_probes_fit(p, n)), pass = 0; pass < 2 && !w.err; pass++) { /* measure the header, then write it */
        for (len = 1, at = 0, i = 0; i < n; i++, len += strlen(s)) {
            unsigned long long rows = p[i].positions, width = p[i].width, from = at, to = at += 4 * rows * width;
            snprintf(s, sizeof s, "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%llu,%llu],\"data_offsets\":[%llu,%llu]}",
                     i ? ',' : '{', p[i].name, rows, width, from, to);
            if (pass) plumbline_text(&w, s);
        }
        if (!pass) plumbline_put(&w, (len + 7) / 8 * 8, 8);
    }
    for (plumbline_text(&w, "}"); len % 8; len++) plumbline_put(&w, ' ', 1);
    for (i = 0; i < n && !w.err; i++) plumbline_put4(&w, p[i].values, p[i].positions * p[i].width);
    return plumbline_end(&w);
}
/* NAME.json. There is an id at least; output_ids and decoded may be NULL: not told. */
static inline int plumbline_case(const char *path, const char *prompt, const int32_t *ids, size_t n,
                                 const int32_t *output_ids, size_t n_output, const char *decoded) {
    plumbline_file w; plumbline_begin(&w, path, n > 0);
    plumbline_json(&w, "{\"text\":", prompt); plumbline_ids(&w, ",\"token_ids\":[", ids, n);
    if (output_ids) plumbline_ids(&w, ",\"output_ids\":[", output_ids, n_output);
    if (decoded) plumbline_json(&w, ",\"decoded\":", decoded);
    plumbline_text(&w, "}\n"); return plumbline_end(&w);
}
/* engine.json: pairs of strings up to (char *)NULL, each key once: "name", "layers" ("f32" or
 * "int8-scaled"), "logits" ("f32" or "i32"), "version", "weights", "kv_cache", …; 32 at most. */
static inline int plumbline_engine(const char *path, const char *key, ...) {
    const char *kv[64], *s = key, *k, *v;
    int n = 0, i, j, ok = 1, named = 0; plumbline_file w; va_list more;
    for (va_start(more, key); s && n < 64; s = va_arg(more, const char *)) kv[n++] = s;
    for (va_end(more), i = 0; i + 1 < n; i += 2) {
        for (k = kv[i], v = kv[i + 1], j = 0; j < i; j += 2) ok = ok && strcmp(k, kv[j]);
        if (!strcmp(k, "name")) named = v[strspn(v, " \t\n\v\f\r")] != 0;
        if ((j = !strcmp(k, "layers")) || !strcmp(k, "logits")) ok = ok && (!strcmp(v, "f32") || !strcmp(v, j ? "int8-scaled" : "i32"));
    }
    plumbline_begin(&w, path, ok && named && !s && n % 2 == 0);
    for (i = 0; i < n && !w.err; i++) plumbline_json(&w, i % 2 ? ":" : i ? "," : "{", kv[i]);
    plumbline_text(&w, "}\n"); return plumbline_end(&w);
}
#endif
