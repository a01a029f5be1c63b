/* As sanitized.c, with options of the program's own. */
/* build: -fsanitize=address -pthread */
#include "sanitized.c"

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "exitcode=7:detect_leaks=0";
}
