/* SPDX-License-Identifier: Apache-2.0 */
/* Names of code: a library compiled here, with debug information of several kinds, and names by hand. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/leb128.h"
#include "profile/profile.h"
#include "profile/sites.h"
#include "symbols/demangle.h"
#include "symbols/image.h"
#include "symbols/jit-map.h"
#include "symbols/mangled.h"
#include "symbols/name.h"
#include "symbols/tally.h"
#include "symbols/types.h"

static const char source[] = "extern int table[];\n"
                             "int table[1000];\n"
                             "static inline __attribute__((always_inline)) int inner(int i)\n"
                             "{\n"
                             "    return table[i] * 3;\n" /* line 5 */
                             "}\n"
                             "int outer(int n);\n"
                             "int outer(int n)\n"
                             "{\n"
                             "    return inner(n + 1);\n" /* line 10 */
                             "}\n";

static char folder[] = "/tmp/cachegram-symbols-XXXXXX";

static int setup(void **state)
{
    char name[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    snprintf(name, sizeof name, "%s/lib.c", folder);
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fputs(source, f);
    fclose(f);
    return 0;
}

static int teardown(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : -1;
}

/* Offset in its file of a function of the library. */
static uint64_t offset_of(const char *path, const char *function, uint64_t *size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *address = dlsym(library, function);
    assert_non_null(address);
    assert_true(dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0);
    *size = symbol->st_size;
    const char *base = info.dli_fbase;
    const ElfW(Ehdr) *header = (const void *)base;
    const ElfW(Phdr) *segments = (const void *)(base + header->e_phoff);
    uint64_t at = (uint64_t)((const char *)address - base), offset = 0;
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && at >= segments[i].p_vaddr &&
            at - segments[i].p_vaddr < segments[i].p_filesz)
            offset = at - segments[i].p_vaddr + segments[i].p_offset;
    assert_true(offset != 0);
    dlclose(library);
    return offset;
}

/* Whether some instruction of `outer` is line 5 of inner, inlined at line 10 of outer. */
static void check_inlined(const char *path)
{
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    uint64_t size, offset = offset_of(path, "outer", &size);
    struct symbols_image *image = symbols_image_open(path);
    int found = 0;
    assert_non_null(image);
    for (uint64_t i = 0; i < size; i++) {
        unsigned n = symbols_image_frames(image, offset + i, 1, frames);
        assert_in_range(n, 1, 2);
        assert_string_equal(frames[n - 1].function, "outer");
        if (n == 2) {
            assert_string_equal(frames[0].function, "inner");
            assert_int_equal(frames[1].line, 10);
            found |= frames[0].line == 5;
        }
        assert_true(strstr(frames[0].file, "lib.c") != NULL);
    }
    assert_true(found);
    symbols_image_close(image);
}

static void debug_information(void **state)
{
    static const char *const options[] = {"-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -gz"};
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char command[256], path[64];
        snprintf(path, sizeof path, "%s/lib%zu.so", folder, i);
        snprintf(command, sizeof command, "gcc -O2 -shared -fPIC %s -o %s %s/lib.c", options[i], path,
                 folder);
        assert_int_equal(system(command), 0);
        check_inlined(path);
    }
}

static void debug_file_of_its_own(void **state)
{
    char command[1024];
    (void)state;
    snprintf(
        command, sizeof command,
        "gcc -O2 -shared -fPIC -g -o %s/libown.so %s/lib.c && objcopy --only-keep-debug %s/libown.so "
        "%s/libown.debug && strip %s/libown.so && objcopy --add-gnu-debuglink=%s/libown.debug %s/libown.so",
        folder, folder, folder, folder, folder, folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/libown.so", folder);
    check_inlined(command);
}

static void without_debug_information(void **state)
{
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    char command[1024], path[64];
    uint64_t size;
    (void)state;
    snprintf(path, sizeof path, "%s/libbare.so", folder);
    snprintf(command, sizeof command, "gcc -O2 -shared -fPIC -o %s %s/lib.c", path, folder);
    assert_int_equal(system(command), 0);
    uint64_t offset = offset_of(path, "outer", &size);
    struct symbols_image *image = symbols_image_open(path);
    assert_int_equal(symbols_image_frames(image, offset + 1, 1, frames), 1);
    assert_string_equal(frames[0].function, "outer");
    assert_null(frames[0].file);
    assert_int_equal(symbols_image_frames(image, UINT64_C(1) << 40, 1, frames), 0); /* not in the file */
    symbols_image_close(image);

    /* Local functions without symbols: where they begin. */
    snprintf(
        command, sizeof command,
        "sed 's/^int outer/__attribute__((visibility(\"hidden\"))) int outer/' %s/lib.c > %s/hidden.c && "
        "gcc -O2 -shared -fPIC -o %s/libhidden.so %s/hidden.c && "
        "nm %s/libhidden.so | sed -n 's/^\\([0-9a-f]*\\) t outer$/\\1/p' > %s/where && strip %s/libhidden.so",
        folder, folder, folder, folder, folder, folder, folder);
    assert_int_equal(system(command), 0);
    unsigned long long where = 0;
    char expected[64];
    FILE *f = fopen("where", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llx", &where), 1);
    fclose(f);
    snprintf(path, sizeof path, "%s/libhidden.so", folder);
    image = symbols_image_open(path);
    /* The first segments of libraries that ld makes are at their offsets. */
    assert_int_equal(symbols_image_frames(image, where + 1, 1, frames), 1);
    snprintf(expected, sizeof expected, "libhidden.so+0x%llx", where);
    assert_string_equal(frames[0].function, expected);
    symbols_image_close(image);

    /* In assembly language, without an unwind table: the page. */
    assert_int_equal(system("printf '.hidden f\\n.globl f\\nf: nop\\n.zero 4096\\nret\\n' | "
                            "gcc -shared -nostdlib -o libasm.so -x assembler - && "
                            "nm libasm.so | sed -n 's/ t f$//p' > where && strip libasm.so"),
                     0);
    f = fopen("where", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%llx", &where), 1);
    fclose(f);
    snprintf(path, sizeof path, "%s/libasm.so", folder);
    image = symbols_image_open(path);
    assert_int_equal(symbols_image_frames(image, where, 1, frames), 1);
    snprintf(expected, sizeof expected, "libasm.so+0x%llxxxx", where >> 12);
    assert_string_equal(frames[0].function, expected);
    assert_int_equal(symbols_image_frames(image, where + 4096, 1, frames), 1);
    assert_string_not_equal(frames[0].function, expected);
    symbols_image_close(image);
}

/* Entries of a procedure linkage table: of the functions that they jump to. */
static void linkage_table(void **state)
{
    static const char *const options[] = {"", "-fcf-protection -Wl,-z,ibtplt"};
    static const char *const names[] = {"g@plt", "__cxa_finalize@plt"}; /* the latter one in .plt.got */
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    char command[512], path[64];
    (void)state;
    snprintf(path, sizeof path, "%s/libplt.so", folder);
    for (size_t i = 0; i < 4; i++) {
        unsigned long long where = 0;
        snprintf(command, sizeof command,
                 "echo 'int f(int), g(int), h(int); int all(int i) { return f(i) + g(i) + h(i); }' | "
                 "gcc -O2 -shared -fPIC %s -x c - -o libplt.so && strip libplt.so && "
                 "objdump -d libplt.so | sed -n 's/^\\([0-9a-f]*\\) <%s>:/\\1/p' > where",
                 options[i / 2], names[i % 2]);
        assert_int_equal(system(command), 0);
        FILE *f = fopen("where", "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%llx", &where), 1);
        fclose(f);
        struct symbols_image *image = symbols_image_open(path);
        assert_int_equal(symbols_image_frames(image, where, 1, frames), 1);
        assert_string_equal(frames[0].function, names[i % 2]);
        symbols_image_close(image);
    }
}

static void files_that_are_none(void **state)
{
    (void)state;
    assert_null(symbols_image_open(""));
    assert_null(symbols_image_open("[heap]"));
    assert_null(symbols_image_open("/nonexistent (deleted)"));
    assert_null(symbols_image_open("/etc/passwd"));
    assert_null(symbols_image_open("/dev/null"));
    char folder[] = "/tmp/cachegram-symbols-XXXXXX", pipe[64];
    assert_non_null(mkdtemp(folder));
    snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_null(symbols_image_open(pipe)); /* it does not wait for a writer */
    unlink(pipe);
    rmdir(folder);
}

static void names(void **state)
{
    static const char *const pairs[][2] = {
        {"main", "main"},
        {"_ZN4grid6SolverIdE11sum_columnsEi", "grid::Solver<double>::sum_columns"},
        {"_Z4walkIiEvRKT_", "walk<int>"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"},
        {"_ZN3FooclEi", "Foo::operator()"},
        {"_ZNK3FooltERKS_", "Foo::operator<"},
        {"_ZN12_GLOBAL__N_14walkEi", "(anonymous namespace)::walk"},
        {"_ZN3FoocvmEv", "Foo::operator unsigned long"},
        {"_ZN2ns1VaSIiEERS0_RKT_", "ns::V::operator=<int>"},
        {"_ZN2nslsIiEERNS_1VES2_RKT_", "ns::operator<< <int>"},
        {"_ZNK2ns1VclIiEET_S2_", "ns::V::operator()<int>"},
        {"_ZNK2ns1VltIlEEbRKT_", "ns::V::operator< <long>"},
        {"_ZNK2ns1VcvPT_IiEEv", "ns::V::operator int*<int>"},
        {"_ZN2ns11my_operatorIlEET_S1_", "ns::my_operator<long>"},
        {"_ZN5alloc3vec12Vec$LT$T$GT$4push17h0123456789abcdefE", "alloc::vec::Vec<T>::push"},
        {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
         "3bar17h930b740aa94f1d3aE",
         "<Test + 'static as foo::Bar<Test>>::bar"},
        {"_ZN20_$LT$$u5b$T$u5d$$GT$3len17h0123456789abcdefE", "<[T]>::len"},
        {"_ZN4core3ptr7$u$uzz$17h0123456789abcdefE", "core::ptr::$u$uzz$"},
        {"_RNvMNtCs6GmmlP4bgsG_1r4gridINtB2_5TablemE3sumB4_", "<r::grid::Table<u32>>::sum"},
        {"_RNvCs6GmmlP4bgsG_1r4main", "r::main"},
        {"_ZN9hashbrown3raw21RawTable$LT$T$C$A$GT$14reserve_rehash17h2b8877e4ebdde46dE.llvm."
         "13165260437742459775",
         "hashbrown::raw::RawTable<T,A>::reserve_rehash"},
        {"_Dmain", "D main"},
        {"_D4core8internal2gc2os10os_mem_mapFNbNimbZPv", "core.internal.gc.os.os_mem_map"},
        {"_D2rt6dmain212_d_run_main2UAAamPUQgZiZ6runAllMFZv", "rt.dmain2._d_run_main2.runAll"},
        {"_D2rt4util8typeinfo__T15TypeInfoGenericTmTmZQw6equalsMxFNaNbNeIPvIQdZb",
         "rt.util.typeinfo.TypeInfoGeneric!(ulong, ulong).TypeInfoGeneric.equals"},
        {"_D2dd__T3oddVAyaa2_2829ZQqFlZl", "dd.odd!(\"()\").odd"},
        {"_Document", "_Document"},
        {"_Rnonsense", "_Rnonsense"},
        {"_Znonsense", "_Znonsense"},
        {"__grid_MOD_along_rows", "grid::along_rows"},
        {"__MOD_x", "__MOD_x"},
        {"__grid_MOD_", "__grid_MOD_"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char *name = symbols_demangle(pairs[i][0]);
        assert_string_equal(name, pairs[i][1]);
        free(name);
    }
}

/* f(A<int, int>, A<A<int, int>, A<int, int>>, ...): each type is twice as long as the one before. */
static void name_that_grows(void **state)
{
    char name[512] = "_Z1f1AIiiE";
    (void)state;
    for (int i = 0; i < 24; i++) {
        char type[8] = "S_";
        if (i > 0)
            snprintf(type, sizeof type, "S%c_", i <= 10 ? '0' + i - 1 : 'A' + i - 11);
        snprintf(name + strlen(name), sizeof name - strlen(name), "S_I%s%sE", type, type);
        char *shown = symbols_demangle(name), *overload = symbols_demangle_overload(name);
        assert_true(strcmp(shown, "f") == 0 || (i >= 12 && strcmp(shown, name) == 0));
        assert_true(overload == NULL || strlen(overload) < 70000);
        free(shown);
        free(overload);
    }
}

static void names_of_overloads(void **state)
{
    static const char *const pairs[][2] = {
        {"_Z4walkl", "walk(long)"},
        {"_Z4walkd", "walk(double)"},
        {"_Z4walkIiET_S0_", NULL}, /* the only walk<int> */
        {"_Z5otherl", NULL},
        {"_Z5otherl.cold", NULL},
        {"_ZN5TableIiE4findEi", "Table<int>::find(int)"},
        {"_ZNK5TableIiE4findEi", "Table<int>::find(int) const"},
        {"_ZN5TableIiEC1Ev", NULL},
        {"_ZN5TableIiEC2Ev", NULL},
        {"_ZN5TableIiE4sizeEv", NULL},
        {"_Z3sumIiET_S0_", "sum<int>(int)"},
        {"_Z3sumIiET_S0_S0_", "sum<int>(int, int)"},
        {"_Z4parti.isra.0", "part(int)"},
        {"_Z4partj", "part(unsigned int)"},
        {"_ZN5alloc3vec12Vec$LT$T$GT$4push17h0123456789abcdefE", NULL},
        {"_ZN5alloc3vec12Vec$LT$T$GT$4push17h1123456789abcdefE", NULL},
        {"_D2dd4walkFlZl", "dd.walk(long)"},
        {"_D2dd4walkFdZl", "dd.walk(double)"},
        {"_D2dd5otherFdZl", NULL},
        {"_D2dd4dataAl", NULL},
        {"main", NULL},
    };
    struct mangled m = {0};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        mangled_add(&m, pairs[i][0]);
    mangled_sort(&m);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(mangled_has_overload(&m, pairs[i][0]), pairs[i][1] != NULL);
        char *name = pairs[i][1] != NULL ? symbols_demangle_overload(pairs[i][0]) : NULL;
        if (pairs[i][1] != NULL)
            assert_string_equal(name, pairs[i][1]);
        free(name);
    }
    assert_true(mangled_has_overload(&m, "_Z4parti")); /* as debug information has it */
    assert_false(mangled_has_overload(&m, "_Z4walkc"));
    mangled_clear(&m);
}

static void vdso(void **state)
{
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    struct symbols_image *image = symbols_image_open("[vdso]");
    int found = 0;
    (void)state;
    assert_non_null(image);
    for (uint64_t offset = 0; offset < 8192; offset += 4)
        if (symbols_image_frames(image, offset, 1, frames) == 1)
            found |= strcmp(frames[0].function, "clock_gettime") == 0;
    assert_true(found);
    symbols_image_close(image);
}

/* Types that refer to each other in a circle are no types. */
static void types_in_a_circle(void **state)
{
    static const char text[] =
        "  .data\n  .globl table\n  .type table, @object\n  .size table, 64\ntable: .zero 64\n"
        "  .section .debug_abbrev,\"\",@progbits\n"
        "  .uleb128 1, 0x11\n  .byte 1, 0, 0\n"                                    /* unit */
        "  .uleb128 2, 0x34\n  .byte 0\n  .uleb128 0x02, 0x18, 0x49, 0x13, 0, 0\n" /* variable */
        "  .uleb128 3, 0x16\n  .byte 0\n  .uleb128 0x49, 0x13, 0, 0\n"             /* typedef */
        "  .byte 0\n"
        "  .section .debug_info,\"\",@progbits\n"
        "  .long end - begin\nbegin: .value 4\n  .long 0\n  .byte 8\n"
        "  .uleb128 1, 2\n  .uleb128 9\n  .byte 3\n  .quad table\n  .long one - begin + 4\n"
        "one: .uleb128 3\n  .long two - begin + 4\n"
        "two: .uleb128 3\n  .long one - begin + 4\n"
        "  .byte 0\nend:\n  .section .note.GNU-stack,\"\",@progbits\n";
    char path[64], command[256], line[64];
    unsigned long long address = 0;
    struct symbols_field field;
    (void)state;
    FILE *f = fopen("circle.s", "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    snprintf(path, sizeof path, "%s/libcircle.so", folder);
    snprintf(command, sizeof command, "gcc -shared -o %s circle.s && nm %s | sed -n 's/ D table//p' > where",
             path, path);
    assert_int_equal(system(command), 0);
    f = fopen("where", "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    address = strtoull(line, NULL, 16);
    struct symbols_image *image = symbols_image_open(path);
    struct symbols_types *types = image != NULL ? symbols_types_new(image) : NULL;
    assert_non_null(types);
    assert_int_equal(symbols_types_find(types, address, 0, &field), -1);
    symbols_types_free(types);
    symbols_image_close(image);
}

/* Of entries at the same address the last one counts; other lines, and files that are no maps, are ignored.
 */
/* The code that was last at the address. */
static const char *name_at(struct jit_entries *entries, uint64_t address)
{
    const uint32_t *list;
    size_t n = jit_entries_at(entries, address, &list);
    return n > 0 ? jit_entries_name(entries, jit_entries_during(entries, list, n, UINT64_MAX, UINT64_MAX))
                 : NULL;
}

static void map_of_a_jit_compiler(void **state)
{
    char path[SYMBOLS_JIT_MAP_PATH];
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    (void)state;
    symbols_jit_map_path(4294967295u, path); /* no process has that number */
    assert_string_equal(path, "/tmp/perf-4294967295.map");
    assert_true(symbols_jit_map_is(path));
    assert_false(symbols_jit_map_is("/tmp/perf-1.map.old"));
    assert_false(symbols_jit_map_is("/tmp/perf-x.map"));
    assert_false(symbols_jit_map_is("/tmp/perf-01.map"));
    unlink(path);
    assert_null(symbols_jit_map_open(path, NULL, 0));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("1000 100 first\n2000 1000 wide\n2100 10 inside\n1080 100 second, with spaces\nnonsense\n"
          "3000\n3000 zz zz\n3000 0 empty\nffffffffffffffff 10 beyond\n3000 10 \n2200 10 last, without a "
          "newline",
          f);
    fclose(f);
    struct jit_entries *map = symbols_jit_map_open(path, NULL, 0);
    assert_non_null(map);
    assert_null(name_at(map, 0xfff));
    assert_string_equal(name_at(map, 0x1000), "first");
    assert_string_equal(name_at(map, 0x1080), "second, with spaces");
    assert_string_equal(name_at(map, 0x117f), "second, with spaces");
    assert_null(name_at(map, 0x1180));
    assert_string_equal(name_at(map, 0x2105), "inside");
    assert_string_equal(name_at(map, 0x2110), "wide");
    assert_string_equal(name_at(map, 0x220f), "last, without a newline");
    assert_null(name_at(map, 0x3000));
    assert_null(name_at(map, UINT64_MAX));
    jit_entries_free(map);
    struct symbols_image *image = symbols_image_open(path);
    assert_non_null(image);
    assert_int_equal(symbols_image_frames(image, 0x1001, 1, frames), 1);
    assert_string_equal(frames[0].function, "first");
    assert_int_equal(symbols_image_frames(image, 1, 1, frames), 0);
    assert_string_equal(symbols_image_build_id(image), "");
    symbols_image_close(image);
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0); /* anybody may make one in /tmp */
    assert_null(symbols_jit_map_open(path, NULL, 0));
    unlink(path);
}

/* Appends a record of a jitdump: kind, and 64-bit words after the process and thread; then text and code. */
static void put_record(FILE *f, uint32_t kind, const uint64_t *words, size_t n, const char *name, size_t code)
{
    const uint32_t size = (uint32_t)(24 + 8 * n + (name != NULL ? strlen(name) + 1 : 0) + code);
    const uint32_t head[] = {kind, size, 0, 0, 1, 1};
    fwrite(head, sizeof head, 1, f);
    fwrite(words, 8, n, f);
    if (name != NULL)
        fwrite(name, strlen(name) + 1, 1, f);
    for (size_t i = 0; i < code; i++)
        putc(0x90, f);
}

static void dump_of_a_jit_compiler(void **state)
{
    char folder[] = "/tmp/jitdump.XXXXXX", path[64];
    const uint32_t header[] = {0x4a695444, 1, 40, 62, 0, 123, 0, 0, 0, 0};
    uint32_t pid;
    (void)state;
    assert_true(symbols_jit_dump_is("/home/me/jit-123.dump", &pid));
    assert_int_equal(pid, 123);
    assert_false(symbols_jit_dump_is("/home/me/jit-0123.dump", &pid));
    assert_false(symbols_jit_dump_is("/home/me/jit-123.dump.old", &pid));
    assert_false(symbols_jit_dump_is("/home/me/lib.so", &pid));
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/jit-123.dump", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite(header, sizeof header, 1, f);
    put_record(f, 0, (uint64_t[]){0x1000, 0x1000, 16, 1}, 4, "first", 16);
    put_record(f, 2, (uint64_t[]){0x1000, 0}, 2, "lines, which are not read", 0);
    put_record(f, 0, (uint64_t[]){0x1008, 0x1008, 4, 2}, 4, "second", 4);
    put_record(f, 1, (uint64_t[]){0x9000, 0x1000, 0x9000, 16, 1}, 5, NULL, 0);
    put_record(f, 1, (uint64_t[]){0x9000, 0x7000, 0x9800, 16, 1}, 5, NULL, 0); /* nothing was there */
    put_record(f, 0, (uint64_t[]){0xa000, 0xa000, 16, 3}, 4, NULL, 0);         /* no name */
    put_record(f, 0, (uint64_t[]){0xb000, 0xb000, 16, 4}, 4, "last", 4000);
    fflush(f);
    assert_int_equal(ftruncate(fileno(f), ftell(f) - 100), 0); /* it was being written */
    fclose(f);
    struct jit_entries *map = symbols_jit_map_open(path, NULL, 0);
    assert_non_null(map);
    assert_string_equal(name_at(map, 0x1000), "first");
    assert_string_equal(name_at(map, 0x100b), "second");
    assert_string_equal(name_at(map, 0x100c), "first");
    assert_string_equal(name_at(map, 0x900f), "first");
    assert_null(name_at(map, 0x9010));
    assert_null(name_at(map, 0x9800));
    assert_null(name_at(map, 0xa000));
    assert_null(name_at(map, 0xb000));
    jit_entries_free(map);
    assert_int_equal(truncate(path, 39), 0);
    assert_null(symbols_jit_map_open(path, NULL, 0));
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("1000 100 a map in the place of a dump, and longer than its header is", f);
    fclose(f);
    assert_null(symbols_jit_map_open(path, NULL, 0));
    unlink(path);
    rmdir(folder);
}

/* A row of table burst_site: executions of block 0, and of another one. */
static void put_counts(struct profile *p, uint64_t burst, uint64_t often, unsigned block, uint64_t rarely)
{
    struct error err;
    uint8_t bytes[6 * LEB128_MOST];
    const uint64_t numbers[] = {0, often, 0, zigzag(block), rarely, 0};
    size_t used = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        used += leb128_put(bytes + used, numbers[i]);
    assert_int_equal(profile_put_sites_counts(p, burst, 1, bytes, used, &err), 0);
}

/* Rare code of a burst, which represents much of the run, has a row; that of the exact part has none,
 * although it was recorded more often. */
static void rows_for_what_represents_much(void **state)
{
    /* Of each of three blocks: its number, less that before, one reference, its site likewise. */
    static const uint8_t blocks[] = {0, 1, 0, 1, 1, 2, 1, 1, 2};
    static const struct symbols_site found[] = {{.offset = 0x100}, {.offset = 0x200}, {.offset = 0x300}};
    static const char *const images[] = {""};
    const struct symbols_code code = {.images = images, .nimages = 1, .sites = found, .nsites = 3};
    struct profile_burst burst = {.process = 1, .references = 1000, .weight = 1, .gap_ns = 1e8};
    struct profile_site *sites;
    struct profile *p;
    struct error err;
    uint64_t process;
    size_t n, rest = 0;
    (void)state;
    assert_int_equal(profile_create("rows.db", &p, &err), 0);
    assert_int_equal(profile_add_process(p, 11, 7, "/bin/x", 5, &process, &err), 0);
    assert_int_equal(profile_add_burst(p, &burst, &err), 0);
    put_counts(p, 0, 100000, 1, 50);
    put_counts(p, burst.id, 990, 2, 10);
    assert_int_equal(profile_put_blocks(p, process, blocks, sizeof blocks, &err), 0);
    assert_int_equal(symbols_name(p, &code, &err), 0);
    assert_int_equal(profile_sites(p, &sites, &n, &err), 0);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        assert_int_not_equal(sites[i].offset, 0x200);
        rest += sites[i].offset == PROFILE_SITE_REST ? sites[i].references : 0;
    }
    assert_int_equal(rest, 50);
    free(sites);
    profile_close(p, 1, &err);
}

/* 1000 counts of 1 to 8 in four rows, and a large one in each: some 100 are left. */
static void counts_are_thinned(void **state)
{
    struct tally t = {0};
    uint64_t before[4] = {0}, after[4] = {0};
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(tally_add(&t, i % 4, i, 3, 1 + i / 4 % 8), 0);
        before[i % 4] += 1 + i / 4 % 8;
    }
    for (uint32_t row = 0; row < 4; row++)
        assert_int_equal(tally_add(&t, row, 0, 4, 100000 + row), 0);
    tally_sort(&t);
    tally_thin(&t, 1004);
    assert_int_equal(t.n, 1004);
    tally_thin(&t, 100);
    assert_in_range(t.n, 50, 110);
    for (size_t i = 0; i < t.n; i++) {
        const struct tally_entry *e = &t.entries[i];
        if (e->what == 4)
            assert_int_equal(e->count, 100000 + e->row);
        else
            after[e->row] += e->count;
    }
    for (unsigned row = 0; row < 4; row++) /* 1125, with a standard deviation of 260 */
        assert_in_range(after[row], before[row] / 3, 2 * before[row]);
    tally_clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(debug_information),
        cmocka_unit_test(debug_file_of_its_own),
        cmocka_unit_test(without_debug_information),
        cmocka_unit_test(linkage_table),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(names),
        cmocka_unit_test(name_that_grows),
        cmocka_unit_test(names_of_overloads),
        cmocka_unit_test(vdso),
        cmocka_unit_test(types_in_a_circle),
        cmocka_unit_test(map_of_a_jit_compiler),
        cmocka_unit_test(dump_of_a_jit_compiler),
        cmocka_unit_test(rows_for_what_represents_much),
        cmocka_unit_test(counts_are_thinned),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
