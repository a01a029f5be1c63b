// SPDX-License-Identifier: Apache-2.0
// The miss-ratio curve, with its interval, and the sizes of real caches.
import { csvNumber, el, missing, percent, shown, sizeAbout, sizeText } from "./base.js";
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

/** What the dotted lines are, and which caches have none. */
export function marksText(machines, points) {
    const marks = cacheMarks(machines), last = points[points.length - 1].size_bytes, beyond = marks.filter(m => m.bytes > last).map(m => m.text);
    const whose = machines.every(m => m.recorded) ? "the machine of the recording" : machines.some(m => m.recorded) ? "the machine of the recording and of the one (here) that made this page" : "the machine that made this page";
    return !marks.length ? "" : marks.length > beyond.length ? ` Dotted: the caches of ${whose}${beyond.length ? `; ${beyond.join(" and ")} is beyond the axis` : ""}.` : ` The caches of ${whose} are beyond the axis: ${beyond.join(", ")}.`;
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

/** Options of a chart of curves. points: of one of the curves; texts: the lines of a tip for one of them. The first series gets the marks. width: in pixels. */
function curveFrame(c, points, machines, series, log, texts, width) {
    const low = points[0].size_bytes, high = points[points.length - 1].size_bytes;
    const marks = cacheMarks(machines).filter(m => m.bytes >= low && m.bytes <= high);
    series[0].markLine = {
        silent: true, symbol: "none", lineStyle: { color: c.dim, type: "dotted", width: 1.5 },
        data: marks.map(m => ({ xAxis: xOf(m.bytes), label: { formatter: () => m.text, color: c.text, position: "end" } })),
    };
    return {
        textStyle: { color: c.text }, grid: { left: 66, right: 30, top: width < 560 ? 84 : 62, bottom: 50 }, // a legend of two or three lines
        // Lines have no symbols, but the legend would draw one.
        legend: { top: 0, left: 0, textStyle: { color: c.text }, data: series.map(s => s.type === "line" ? { name: s.name, itemStyle: { opacity: 0 } } : { name: s.name }) },
        xAxis: {
            type: "value", min: xOf(low), max: xOf(high), interval: 2, name: "cache size", nameLocation: "middle", nameGap: 28, nameTextStyle: { color: c.text },
            axisLabel: { color: c.text, formatter: v => sizeAbout(2 ** v) }, axisLine: { lineStyle: { color: c.dim } }, splitLine: { show: false },
        },
        yAxis: {
            type: log ? "log" : "value", logBase: 10, min: log ? FLOOR : 0, name: "miss ratio", nameLocation: "middle", nameGap: 46, nameTextStyle: { color: c.text },
            axisLabel: { color: c.text, formatter: v => Number((100 * v).toPrecision(4)) + "%" }, splitLine: { lineStyle: { color: c.rule } },
        },
        series,
        tooltip: {
            ...tip(c), trigger: "axis", axisPointer: { type: "line", snap: true, lineStyle: { color: c.dim } },
            formatter: items => {
                const index = items.find(i => i.seriesType === "line")?.dataIndex; // the first one's may not be known
                return index === undefined ? "" : tipLines(...texts(index));
            },
        },
    };
}

/**
 * A section with curves, which the arrow keys read. points, machines, texts: see curveFrame; series(c, log): the curves; rest: what
 * follows the chart. draw() of the result draws it again.
 */
export function curveFigure({ id, label, caption, points, machines, series, texts, rest }) {
    const box = el("div", { class: "chart", id: "curve", tabindex: "0", role: "img", "aria-label": `${label}. The arrow keys read the values; they are in the table below, too.` });
    const status = el("div", { class: "status", "aria-live": "polite", id: "curve-status" });
    const log = el("input", { type: "checkbox", id: "log" });
    let drawn, at = -1;
    box.addEventListener("keydown", e => {
        const last = points.length - 1;
        const to = { ArrowLeft: Math.max(at - 1, 0), ArrowRight: Math.min(at + 1, last), Home: 0, End: last }[e.key];
        if (e.key === "Escape")
            drawn.instance.dispatchAction({ type: "hideTip" });
        if (to === undefined)
            return;
        e.preventDefault();
        at = to;
        status.textContent = texts(at).join("; ");
        // By its place, not by series and index: rounding would put some first and last points outside of the axes, without a tip.
        const x = drawn.instance.convertToPixel({ xAxisIndex: 0 }, xOf(points[at].size_bytes));
        drawn.instance.dispatchAction({ type: "showTip", x: x + (at === 0 ? 0.01 : at === last ? -0.01 : 0), y: box.clientHeight / 2 });
    });
    const options = () => {
        const c = colors();
        return curveFrame(c, points, machines, series(c, log.checked), log.checked, texts, box.clientWidth);
    };
    const draw = () => drawn ? drawn.draw() : drawn = chart(box, options);
    log.addEventListener("change", draw);
    return {
        element: el("section", { id, "aria-label": "Miss ratio by cache size" }, el("h2", {}, "Miss ratio by cache size"),
            el("div", { class: "tools onscreen" }, el("label", {}, log, "logarithmic miss ratio")),
            el("figure", {}, box, el("figcaption", {}, caption)), status, ...rest),
        draw,
    };
}

/** All values of a chart of curves, hidden at first. columns: [title, attributes, row => text]. */
export function valuesTable(command, columns, rows, rowClass = () => null) {
    return el("details", { class: "values" }, el("summary", {}, "All values"), el("div", { class: "scroll" }, el("table", { id: "values" },
        el("caption", {}, `Miss ratios from 0 to 1, as \`cachegram ${command} --format csv\` prints them`),
        el("thead", {}, el("tr", {}, ...columns.map(([title]) => el("th", { scope: "col", class: "number" }, title)))),
        el("tbody", {}, ...rows.map((row, i) => el("tr", { class: rowClass(row) }, ...columns.map(([, column, text]) => el("td", { class: "number", "data-column": column }, text(row, i)))))))));
}

function runSeries(data, c, log, phase) {
    const { lru, lru_own: own, random } = data;
    const series = [lineSeries(own ? "LRU, shared by the threads" : "LRU", lru.points, c.first, "solid", log)];
    if (own)
        series.push(lineSeries("LRU, one for each thread", own.points, c.first, "dotted", log));
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
    return series;
}

function pointLines(data, i) {
    const p = data.lru.points[i];
    const lines = [`Cache of ${sizeAbout(p.size_bytes)}`, p.miss_ratio === null ? "LRU: not enough samples" : `LRU: ${percent(p.miss_ratio)}${between(p)}`];
    if (data.lru_own) {
        const own = data.lru_own.points[i];
        lines.push(own.miss_ratio === null ? "one for each thread: not enough samples" : `one for each thread: ${percent(own.miss_ratio)}${between(own)}`);
    }
    if (data.random && data.random.points[i].miss_ratio !== null)
        lines.push(`random replacement: ${percent(data.random.points[i].miss_ratio)}`);
    return lines;
}

export function curveSection(data) {
    if (!data.lru)
        return missing("Miss ratio by cache size", "curve", data.no_curve);
    const { lru: { points, line_bytes }, lru_own: own, random } = data;
    const columns = [["size", null, p => sizeAbout(p.size_bytes)],
        ...[["bytes", "size_bytes"], ["LRU", "miss_ratio"], ["low", "ci_low"], ["high", "ci_high"]].map(([title, name]) => [title, name, p => csvNumber(p[name])])];
    if (own)
        columns.push(...[["one for each thread", "miss_ratio"], ["low", "ci_low"], ["high", "ci_high"]].map(([title, name]) => [title, `own_${name}`, (p, i) => csvNumber(own.points[i][name])]));
    if (random)
        columns.push(["random", "random", (p, i) => csvNumber(random.points[i].miss_ratio)]);
    let phase = null;
    const figure = curveFigure({
        id: "curve-section", label: "Miss ratio by cache size", points, machines: data.machines,
        caption: `Fully associative cache with lines of ${line_bytes} bytes.${marksText(data.machines, points)}`,
        series: (c, log) => runSeries(data, c, log, phase), texts: i => pointLines(data, i),
        rest: [...data.notes.map(n => el("p", { class: "dim" }, "Note: ", shown(n), ".")), valuesTable("mrc", columns, points)],
    });
    document.addEventListener("phase", e => {
        phase = e.detail;
        figure.draw();
    });
    return figure;
}
