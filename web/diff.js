// SPDX-License-Identifier: Apache-2.0
// The page of `cachegram diff --format html`: two profiles, before and after.
import { baseName, csvNumber, el, fixed, missing, percent, shown, sizeAbout, sizeText, warnings } from "./base.js";
import { bandSeries, between, curveFigure, lineSeries, marksText, valuesTable } from "./curve.js";
import { table } from "./found.js";

const signed = value => value === null ? fixed(value) : (value >= 0 ? "+" : "\u2212") + fixed(Math.abs(value), 3);
const verdict = c => !c.significant ? "not significant" : c.delta_low > 0 ? "more misses" : "fewer misses";
const range = c => c.delta_low === null || c.delta_high === null ? "" : `${signed(c.delta_low)} to ${signed(c.delta_high)}`;

function head({ runs, findings }) {
    const out = [el("h1", {}, "cachegram: before and after")];
    runs.forEach((run, i) => out.push(el("p", {}, el("strong", {}, i ? "after: " : "before: "), el("code", {}, shown(run.command || "(unknown)")), ` (${shown(run.profile)})`)));
    for (const line of findings)
        out.push(el("p", { class: "finding" }, shown(line)));
    runs.forEach((run, i) => out.push(...warnings(`Warning (${i ? "after" : "before"})`, run.warning)));
    return el("header", {}, ...out);
}

function pointTexts({ runs, changes }, i) {
    const c = changes.points[i];
    return [`Cache of ${sizeAbout(c.size_bytes)}`, ...runs.map((run, k) => {
        const p = run.curve.points[i];
        return `${k ? "after" : "before"}: ${p.miss_ratio === null ? "not enough samples" : percent(p.miss_ratio) + between(p)}`;
    }), c.delta === null ? "change: not known" : `change: ${signed(100 * c.delta)} points, ${verdict(c)}`];
}

function bothSeries(runs, c, log) {
    const names = ["before", "after"], lines = [c.second, c.first];
    const bands = runs.map((run, i) => bandSeries(`95% interval ${names[i]}`, run.curve.points, lines[i], log)).filter(band => band);
    return [...runs.map((run, i) => lineSeries(names[i], run.curve.points, lines[i], i ? "solid" : "dashed", log)), ...bands];
}

function curvesSection(diff) {
    const { runs, changes } = diff, points = runs[0].curve.points;
    const columns = [["size", null, p => sizeAbout(p.size_bytes)],
        ...["size_bytes", "before", "after", "delta", "significant", "delta_low", "delta_high"].map(name => [name, name, p => csvNumber(name === "significant" ? Number(p[name]) : p[name])])];
    const notes = runs.flatMap((run, i) => run.notes.map(n => el("p", { class: "dim" }, `Note (${i ? "after" : "before"}): `, shown(n), ".")));
    return curveFigure({
        label: "Miss ratio by cache size, before and after", points, machines: runs[1].machines,
        caption: `LRU, fully associative, lines of ${changes.line_bytes} bytes. A change is significant if its 95% interval does not contain 0.${marksText(runs[1].machines, points)}`,
        series: (c, log) => bothSeries(runs, c, log), texts: i => pointTexts(diff, i),
        rest: [...notes, valuesTable("diff", columns, changes.points, p => p.significant ? "hot" : null)],
    });
}

function functionsSection(diff) {
    const kinds = [["function", "functions"], ["data object", "objects"]].filter(([, key]) => diff[key].some(t => t));
    if (!kinds.length)
        return missing("Functions", "functions", diff.no_functions);
    const size = el("input", { type: "range", id: "size", min: 0, max: diff.sizes.length - 1, step: 1, value: Math.min(2, diff.sizes.length - 1) });
    const sizeShown = el("output", { for: "size", id: "size-text" }), body = el("div", {}), more = el("p", { class: "dim" });
    const by = el("select", { id: "by" }, ...kinds.map(([title, key]) => el("option", { value: key }, title)));
    const name = row => row.object !== undefined ? shown(row.object) : row.function === undefined ? "all" : shown(row.function || "[no names]") + (row.module ? ` (${shown(baseName(row.module))})` : "");
    const columns = [["before", true, r => fixed(r.before, 3)], ["after", true, r => fixed(r.after, 3)], ["change", true, r => signed(r.delta)],
        ["low to high", true, range], ["", false, verdict]];
    const fill = () => {
        const found = diff[by.value][size.value], [title] = kinds.find(([, key]) => key === by.value);
        sizeShown.textContent = sizeText(diff.sizes[size.value]);
        size.setAttribute("aria-valuetext", sizeShown.textContent);
        body.replaceChildren(...found ? [table(by.value, `Misses per 1000 references of the whole program, in an LRU cache of ${sizeShown.textContent}; the largest changes first.`, [...columns, [title, false, name]], [found.table.total, ...found.table[by.value]])] : []);
        more.textContent = found?.left_out ? `${found.left_out} more that changed less are not on this page: cachegram diff --by ${by.value.slice(0, -1)}${found.table.threads ? " --threads separate" : ""} --size ${sizeShown.textContent} --limit 0` : "";
    };
    size.addEventListener("input", fill);
    by.addEventListener("change", fill);
    fill();
    return { element: el("section", { id: "hotspots", "aria-label": "Functions and data" }, el("h2", {}, "Functions and data: where the misses went"),
        el("div", { class: "tools" }, el("label", {}, "cache size", size, sizeShown), el("label", {}, "by", by)), body, more) };
}

function phasesSection(diff) {
    if (!diff.phases)
        return missing("Phases", "phases", diff.no_phases);
    const { pairs, phases_before: before, phases_after: after } = diff.phases;
    const find = (list, number) => list.find(p => p.phase === number);
    const both = pairs.map(pair => ({ ...pair, before: find(before, pair.phase_before), after: find(after, pair.phase_after) }));
    const mark = c => c.significant ? c.delta_low > 0 ? " \u25b2" : " \u25bc" : "";
    const change = c => `${percent(c.before, 2)} \u2192 ${percent(c.after, 2)}${mark(c)}`;
    const pairColumns = [["phase", true, p => `${p.phase_before} \u2192 ${p.phase_after}`], ["same code", true, p => percent(p.alike, 0)],
        ["references", true, p => `${percent(p.before.refs_share, 2)} \u2192 ${percent(p.after.refs_share, 2)}`],
        ...diff.sizes.map((bytes, k) => [sizeText(bytes), true, p => change(p.points[k])])];
    const columns = [["phase", true, p => String(p.phase)], ["references", true, p => percent(p.refs_share, 2)], ["windows", true, p => String(p.windows)],
        ...diff.sizes.map((bytes, k) => [sizeText(bytes), true, p => percent(p.points[k].miss_ratio)])];
    const single = (id, title, list, taken, left) => {
        const rows = list.filter(p => !taken.has(p.phase)), unknown = rows.filter(p => !p.code_known).length;
        const text = [`${title}, without counterpart.`, unknown ? `Of ${unknown}, the code is not known: no burst began in them.` : "",
            left ? `${left} more with fewer references are not on this page.` : ""].filter(t => t).join(" ");
        return rows.length || left ? table(id, text, columns, rows) : null;
    };
    return {
        element: el("section", { id: "phases", "aria-label": "Phases" }, el("h2", {}, "Phases"),
            el("p", { class: "dim" }, "Phases of both runs, paired by the code that makes their references; their miss ratios by cache size, before and after. \u25b2, \u25bc: significantly more, fewer misses."),
            pairs.length ? table("phases-pairs", "Pairs, those with most references before first.", pairColumns, both) : null,
            single("phases-before", "Before", before, new Set(pairs.map(p => p.phase_before)), diff.phases.left_out_before),
            single("phases-after", "After", after, new Set(pairs.map(p => p.phase_after)), diff.phases.left_out_after)),
    };
}

function factsSection({ runs }) {
    const keys = [...new Set(runs.flatMap(run => run.facts.map(f => f.key)))];
    const of = (run, key) => shown(run.facts.find(f => f.key === key)?.text ?? "");
    return {
        element: el("section", { id: "facts", "aria-label": "The runs" }, el("h2", {}, "The runs"), el("table", { class: "facts" },
            el("thead", {}, el("tr", {}, ...["", "before", "after"].map(t => el("th", { scope: "col" }, t)))),
            el("tbody", {}, ...keys.map(key => el("tr", {}, el("th", { scope: "row" }, shown(key)), ...runs.map(run => el("td", {}, of(run, key)))))))),
    };
}

export const diffTitle = diff => `cachegram: ${shown(diff.runs[0].profile)} and ${shown(diff.runs[1].profile)}`;
export const diffHead = head;
export const diffSections = [curvesSection, functionsSection, phasesSection, factsSection];
