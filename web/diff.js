// SPDX-License-Identifier: Apache-2.0
// The page of `cachegram diff --format html`: two profiles, before and after.
import { csvNumber, el, percent, shown, sizeAbout, sizeText } from "./base.js";
import { chart, colors, tip, tipLines } from "./charts.js";
import { bandSeries, between, curveFrame, lineSeries } from "./curve.js";
import { table } from "./found.js";

const points = (value, digits = 3) => value === null ? "\u2013" : `${value >= 0 ? "+" : "\u2212"}${Math.abs(100 * value).toFixed(digits)}`;
const verdict = c => !c.significant ? "not significant" : c.delta_low > 0 ? "more misses" : "fewer misses";
const range = (c, one) => c.delta_low === null || c.delta_high === null ? "" : `${one(c.delta_low)} to ${one(c.delta_high)}`;

function head({ runs, findings }) {
    const out = [el("h1", {}, "cachegram: before and after")];
    runs.forEach((run, i) => out.push(el("p", {}, el("strong", {}, i ? "after: " : "before: "), el("code", {}, shown(run.command || "(unknown)")), ` (${shown(run.profile)})`)));
    for (const line of findings)
        out.push(el("p", { class: "finding" }, shown(line)));
    runs.forEach((run, i) => run.warning.split("\n").filter(l => l).forEach(line =>
        out.push(el("p", { class: "warning", role: "note" }, el("strong", {}, `Warning (${i ? "after" : "before"}): `), shown(line)))));
    return el("header", {}, ...out);
}

function pointTexts({ runs, changes }, i) {
    const c = changes.points[i];
    return [`Cache of ${sizeAbout(c.size_bytes)}`, ...runs.map((run, k) => {
        const p = run.curve.points[i];
        return `${k ? "after" : "before"}: ${p.miss_ratio === null ? "not enough samples" : percent(p.miss_ratio) + between(p)}`;
    }), c.delta === null ? "change: not known" : `change: ${points(c.delta)} points, ${verdict(c)}`];
}

function options(diff, log) {
    const c = colors(), { runs } = diff, names = ["before", "after"], lines = [c.second, c.first];
    const series = runs.map((run, i) => lineSeries(names[i], run.curve.points, lines[i], i ? "solid" : "dashed", log));
    runs.forEach((run, i) => {
        const band = bandSeries(`95% interval ${names[i]}`, run.curve.points, lines[i], log);
        if (band)
            series.push(band);
    });
    return {
        ...curveFrame(c, runs[0].curve.points, runs[1].machines, series, log),
        tooltip: {
            ...tip(c), trigger: "axis", axisPointer: { type: "line", snap: true, lineStyle: { color: c.dim } },
            formatter: items => {
                const index = items.find(i => i.seriesType === "line")?.dataIndex;
                return index === undefined ? "" : tipLines(...pointTexts(diff, index));
            },
        },
    };
}

function curvesSection(diff) {
    const box = el("div", { class: "chart", id: "curve", tabindex: "0", role: "img", "aria-label": "Miss ratio by cache size, before and after. The arrow keys read the values; they are in the table below, too." });
    const status = el("div", { class: "status", "aria-live": "polite", id: "curve-status" }), log = el("input", { type: "checkbox", id: "log" });
    const columns = ["size_bytes", "before", "after", "delta", "significant", "delta_low", "delta_high"];
    let drawn, at = -1;
    box.addEventListener("keydown", e => {
        const last = diff.changes.points.length - 1;
        const to = { ArrowLeft: Math.max(at - 1, 0), ArrowRight: Math.min(at + 1, last), Home: 0, End: last }[e.key];
        if (e.key === "Escape")
            drawn.instance.dispatchAction({ type: "hideTip" });
        if (to === undefined)
            return;
        e.preventDefault();
        at = to;
        status.textContent = pointTexts(diff, at).join("; ");
        drawn.instance.dispatchAction({ type: "showTip", seriesIndex: diff.runs[0].curve.points[at].miss_ratio === null ? 1 : 0, dataIndex: at });
    });
    log.addEventListener("change", () => drawn.draw());
    const value = (p, name) => name === "significant" ? String(Number(p.significant)) : csvNumber(p[name]);
    const values = el("table", { id: "values" }, el("caption", {}, "Miss ratios from 0 to 1, as `cachegram diff --format csv` prints them"),
        el("thead", {}, el("tr", {}, ...["size", ...columns].map(t => el("th", { scope: "col", class: "number" }, t)))),
        el("tbody", {}, ...diff.changes.points.map(p => el("tr", { class: p.significant ? "hot" : null }, el("td", { class: "number" }, sizeAbout(p.size_bytes)),
            ...columns.map(name => el("td", { class: "number", "data-column": name }, value(p, name)))))));
    const notes = diff.runs.flatMap((run, i) => run.notes.map(n => el("p", { class: "dim" }, `Note (${i ? "after" : "before"}): `, shown(n), ".")));
    return {
        element: el("section", { "aria-label": "Miss ratio by cache size" }, el("h2", {}, "Miss ratio by cache size"),
            el("div", { class: "tools" }, el("label", {}, log, "logarithmic miss ratio")),
            el("figure", {}, box, el("figcaption", {}, `LRU, fully associative, lines of ${diff.changes.line_bytes} bytes. A change is significant if its 95% interval does not contain 0. Dotted: sizes of real caches.`)),
            status, ...notes, el("details", { class: "values" }, el("summary", {}, "All values"), el("div", { class: "scroll" }, values))),
        draw: () => { drawn = chart(box, () => options(diff, log.checked)); },
    };
}

function functionsSection(diff) {
    const kinds = [["function", "functions"], ["data object", "objects"]].filter(([, key]) => diff[key].some(t => t));
    if (!kinds.length)
        return diff.no_functions ? { element: el("section", {}, el("h2", {}, "Functions"), el("p", {}, "No functions: ", shown(diff.no_functions))) } : null;
    const size = el("input", { type: "range", id: "size", min: 0, max: diff.sizes.length - 1, step: 1, value: Math.min(2, diff.sizes.length - 1) });
    const sizeShown = el("output", { for: "size", id: "size-text" }), body = el("div", {}), more = el("p", { class: "dim" });
    const number = value => value === null ? "\u2013" : value.toFixed(3), signed = value => value === null ? "\u2013" : (value >= 0 ? "+" : "\u2212") + Math.abs(value).toFixed(3);
    const by = el("select", { id: "by" }, ...kinds.map(([title, key]) => el("option", { value: key }, title)));
    const name = row => row.object !== undefined ? shown(row.object) : row.function === undefined ? "all" : shown(row.function || "[no names]") + (row.module ? ` (${shown(row.module.slice(row.module.lastIndexOf("/") + 1))})` : "");
    const columns = [["before", true, r => number(r.before)], ["after", true, r => number(r.after)], ["change", true, r => signed(r.delta)],
        ["low to high", true, r => range(r, signed)], ["", false, verdict]];
    const fill = () => {
        const found = diff[by.value][size.value], [title] = kinds.find(([, key]) => key === by.value);
        sizeShown.textContent = sizeText(diff.sizes[size.value]);
        size.setAttribute("aria-valuetext", sizeShown.textContent);
        body.replaceChildren(...found ? [table(by.value, `Misses per 1000 references of the whole program, in an LRU cache of ${sizeShown.textContent}; the largest changes first.`, [...columns, [title, false, name]], [found.table.total, ...found.table[by.value]])] : []);
        more.textContent = found?.left_out ? `${found.left_out} more that changed less are not on this page: cachegram diff --by ${by.value.slice(0, -1)} --size ${sizeShown.textContent} --limit 0` : "";
    };
    size.addEventListener("input", fill);
    by.addEventListener("change", fill);
    fill();
    return { element: el("section", { id: "hotspots", "aria-label": "Functions and data" }, el("h2", {}, "Functions and data: where the misses went"),
        el("div", { class: "tools" }, el("label", {}, "cache size", size, sizeShown), el("label", {}, "by", by)), body, more) };
}

function phasesSection(diff) {
    if (!diff.phases)
        return diff.no_phases ? { element: el("section", {}, el("h2", {}, "Phases"), el("p", {}, "No phases: ", shown(diff.no_phases))) } : null;
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
