// SPDX-License-Identifier: Apache-2.0
// Which data evicted the lines that are missed on, for the size that the slider of the hotspots has: a matrix.
import { el, percent, phaseNote, shown, sizeText } from "./base.js";
import { scale } from "./charts.js";

const LEAST = 0.00005; // would be 0.00%
const MOST = 10, cold = "(cold)", others = "(others)";

/** The names with the largest sums worth a digit, so many at most, in that order. */
function largest(rows, key, most) {
    const sums = new Map();
    for (const row of rows)
        sums.set(row[key], (sums.get(row[key]) ?? 0) + row.share);
    return [...sums].filter(([, sum]) => sum >= LEAST).sort((a, b) => b[1] - a[1]).slice(0, most).map(([name]) => name);
}

function matrix(table) {
    const victims = largest(table.rows, "victim", MOST);
    const evictors = largest(table.rows.filter(r => r.evictor !== cold), "evictor", MOST);
    const cells = new Map(), key = (v, e) => JSON.stringify([v, e]);
    let left = 0;
    for (const row of table.rows) {
        if (!victims.includes(row.victim))
            continue;
        const to = row.evictor === cold || evictors.includes(row.evictor) ? row.evictor : others;
        left += to === others ? row.share : 0;
        cells.set(key(row.victim, to), (cells.get(key(row.victim, to)) ?? 0) + row.share);
    }
    const columns = [cold, ...evictors, ...left >= LEAST ? [others] : []], most = Math.max(...cells.values());
    const cell = (victim, column) => {
        const share = cells.get(key(victim, column));
        if (share === undefined)
            return el("td", { class: "number" });
        const { color, on } = scale(share / most);
        return el("td", { class: "number heat", style: `background: ${color}; color: ${on}`, "data-victim": victim, "data-evictor": column }, percent(share, 2));
    };
    return el("table", { id: "causes-table" },
        el("caption", {}, "Share of all misses. Rows: what is missed on. Columns: what evicted it since its last touch; (cold): it was not touched before."),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "missed on"), ...columns.map(c => el("th", { scope: "col", class: "evictor" }, shown(c))))),
        el("tbody", {}, ...victims.map(v => el("tr", {}, el("th", { scope: "row" }, shown(v)), ...columns.map(c => cell(v, c))))));
}

export function causesSection(data) {
    if (!data.causes?.some(c => c.rows.length))
        return null;
    const body = el("div", { class: "scroll" }), note = el("p", { class: "dim" });
    const fill = index => {
        const table = data.causes[index];
        const cache = `In a cache of ${sizeText(data.sizes[index])}${data.lru_own ? " that the threads share" : ""}`;
        note.textContent = table.cold_share === null ? `${cache}; how many of the misses are cold is not known, as too few watched lines were seen to the end: they count as evictions, too.`
            : `${cache}, ${percent(table.cold_share, 1)} of the misses are cold.`;
        body.replaceChildren(...table.rows.length ? [matrix(table)] : []);
    };
    document.addEventListener("size", e => fill(e.detail));
    fill(data.chosen);
    return { element: el("section", { id: "causes", "aria-label": "Causes" }, el("h2", {}, "Causes: what evicts what"), phaseNote("causes-phase", "Causes are counted for the whole run, not by phase."), note, body) };
}
