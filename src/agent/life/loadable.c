/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loadable.c - programs whose dynamic loader could not load the agent and would print that: those of another
 * class (32-bit programs) or processor. For a script, its interpreter counts.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "agent/life/life.h"
#include "agent/sys/sys.h"

#define NAME_BYTES 1024u /* longer names are not examined */
#define SCRIPT_DEPTH 4   /* nested script interpreters; the kernel's own limit */

/* The part of a file that tells its kind: the kernel reads as much of a script. */
union head {
    Elf64_Ehdr elf; /* class and processor are at the same place in files of 32 bits */
    char text[257];
};

/* Copies a string of the target. 0: it is too long, or cannot be read. */
static int copy_name(char to[NAME_BYTES], const char *from)
{
    return from && memchr(to, 0, NAME_BYTES - target_read(to, from, NAME_BYTES)) != NULL;
}

/* Opening could have an effect on other files than regular ones. */
static int is_program(const char *path)
{
    struct stat st;
    return !sys_failed(sys4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&st, 0)) && S_ISREG(st.st_mode) &&
           !sys_failed(sys4(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0));
}

/* As execvp finds the file. */
static int search(char path[NAME_BYTES], const char *file)
{
    const char *folders = getenv("PATH");
    size_t length = strlen(file);
    for (const char *at = folders ? folders : "/bin:/usr/bin"; at;) {
        const char *colon = strchr(at, ':');
        size_t bytes = colon ? (size_t)(colon - at) : strlen(at);
        if (bytes + 1 + length + 1 <= NAME_BYTES) {
            memcpy(path, at, bytes);
            path[bytes] = '/';
            memcpy(path + bytes + (bytes != 0), file, length + 1);
            if (is_program(path))
                return 1;
        }
        at = colon ? colon + 1 : NULL;
    }
    return 0;
}

static void read_head(const char *path, union head *head)
{
    long fd = exec_open(path);
    if (fd < 0)
        return;
    sys3(SYS_read, fd, head, sizeof *head - 1);
    exec_close(fd);
}

static int is_foreign(const union head *head)
{
    return memcmp(head->elf.e_ident, ELFMAG, SELFMAG) == 0 &&
           (head->elf.e_ident[EI_CLASS] != ELFCLASS64 || head->elf.e_machine != EM_X86_64);
}

/* Writes the name of a script's interpreter to path. 0: it is no script. */
static int interpreter(char path[NAME_BYTES], const union head *head)
{
    const char *at = head->text + 2;
    if (head->text[0] != '#' || head->text[1] != '!')
        return 0;
    while (*at == ' ' || *at == '\t')
        at++;
    size_t bytes = 0;
    while (at[bytes] && !strchr(" \t\r\n", at[bytes]))
        bytes++;
    memcpy(path, at, bytes);
    path[bytes] = 0;
    return bytes != 0;
}

int exec_is_foreign(struct program p)
{
    char path[NAME_BYTES], file[NAME_BYTES];
    union head head;
    if (!p.path || !copy_name(file, p.path))
        return 0;
    int by_descriptor = p.folder != AT_FDCWD && !file[0];
    if (by_descriptor) {
        memset(&head, 0, sizeof head);
        sys4(SYS_pread64, p.folder, (long)&head, sizeof head - 1, 0);
    } else if (p.search && file[0] && !strchr(file, '/')) {
        if (!search(path, file))
            return 0;
    } else if (p.folder != AT_FDCWD && file[0] != '/') {
        return 0;
    } else {
        memcpy(path, file, sizeof path);
    }
    for (int depth = 0; depth <= SCRIPT_DEPTH; depth++) {
        if (!by_descriptor || depth > 0) {
            memset(&head, 0, sizeof head);
            if (is_program(path))
                read_head(path, &head);
        }
        if (!interpreter(path, &head))
            break;
    }
    return is_foreign(&head);
}
