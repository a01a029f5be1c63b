// SPDX-License-Identifier: Apache-2.0
// Source code with the misses of each line, for the size that the slider of the hotspots has.
import { el, percent, phaseNote, shown, sizeText } from "./base.js";

// A tab reaches the next multiple of eight.
function untab(text) {
    let out = "";
    for (const c of text)
        out += c === "\t" ? " ".repeat(8 - out.length % 8) : c;
    return out;
}

function partTable(part, file) {
    const lines = new Map(part.lines.map(l => [l.line, l]));
    const numbers = part.lines.map(l => l.line).filter(n => n > 0);
    const first = Math.max(Math.min(...numbers) - 3, file ? file.first : 1), last = Math.max(...numbers) + 3;
    const rows = [];
    for (let n = first; n <= last; n++) {
        const counts = lines.get(n), text = file?.lines[n - file.first];
        if (text === undefined && !counts)
            continue;
        rows.push(el("tr", { class: counts && counts.miss_share >= 0.01 ? "hot" : null },
            el("td", { class: "number bar", style: counts ? `--part: ${(100 * counts.miss_share).toFixed(2)}%` : null }, counts ? percent(counts.miss_share, 2) : ""),
            el("td", { class: "number" }, counts ? percent(counts.miss_ratio) : ""),
            el("th", { scope: "row" }, String(n)),
            el("td", {}, el("code", {}, text === undefined ? "" : shown(untab(text))))));
    }
    return el("div", { class: "scroll" }, el("table", { class: file ? "source" : "source numbers" },
        el("thead", {}, el("tr", {}, ...["misses", "miss ratio", "line"].map(t => el("th", { scope: "col", class: "number" }, t)), el("th", { scope: "col" }))),
        el("tbody", {}, ...rows)));
}

export function sourceSection(data) {
    if (!data.source)
        return null;
    const body = el("div", {});
    const fill = index => {
        const annotation = data.source.annotations[index];
        body.replaceChildren(el("p", { class: "dim" }, `In a cache of ${sizeText(data.sizes[index])}.`), ...annotation.parts.flatMap(part => {
            const file = data.source.files.find(f => f.file === part.file);
            const name = [part.function, part.file].filter(t => t).map(shown).join(" \u2013 ");
            const out = [el("h3", {}, name)];
            if (file?.changed)
                out.push(el("p", { class: "warning" }, "This source was changed after the recording."));
            const located = part.lines.some(l => l.line > 0);
            if (!file)
                out.push(el("p", { class: "dim" }, located ? "The source was not found." : "No line numbers: this code has no debug information (gcc -g)."));
            return located ? [...out, partTable(part, file)] : out;
        }));
    };
    document.addEventListener("size", e => fill(e.detail));
    fill(data.chosen);
    return { element: el("section", { id: "source", "aria-label": "Source" }, el("h2", {}, "Source"), body, phaseNote("source-phase", "The numbers beside the source are of the whole run.")) };
}
