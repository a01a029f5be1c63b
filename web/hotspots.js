// SPDX-License-Identifier: Apache-2.0
// Which code misses on which data, for the size chosen with the slider.
import { baseName, el, missing, percent, shown, sizeText } from "./base.js";
import { chart, colors, legend, scale, tip, tipLines } from "./charts.js";

const titles = { "function": "function", "line": "line", "object": "data object", "function,object": "function and data object" };

function codeName(row) {
    const [at, ...callers] = row.frames ?? [];
    return shown(row.function ?? "") + (at?.file ? ` ${shown(baseName(at.file))}:${at.line}` : "") + callers.map(f => ` < ${shown(f.function ?? "")}`).join("");
}

function rowName(by, row) {
    const parts = [];
    if (by !== "object")
        parts.push(codeName(row));
    if (by.includes("object"))
        parts.push(shown(row.object ?? "[unknown]"));
    return parts.join(" \u00b7 ");
}

/** Data is known of a sample of the references only, and may have missed all of a row's. */
const refsText = row => row.refs_share === 0 && row.miss_share > 0 ? percent(null) : percent(row.refs_share, 2);

/** A table with rows that have names, from rows of numbers. Rows of a phase have the calls of the same row of the run. */
function named(table, run, names) {
    const trees = table === run ? null : new Map(run.rows.map(row => [row[0], row[6]]));
    return {
        ...table,
        rows: table.rows.map(([name, miss_share, miss_share_low, miss_share_high, miss_ratio, refs_share, tree]) =>
            ({ ...names.rows[name], key: name, tree: names.trees[trees ? trees.get(name) : tree], miss_share, miss_share_low, miss_share_high, miss_ratio, refs_share, enough_samples: miss_share_low !== null })),
    };
}

/** The calls by which a row's code was reached: lists in lists. */
function callList(tree, calls) {
    const root = el("ul", { class: "calls", "aria-label": "called by" }), path = [];
    for (let i = 0; i < tree.length; i += 3) {
        const [call, depth, share] = tree.slice(i, i + 3), above = path[depth - 1];
        const list = above ? above.querySelector("ul") ?? above.appendChild(el("ul", {})) : root;
        list.append(path[depth] = el("li", {}, el("span", { class: "number" }, percent(share / 1000, 1)), ` ${shown(calls[call])}`));
    }
    return root;
}

const highest = table => Math.max(...table.rows.map(r => r.miss_ratio ?? 0), 1e-12);

/** Functions, and in each the objects it misses on, by share of the misses. */
function tree(table, by, c) {
    const most = highest(table), functions = new Map();
    for (const row of table.rows) {
        if (!(row.miss_share > 0))
            continue;
        const name = by === "object" ? shown(row.object ?? "[unknown]") : codeName(row);
        const group = functions.get(name) ?? { name, row: null, value: 0, children: [] };
        functions.set(name, group);
        const { color, on } = scale((row.miss_ratio ?? most) / most);
        const leaf = { name: by === "function,object" ? shown(row.object ?? "[unknown]") : name, row, value: row.miss_share, itemStyle: { color }, label: { color: on } };
        group.value += row.miss_share;
        group.children.push(leaf);
    }
    const groups = [...functions.values()];
    for (const g of groups) {
        g.upperLabel = { color: c.text };
        g.itemStyle = g.children[0].itemStyle; // where there is no room for its children
    }
    return by === "function,object" ? groups : groups.flatMap(g => g.children);
}

function treemapOptions(table, by) {
    const c = colors();
    return {
        tooltip: {
            ...tip(c), formatter: item => {
                const { name, value, data } = item;
                if (!data || !name)
                    return "";
                const lines = [data.row ? rowName(by, data.row) : name, `${percent(value, 2)} of the misses`];
                if (data.row)
                    lines.push(`miss ratio ${percent(data.row.miss_ratio)}`, `${refsText(data.row)} of the references`);
                return tipLines(...lines);
            },
        },
        series: [{
            type: "treemap", roam: false, nodeClick: false, breadcrumb: { show: false }, left: 0, right: 0, top: 0, bottom: 0, visibleMin: 30,
            label: { formatter: p => `${p.name}\n${percent(p.value, 1)}`, fontSize: 12, lineHeight: 16, overflow: "truncate" },
            upperLabel: { show: by === "function,object", height: 22, formatter: p => p.name, backgroundColor: "transparent" },
            itemStyle: { borderColor: c.back, borderWidth: 1, gapWidth: 1 },
            levels: [{ itemStyle: { borderWidth: 0, gapWidth: 3 }, upperLabel: { show: false } }, { itemStyle: { borderColor: c.rule, borderWidth: 2, gapWidth: 1 } }],
            data: tree(table, by, c),
        }],
    };
}

export function hotspotsSection(data) {
    const kinds = data.hotspots.filter(h => h.tables.length);
    if (!kinds.length)
        return missing("Hotspots", "hotspots", data.no_hotspots);
    const treeKind = kinds.find(k => k.by === "function,object") ?? kinds[0];
    let sort = "miss_share", ascending = false, drawn;
    const size = el("input", { type: "range", id: "size", min: 0, max: data.sizes.length - 1, step: 1, value: data.chosen });
    const sizeShown = el("output", { for: "size", id: "size-text" });
    const by = el("select", { id: "by" }, ...kinds.map(k => el("option", { value: k.by }, titles[k.by])));
    const filter = el("input", { type: "search", id: "filter", placeholder: "name", spellcheck: "false" });
    const ratio = el("p", { class: "dim", id: "hotspots-total", "aria-live": "polite" });
    const body = el("tbody", {}), more = el("p", { class: "dim" });
    const box = el("div", { class: "chart treemap", id: "treemap", role: "img", "aria-label": "The shares of the misses as areas; they are in the table below, too." });
    const colours = el("div", {});
    const note = el("p", { class: "dim", id: "hotspots-phase", "aria-live": "polite" });
    let phase = null, ofPhase = null;
    // The run's, if none of the phase is there.
    const tableOf = kind => named(ofPhase?.sizes[size.value]?.[kind.by] ?? kind.tables[size.value], kind.tables[size.value], data.names);
    const kind = () => kinds.find(k => k.by === by.value);
    const columns = [["miss_share", "misses"], ["miss_share_low", "low to high"], ["miss_ratio", "miss ratio"], ["refs_share", "references"], ["name", "where"]];
    const heads = columns.map(([key, text]) => el("th", { scope: "col", class: key === "name" ? null : "number", "data-key": key },
        el("button", {
            type: "button", onclick: () => {
                ascending = sort === key ? !ascending : key === "name";
                sort = key;
                fill();
            },
        }, text)));

    const opened = new Set(); // rows whose calls are shown, by their keys
    const callsNote = el("p", { class: "dim onscreen", id: "calls-note" });

    function toggle(button, row) {
        const line = button.closest("tr");
        if (opened.has(row.key))
            line.nextSibling.remove();
        else
            line.after(callsLine(row));
        opened[opened.has(row.key) ? "delete" : "add"](row.key);
        button.setAttribute("aria-expanded", opened.has(row.key));
    }

    const callsLine = row => el("tr", {}, el("td", { colspan: columns.length }, callList(row.tree, data.names.calls)));

    /** A row, and its calls if they are shown. */
    function lines(row, name, table) {
        const isOpen = row.tree && opened.has(row.key);
        // A row without misses worth a digit is not printed.
        const line = el("tr", { class: row.miss_share < 0.00005 ? "nothing" : null },
            el("td", { class: "number bar", "data-column": "miss_share", style: `--part: ${(100 * row.miss_share).toFixed(2)}%` }, percent(row.miss_share, 2)),
            el("td", { class: "number dim" }, row.enough_samples === false ? "few samples" : row.miss_share_low === null || table.mode === "full" ? "" : `${percent(row.miss_share_low, 2)} to ${percent(row.miss_share_high, 2)}`),
            el("td", { class: "number", "data-column": "miss_ratio" }, percent(row.miss_ratio)),
            el("td", { class: "number", "data-column": "refs_share" }, refsText(row)),
            el("td", { class: "name" }, row.tree ? el("button", { type: "button", "aria-expanded": String(isOpen), onclick: e => toggle(e.currentTarget, row) }, name) : name));
        return isOpen ? [line, callsLine(row)] : [line];
    }

    function fill() {
        const table = tableOf(kind()), words = filter.value.toLowerCase();
        const rows = table.rows.map(row => ({ row, name: rowName(by.value, row) })).filter(r => r.name.toLowerCase().includes(words));
        const key = r => sort === "name" ? r.name : r.row[sort] ?? -1;
        rows.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0) * (ascending ? 1 : -1));
        body.replaceChildren(...rows.flatMap(({ row, name }) => lines(row, name, table)));
        const { least_row, least_call, most_calls, most_depth } = data.names, command = `cachegram hotspots --call-graph --by ${by.value} --size ${sizeText(data.sizes[size.value])}`;
        const own = table.threads ? " --threads separate" : "";
        callsNote.textContent = !table.rows.some(row => row.tree) ? "" : `Click a name with \u25b8 for the calls that led to its code when it missed, innermost first, with their shares of its misses${by.value.includes("object") ? " on any data" : ""} in the whole run${own ? ", in a cache that the threads share" : ""}. `
            + `Not on this page: calls of rows with less than ${percent(least_row, 0)} of the misses, calls with less than ${percent(least_call, 0)} of a row's misses (or more, where over ${most_calls} are left), and those more than ${most_depth} levels up. All: ${command} --format json`;
        for (const th of heads) {
            th.removeAttribute("aria-sort");
            if (th.dataset.key === sort)
                th.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        }
        more.textContent = table.rows_left_out ? `${table.rows_left_out} more with fewer misses are not on this page: cachegram hotspots --by ${by.value}${own}${ofPhase ? ` --phase ${phase}` : ""} --size ${sizeText(data.sizes[size.value])} --limit 0` : "";
    }

    function show() {
        const bytes = data.sizes[size.value], table = tableOf(treeKind);
        sizeShown.textContent = sizeText(bytes);
        size.setAttribute("aria-valuetext", sizeText(bytes));
        ratio.textContent = `Miss ratio${ofPhase ? ` of phase ${phase}` : ""} in an LRU cache of ${sizeText(bytes)}${table.threads ? " for each thread" : ""}: ${percent(table.miss_ratio)}${table.mode === "full" ? "" : ", of the references whose code is known"}.`;
        colours.replaceChildren(legend("miss ratio", ...[0, 0.5, 1].map(part => percent(highest(table) * part, 1))));
        fill();
        drawn?.draw();
    }

    function resized() {
        show();
        document.dispatchEvent(new CustomEvent("size", { detail: Number(size.value) }));
    }

    function choosePhase(e) {
        const before = ofPhase;
        phase = e.detail ? e.detail.phase : null;
        const found = data.phase_hotspots.find(p => p.phase === phase);
        ofPhase = found && !found.why ? found : null;
        const lead = phase === null ? "" : phase ? `Phase ${phase}` : "Windows whose phase is not known";
        note.textContent = phase === null ? "" : ofPhase ? `${lead}${ofPhase.part ? ": what was sampled of it. Where everything was recorded, code is not counted by phase" : ""}.`
            : `${lead}: these hotspots are of the whole run, since ${found ? found.why : "this page has those of the phases with most references only"}.`;
        if (ofPhase !== before)
            show();
    }

    document.addEventListener("phase", choosePhase);
    size.addEventListener("input", resized);
    by.addEventListener("change", () => {
        opened.clear();
        fill();
    });
    filter.addEventListener("input", fill);
    const element = el("section", { id: "hotspots", "aria-label": "Hotspots" }, el("h2", {}, "Hotspots: where the misses are"),
        el("div", { class: "tools" }, el("label", {}, "cache size", size, sizeShown)),
        note, ratio,
        el("figure", {}, box, el("figcaption", {}, colours, `Area: share of the misses by ${titles[treeKind.by]}.`, el("span", { class: "onscreen" }, " A click on an area shows the rows of that name only."))),
        el("div", { class: "tools onscreen" }, el("label", {}, "by", by), el("label", {}, "only names with", filter)), callsNote,
        el("div", { class: "scroll rows", tabindex: "0", role: "group", "aria-label": "Table of hotspots" }, el("table", { id: "hotspots-table" }, el("thead", {}, el("tr", {}, ...heads)), body)), more);
    return {
        element, draw: () => {
            drawn = chart(box, () => treemapOptions(tableOf(treeKind), treeKind.by));
            drawn.instance.on("click", item => {
                if (item.data?.name) {
                    filter.value = filter.value === item.data.name ? "" : item.data.name;
                    fill();
                }
            });
            resized();
        },
    };
}
