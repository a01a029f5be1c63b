/* SPDX-License-Identifier: Apache-2.0 */
/* Programs without the agent: the reason, from /proc and from announced executions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/drain/agentless.h"

/* The fields of /proc/PID/stat, the 50th and 51st of which say where the environment begins and ends. */
static int empty(const char *start_and_end)
{
    char stat[512];
    int n = snprintf(stat, sizeof(stat), "%s", "7 (a) b) R");
    for (int field = 4; field < 50; field++)
        n += snprintf(stat + n, sizeof(stat) - (size_t)n, " %d", field == 48 ? -1 : field);
    snprintf(stat + n, sizeof(stat) - (size_t)n, " %s 0\n", start_and_end);
    return agentless_has_session("", 0, stat);
}

static void test_variables(void **state)
{
    (void)state;
    static const char with[] = "A=1\0CACHEGRAM_SESSION=3",
                      without[] = "A=1\0B=", overwritten[] = "A=1\0title";
    assert_int_equal(agentless_has_session(with, sizeof(with), ""), 1);
    assert_int_equal(agentless_has_session(without, sizeof(without), ""), 0);
    assert_int_equal(agentless_has_session(overwritten, sizeof(overwritten), ""), -1);
}

/* The kernel shows no environment for a program that it is about to start: that is not a cleared one. */
static void test_no_variables(void **state)
{
    (void)state;
    assert_int_equal(empty("140722917527519 140722917527519"), 0); /* env -i */
    assert_int_equal(empty("140722917527519 0"), -1);
    assert_int_equal(empty("0 0"), -1); /* it has ended, or may not be inspected */
    assert_int_equal(empty("140722917527519 140722917527600"), -1);
    assert_int_equal(agentless_has_session("", 0, "7 (a"), -1);
}

/* Announces that a process executes /bin/sh without the session's variable, up to a point. */
static void announce(struct wire_session *session, uint32_t pid, int written)
{
    struct wire_execution *e = &session->execution[session->executions % WIRE_MAX_EXECUTIONS];
    uint32_t number = session->executions++;
    if (!written)
        return;
    *e =
        (struct wire_execution){.pid = pid, .number = number, .lacks = WIRE_LACKS_SESSION, .path = "/bin/sh"};
}

/* A process that stops while it announces is handled when it goes on, and holds up no others. */
static void test_announcement_that_takes_time(void **state)
{
    static struct wire_session session;
    static struct agentless a;
    (void)state;
    announce(&session, 101, 0);
    announce(&session, 102, 1);
    agentless_executed(&a, &session);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.process[0].pid, 102);
    session.executions = 0;
    announce(&session, 101, 1);
    session.executions = 2;
    agentless_executed(&a, &session);
    agentless_executed(&a, &session);
    assert_int_equal(a.n, 2);
    assert_int_equal(a.process[1].pid, 101);
    /* Its place has what was announced 64 executions before. */
    for (unsigned i = 2; i < WIRE_MAX_EXECUTIONS; i++)
        announce(&session, 102, 1);
    agentless_executed(&a, &session);
    announce(&session, 103, 0);
    a.n = 0;
    agentless_executed(&a, &session);
    assert_int_equal(a.n, 0);
    session.executions--;
    announce(&session, 103, 1);
    agentless_executed(&a, &session);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.process[0].pid, 103);
}

/* A pipe that is called as a program is not one; the collector must not wait for somebody to write to it. */
static void test_announced_pipe(void **state)
{
    static struct wire_session session;
    static struct agentless a;
    struct wire_execution *e = &session.execution[0];
    char folder[] = "/tmp/cachegram-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    *e = (struct wire_execution){.pid = (uint32_t)getpid(), .lacks = WIRE_LACKS_SESSION};
    snprintf(e->path, sizeof(e->path), "%s/pipe", folder);
    assert_int_equal(mkfifo(e->path, 0700), 0);
    session.executions = 1;
    alarm(20);
    agentless_executed(&a, &session);
    alarm(0);
    assert_int_equal(unlink(e->path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_no_variables),
        cmocka_unit_test(test_announcement_that_takes_time),
        cmocka_unit_test(test_announced_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
