// SPDX-License-Identifier: Apache-2.0
// What the profile holds besides: data that threads share, conflicts within sets, and what the Pirate measured.
import { el, fixed, percent, phaseNote, shown, sizeText } from "./base.js";

/** A table; columns: [title, is a number, row => text]. */
export function table(id, caption, columns, rows) {
    return el("div", { class: "scroll" }, el("table", { id }, el("caption", {}, caption),
        el("thead", {}, el("tr", {}, ...columns.map(([title, number]) => el("th", { scope: "col", class: number ? "number" : null }, title)))),
        el("tbody", {}, ...rows.map(row => el("tr", {}, ...columns.map(([, number, text]) => el("td", { class: number ? "number" : "name" }, text(row))))))));
}

const place = row => [row.function ? shown(row.function) : "", row.file ? `${shown(row.file)}:${row.line}` : ""].filter(t => t).join(" ") || "\u2013";

const places = [["references", true, row => percent(row.share, 2)], ["data", false, row => row.object ? shown(row.object) : "\u2013"],
    ["mostly in", false, place]];

function pirateTable(rows) {
    const some = key => rows.some(row => row[key] !== null && row[key] !== undefined);
    const columns = [["cache left", true, row => sizeText(row.available_bytes)],
        ["ns per reference", true, row => fixed(row.ns_per_ref, 3), "ns_per_ref"], ["CPI", true, row => fixed(row.cpi, 3), "cpi"],
        ["GB/s", true, row => fixed(row.gbps, 2), "gbps"], ["miss ratio", true, row => percent(row.miss_ratio), "miss_ratio"],
        ["fetch ratio", true, row => percent(row.fetch_ratio), "fetch_ratio"], ["Pirate's fetch ratio", true, row => percent(row.pirate_fetch_ratio), "pirate_fetch_ratio"],
        ["valid", false, row => row.valid ? "yes" : "no"]];
    return table("pirate", "Measured by cachegram pirate, which occupied the rest of the last-level cache. Not valid: the Pirate lost too much of its part.",
        columns.filter(([,,, key]) => !key || some(key)), rows);
}

export function foundSection(data) {
    const { false_sharing: sharing = [], true_sharing: together = [], conflicts = [], pirate = [] } = data.summary, parts = [];
    if (sharing.length)
        parts.push(el("h3", {}, "False sharing"), table("sharing", "References to lines while another thread writes other bytes of the line; at least.", places, sharing));
    if (together.length)
        parts.push(el("h3", {}, "True sharing"), table("together", "References to lines while another thread writes the same bytes.", places, together));
    if (conflicts.length)
        parts.push(el("h3", {}, "Conflicts within sets"), table("conflicts", "References that miss in 64 sets of 8 lines, but not in a cache of that size without sets.", places, conflicts));
    if (pirate.length)
        parts.push(el("h3", {}, "Measured with less cache"), pirateTable(pirate));
    return parts.length ? { element: el("section", { id: "found", "aria-label": "Sharing, conflicts, measurements" }, el("h2", {}, "Sharing, conflicts, measurements"), phaseNote("found-phase", "These are of the whole run."), ...parts) } : null;
}
