// SPDX-License-Identifier: Apache-2.0
// The page of `cachegram html`. Its data is the JSON in the element #data; what the profile does not hold is null
// there, and is left out here. With `diff` it is the page of `cachegram diff`. Text from the data is only ever set as text, never parsed as HTML.
import { el, shown, sizeText, warnings } from "./base.js";
import { curveSection } from "./curve.js";
import { diffHead, diffSections, diffTitle } from "./diff.js";
import { foundSection } from "./found.js";
import { hotspotsSection } from "./hotspots.js";
import { causesSection } from "./causes.js";
import { sourceSection } from "./source.js";
import { timeSection } from "./time.js";
import { resizeAll, redrawAll } from "./charts.js";

function head(data) {
    const out = [el("h1", {}, "cachegram: ", el("code", {}, shown(data.summary.command || "(unknown)")))];
    const fact = key => data.facts.find(f => f.key === key)?.text, machine = data.machines.find(m => m.recorded);
    const run = [["recorded", fact("started")], ["on", [machine?.name, machine?.cpu].filter(t => t).join(", ")], ["mode", fact("mode")]].filter(([, text]) => text);
    if (run.length)
        out.push(el("p", { class: "dim", id: "run" }, run.map(([key, text]) => `${key} ${shown(text)}`).join("; ")));
    for (const line of data.findings)
        out.push(el("p", { class: "finding" }, shown(line)));
    out.push(...warnings("Warning", data.summary.warning));
    if (data.summary.complete !== "yes")
        out.push(...warnings("Warning", "the recording is not complete: it is still running, or was killed"));
    return el("header", {}, ...out);
}

function factsSection(data) {
    const rows = data.facts.map(f => el("tr", {}, el("th", { scope: "row" }, shown(f.key)), el("td", {}, shown(f.text))));
    for (const m of data.machines)
        rows.push(el("tr", {}, el("th", { scope: "row" }, m.recorded ? "recorded on" : "page made on"),
            el("td", {}, shown([m.name, m.cpu].filter(t => t).join(", ")),
                m.levels.length ? `: ${m.levels.map((b, i) => `L${i + 1} ${sizeText(b)}`).join(", ")}` : "")));
    rows.push(el("tr", {}, el("th", { scope: "row" }, "profile"), el("td", {}, shown(data.profile))));
    return {
        element: el("section", { id: "facts", "aria-label": "The run" }, el("h2", {}, "The run"),
            el("table", { class: "facts" }, el("tbody", {}, ...rows))),
    };
}

function start() {
    const data = JSON.parse(document.getElementById("data").textContent);
    const main = document.getElementById("page");
    const { diff } = data;
    document.title = diff ? diffTitle(diff) : `cachegram: ${shown(data.summary.command || data.profile)}`;
    main.replaceChildren(diff ? diffHead(diff) : head(data));
    for (const section of diff ? diffSections : [curveSection, timeSection, hotspotsSection, causesSection, foundSection, sourceSection, factsSection]) {
        const made = section(diff ?? data);
        if (made)
            main.append(made.element);
        made?.draw?.();
    }
    main.append(el("p", { class: "dim" }, `Made by cachegram ${data.version}.`));
    window.addEventListener("resize", resizeAll);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
    window.addEventListener("beforeprint", redrawAll);
    window.addEventListener("afterprint", redrawAll);
    document.body.dataset.ready = "yes";
}

start();
