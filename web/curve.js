// SPDX-License-Identifier: Apache-2.0
// The miss-ratio curve, with its interval, and the sizes of real caches.
import { csvNumber, el, percent, shown, sizeAbout, sizeText } from "./base.js";
import { chart, colors, tip, tipLines } from "./charts.js";

/** Sizes to mark, with their names: of the machine of the recording, and of the one that made the page. */
export function cacheMarks(machines) {
    const marks = new Map();
    for (const m of machines)
        m.levels.forEach((bytes, i) => {
            const names = marks.get(bytes) ?? [];
            const name = `L${i + 1}${machines.length > 1 ? m.recorded ? "" : " here" : ""}`;
            if (!names.includes(name))
                names.push(name);
            marks.set(bytes, names);
        });
    return [...marks].sort((a, b) => a[0] - b[0]).map(([bytes, names]) => ({ bytes, text: `${names.join(", ")} ${sizeText(bytes)}` }));
}

export function between(p) {
    return p.ci_low === null || p.ci_high === null || p.ci_high <= p.ci_low ? "" : ` (${percent(p.ci_low)} to ${percent(p.ci_high)})`;
}

// A logarithmic axis has no place for 0; what is below a thousandth of a per cent lies at its foot.
export const FLOOR = 1e-5;
export const xOf = Math.log2;
export const yOf = (v, log) => v === null ? null : log ? Math.max(v, FLOOR) : v;

/** A curve as a line. */
export function lineSeries(name, points, color, type, log) {
    return {
        name, type: "line", symbol: "none", connectNulls: false, lineStyle: { color, width: 2.5, type }, itemStyle: { color },
        data: points.map(p => [xOf(p.size_bytes), yOf(p.miss_ratio, log)]), z: 3,
    };
}

/** Its interval as an area; null if it has none. */
export function bandSeries(name, points, color, log) {
    const banded = points.filter(p => p.ci_low !== null && p.ci_high !== null && p.ci_high > p.ci_low);
    return banded.length < 2 ? null : {
        name, type: "custom", silent: true, z: 1, clip: true, itemStyle: { color, opacity: 0.2 },
        data: [[xOf(banded[0].size_bytes), Math.max(...banded.map(p => yOf(p.ci_high, log)))]], // one, at the height of all
        renderItem: (params, api) => ({
            type: "polygon", silent: true, style: { fill: color, opacity: 0.2 },
            shape: {
                points: [...banded.map(p => api.coord([xOf(p.size_bytes), yOf(p.ci_high, log)])),
                    ...[...banded].reverse().map(p => api.coord([xOf(p.size_bytes), yOf(p.ci_low, log)]))],
            },
        }),
    };
}

/** Everything of a chart of curves but its series and tip. points: of one of the curves. The first series gets the marks. */
export function curveFrame(c, points, machines, series, log) {
    const low = points[0].size_bytes, high = points[points.length - 1].size_bytes;
    const marks = cacheMarks(machines).filter(m => m.bytes >= low && m.bytes <= high);
    series[0].markLine = {
        silent: true, symbol: "none", lineStyle: { color: c.dim, type: "dotted", width: 1.5 },
        data: marks.map(m => ({ xAxis: xOf(m.bytes), label: { formatter: () => m.text, color: c.text, position: "end" } })),
    };
    return {
        textStyle: { color: c.text }, grid: { left: 60, right: 30, top: 62, bottom: 50 },
        legend: { top: 0, left: 0, textStyle: { color: c.text }, data: series.map(s => s.name) },
        xAxis: {
            type: "value", min: xOf(low), max: xOf(high), interval: 2, name: "cache size", nameLocation: "middle", nameGap: 28, nameTextStyle: { color: c.text },
            axisLabel: { color: c.text, formatter: v => sizeAbout(2 ** v) }, axisLine: { lineStyle: { color: c.dim } }, splitLine: { show: false },
        },
        yAxis: {
            type: log ? "log" : "value", logBase: 10, min: log ? FLOOR : 0, name: "miss ratio", nameTextStyle: { color: c.text, align: "left" },
            axisLabel: { color: c.text, formatter: v => Number((100 * v).toPrecision(4)) + "%" }, splitLine: { lineStyle: { color: c.rule } },
        },
        series,
    };
}

function options(data, log, phase) {
    const c = colors(), { lru, random } = data;
    const series = [lineSeries("LRU", lru.points, c.first, "solid", log)];
    if (random)
        series.push(lineSeries("random replacement", random.points, c.second, "dashed", log));
    if (phase) {
        const points = data.timeline.phases.sizes.map((bytes, k) => ({ size_bytes: bytes, miss_ratio: phase.miss_ratio[k] }));
        series.push(lineSeries(phase.phase ? `LRU, phase ${phase.phase}` : "LRU, phase not known", points, c.third, "solid", log));
    }
    const band = bandSeries("95% interval of LRU", lru.points, c.first, log);
    if (band)
        series.push(band);
    if (data.measured.length)
        series.push({
            name: "measured, with less cache", type: "scatter", symbolSize: 9, z: 4, itemStyle: { color: c.third, borderColor: c.text },
            data: data.measured.map(m => [xOf(m.size_bytes), yOf(m.miss_ratio, log)]),
        });
    return {
        ...curveFrame(c, lru.points, data.machines, series, log),
        tooltip: {
            ...tip(c), trigger: "axis", axisPointer: { type: "line", snap: true, lineStyle: { color: c.dim } },
            formatter: items => {
                const index = items.find(i => i.seriesType === "line")?.dataIndex; // LRU's may be unknown
                return index === undefined ? "" : tipLines(...pointLines(data, index));
            },
        },
    };
}

function pointLines(data, i) {
    const p = data.lru.points[i];
    const lines = [`Cache of ${sizeAbout(p.size_bytes)}`, p.miss_ratio === null ? "LRU: not enough samples" : `LRU: ${percent(p.miss_ratio)}${between(p)}`];
    if (data.random && data.random.points[i].miss_ratio !== null)
        lines.push(`random replacement: ${percent(data.random.points[i].miss_ratio)}`);
    return lines;
}

/** All values, with the digits of `mrc --format csv`. */
function values(data) {
    const columns = ["size_bytes", "miss_ratio", "ci_low", "ci_high"];
    const rows = data.lru.points.map((p, i) => el("tr", {}, el("td", { class: "number" }, sizeAbout(p.size_bytes)),
        ...columns.map(name => el("td", { class: "number", "data-column": name }, csvNumber(p[name]))),
        data.random && el("td", { class: "number", "data-column": "random" }, csvNumber(data.random.points[i].miss_ratio))));
    return el("details", { class: "values" }, el("summary", {}, "All values"), el("div", { class: "scroll" }, el("table", { id: "values" },
        el("caption", {}, "Miss ratios from 0 to 1, as `cachegram mrc --format csv` prints them"),
        el("thead", {}, el("tr", {}, ...["size", "bytes", "LRU", "low", "high", ...data.random ? ["random"] : []]
            .map(t => el("th", { scope: "col", class: "number" }, t)))),
        el("tbody", {}, ...rows))));
}

export function curveSection(data) {
    if (!data.lru)
        return data.no_curve ? { element: el("section", {}, el("h2", {}, "Miss ratio by cache size"), el("p", {}, "No curve: ", shown(data.no_curve))) } : null;
    const box = el("div", {
        class: "chart", id: "curve", tabindex: "0", role: "img",
        "aria-label": "Miss ratio by cache size. The arrow keys read the values; they are in the table below, too.",
    });
    const status = el("div", { class: "status", "aria-live": "polite", id: "curve-status" });
    const log = el("input", { type: "checkbox", id: "log" });
    let drawn, at = -1, phase = null;
    box.addEventListener("keydown", e => {
        const last = data.lru.points.length - 1;
        const to = { ArrowLeft: Math.max(at - 1, 0), ArrowRight: Math.min(at + 1, last), Home: 0, End: last }[e.key];
        if (e.key === "Escape")
            drawn.instance.dispatchAction({ type: "hideTip" });
        if (to === undefined)
            return;
        e.preventDefault();
        at = to;
        status.textContent = pointLines(data, at).join("; ");
        // Where LRU is not known, the other curve has a place for the tip.
        const known = data.lru.points[at].miss_ratio !== null || !data.random;
        drawn.instance.dispatchAction({ type: "showTip", seriesIndex: known ? 0 : 1, dataIndex: at });
    });
    log.addEventListener("change", () => drawn.draw());
    document.addEventListener("phase", e => {
        phase = e.detail;
        drawn.draw();
    });
    const notes = data.notes.map(n => el("p", { class: "dim" }, "Note: ", shown(n), "."));
    const element = el("section", { id: "curve-section", "aria-label": "Miss ratio by cache size" },
        el("h2", {}, "Miss ratio by cache size"),
        el("div", { class: "tools" }, el("label", {}, log, "logarithmic miss ratio")),
        el("figure", {}, box, el("figcaption", {}, `Fully associative cache with lines of ${data.lru.line_bytes} bytes. Dotted: sizes of real caches.`)),
        status, ...notes, values(data));
    return { element, draw: () => { drawn = chart(box, () => options(data, log.checked, phase)); } };
}
