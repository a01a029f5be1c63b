/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - the tables of a profile, version PROFILE_SCHEMA_VERSION. docs/format.md explains them for other
 * readers of the file; keep both consistent.
 */
#ifndef CACHEGRAM_PROFILE_SCHEMA_H
#define CACHEGRAM_PROFILE_SCHEMA_H

static const char profile_schema[] =
    "CREATE TABLE run(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, ppid INTEGER, exe TEXT, start_ns INTEGER);"
    "CREATE TABLE counter(process INTEGER, name TEXT, value INTEGER, PRIMARY KEY(process, name)) WITHOUT "
    "ROWID;"
    "CREATE TABLE module(id INTEGER PRIMARY KEY, process INTEGER, start_addr INTEGER, end_addr INTEGER,"
    " file_offset INTEGER, path TEXT);"
    "CREATE TABLE burst(id INTEGER PRIMARY KEY, process INTEGER, tid INTEGER, start_ns INTEGER, end_ns "
    "INTEGER,"
    " cpu_start_ns INTEGER, cpu_end_ns INTEGER, refs INTEGER, loads INTEGER, stores INTEGER,"
    " instructions INTEGER, words INTEGER, new_blocks INTEGER, lines INTEGER, pc INTEGER, end_code INTEGER,"
    " end_reason TEXT, end_detail INTEGER, weight REAL, start_refs REAL, refs_per_ns REAL, blocks INTEGER,"
    " near_per_ns REAL, steps INTEGER, string_hits REAL, gap_ns INTEGER);"
    "CREATE TABLE watch(id INTEGER PRIMARY KEY, burst INTEGER, address INTEGER, position INTEGER, age "
    "INTEGER,"
    " outcome_code INTEGER, outcome TEXT, refs REAL, clock_error REAL, cpu_ns REAL, weight REAL,"
    " inside_refs REAL, pc INTEGER, site INTEGER, object INTEGER);"
    "CREATE TABLE histogram(burst INTEGER, kind TEXT, total INTEGER, bins BLOB, PRIMARY KEY(burst, kind));"
    "CREATE TABLE reuse_window(id INTEGER PRIMARY KEY, start_ref INTEGER, refs INTEGER);"
    "CREATE TABLE reuse_sample(id INTEGER PRIMARY KEY, window INTEGER, ref INTEGER, distance INTEGER,"
    " line INTEGER);"
    "CREATE TABLE native(process INTEGER, tid INTEGER, reason TEXT, cpu_ns INTEGER,"
    " PRIMARY KEY(process, tid, reason)) WITHOUT ROWID;"
    "CREATE TABLE image(id INTEGER PRIMARY KEY, path TEXT, build_id TEXT);"
    "CREATE TABLE frame(id INTEGER PRIMARY KEY, function TEXT, file TEXT, line INTEGER, guessed INTEGER,"
    " caller INTEGER);"
    "CREATE TABLE site(id INTEGER PRIMARY KEY, image INTEGER, offset INTEGER, frame INTEGER, outer_frame "
    "INTEGER,"
    " refs INTEGER, first_touches INTEGER);"
    "CREATE TABLE site_distance(site INTEGER, object INTEGER, kind TEXT, lines INTEGER, refs INTEGER,"
    " PRIMARY KEY(site, object, kind, lines)) WITHOUT ROWID;"
    "CREATE TABLE object(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, module TEXT, offset INTEGER,"
    " size INTEGER, refs INTEGER, first_touches INTEGER);"
    "CREATE TABLE object_frame(object INTEGER, depth INTEGER, module TEXT, offset INTEGER, frame INTEGER,"
    " PRIMARY KEY(object, depth)) WITHOUT ROWID;"
    "CREATE TABLE site_object(site INTEGER, object INTEGER, refs INTEGER, PRIMARY KEY(site, object))"
    " WITHOUT ROWID;"
    "CREATE TABLE block(process INTEGER PRIMARY KEY, sites BLOB);"
    "CREATE TABLE burst_site(burst INTEGER, process INTEGER, counts BLOB, PRIMARY KEY(burst, process));"
    "CREATE TABLE pirate(id INTEGER PRIMARY KEY, by TEXT, available_bytes INTEGER,"
    " stolen_bytes INTEGER, valid INTEGER, intervals INTEGER, dropped INTEGER, cpu_ns REAL, units REAL,"
    " ns_per_unit REAL, ns_low REAL, ns_high REAL, ns_per_ref REAL, cpi REAL, gbps REAL, fetch_ratio REAL,"
    " miss_ratio REAL, pirate_fetch_ratio REAL, lost_share REAL);";

#endif
