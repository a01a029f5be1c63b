// SPDX-License-Identifier: Apache-2.0
// Miss ratio over time and cache size, with the phases as a ribbon; and the choice of a phase.
import { el, percent, sizeAbout } from "./base.js";
import { chart, colors, legend, scale, tip, tipLines } from "./charts.js";

// Of Okabe and Ito, for the phases with most references; all others are grey. With what can be read on them.
const ribbon = [["#0072b2", "#fff"], ["#e69f00", "#000"], ["#009e73", "#000"], ["#cc79a7", "#000"], ["#56b4e9", "#000"], ["#d55e00", "#000"], ["#f0e442", "#000"]];
const otherPhase = ["#999999", "#000"];
/** The colours of phases, by number. */
const phaseColors = phases => new Map([...phases].filter(p => p.phase).sort((a, b) => b.refs - a.refs).map((p, i) => [p.phase, ribbon[i] ?? otherPhase]));
const sides = { left: 66, right: 20 };
/** To whole pixels of the screen, or else there are seams. */
const snap = at => Math.round(at * Math.max(devicePixelRatio, 1)) / Math.max(devicePixelRatio, 1);
const seconds = ns => `${Number((ns / 1e9).toPrecision(4))} s`;

const share = (i, columns) => `${(100 * i / columns).toFixed(0)}%`;

/** What is said about a column, or about a size in it. */
function cellLines({ columns, sizes }, i, k) {
    const column = columns[i], phase = column.phase || "not known";
    return [...k === null ? [`Phase ${phase}`] : [`Cache of ${sizeAbout(sizes[k])}: ${percent(column.miss_ratio[k])}`, `phase ${phase}`],
        `${share(i, columns.length)} of the work, until ${seconds(column.end_ns)}`];
}

/** Columns of one phase that follow each other, as [first, end, phase]. */
function runsOf(columns) {
    const runs = [];
    columns.forEach(({ phase }, i) => {
        if (runs.length && runs[runs.length - 1][2] === phase)
            runs[runs.length - 1][1] = i + 1;
        else
            runs.push([i, i + 1, phase]);
    });
    return runs;
}

const highest = grid => Math.max(...grid.columns.flatMap(column => column.miss_ratio).filter(v => v !== null), 1e-9);

function options(data) {
    const c = colors(), { grid, phases } = data.timeline, columns = grid.columns.length, most = highest(grid);
    const colorOf = phaseColors(phases.phases);
    const cells = [];
    grid.columns.forEach((column, i) => column.miss_ratio.forEach((value, k) => {
        if (value !== null)
            cells.push([i, k, value]);
    }));
    const each = 100 / columns; // the axis is in per cent, so that its labels are round, zoomed or not
    const rect = (params, api, low, high) => {
        const [x0, y0] = api.coord([api.value(0) * each, low]), [x1, y1] = api.coord([(api.value(0) + 1) * each, high]);
        const area = params.coordSys, left = Math.max(x0, area.x), right = Math.min(x1, area.x + area.width);
        const x = snap(left), y = snap(Math.min(y0, y1));
        return right <= left ? null : { x, y, width: Math.max(snap(right) - x, 1), height: snap(Math.max(y0, y1)) - y };
    };
    const axis = index => ({
        type: "value", gridIndex: index, min: 0, max: 100, axisLine: { lineStyle: { color: c.dim } }, splitLine: { show: false },
        axisLabel: { show: index === 1, color: c.text, formatter: v => `${Number(v.toFixed(2))}%` }, axisTick: { show: index === 1 },
        ...index === 1 ? { name: "share of the run's work", nameLocation: "middle", nameGap: 26, nameTextStyle: { color: c.text } } : {},
    });
    return {
        textStyle: { color: c.text },
        grid: [{ ...sides, top: 8, height: 22 }, { ...sides, top: 38, bottom: 92 }],
        xAxis: [axis(0), axis(1)],
        yAxis: [{ type: "value", gridIndex: 0, min: 0, max: 1, show: false }, {
            type: "value", gridIndex: 1, min: 0, max: grid.sizes.length, interval: 4, splitLine: { show: false }, axisLine: { lineStyle: { color: c.dim } },
            name: "cache size", nameLocation: "middle", nameGap: 46, nameTextStyle: { color: c.text },
            axisLabel: { color: c.text, formatter: v => grid.sizes[v] ? sizeAbout(grid.sizes[v]) : "" },
        }],
        dataZoom: [{ type: "slider", xAxisIndex: [0, 1], bottom: 10, height: 22, textStyle: { color: c.text }, labelFormatter: v => `${v.toFixed(0)}%`, filterMode: "none" },
            { type: "inside", xAxisIndex: [0, 1], zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, filterMode: "none" }],
        tooltip: {
            ...tip(c), formatter: item => tipLines(...cellLines(grid, item.value[0], item.seriesIndex === 0 ? null : item.value[1])),
        },
        series: [{
            type: "custom", progressive: 0, xAxisIndex: 0, yAxisIndex: 0, data: grid.columns.map((column, i) => [i, column.phase]), encode: { x: 0 },
            renderItem: (params, api) => {
                const shape = rect(params, api, 0, 1);
                return shape && { type: "rect", shape, style: { fill: colorOf.get(api.value(1))?.[0] ?? "#bbbbbb" } };
            },
        }, {
            type: "custom", progressive: 0, xAxisIndex: 1, yAxisIndex: 1, data: cells, encode: { x: 0, y: 1 },
            // By the root, so that small miss ratios differ in colour: those of real caches are often a few per cent.
            renderItem: (params, api) => {
                const shape = rect(params, api, api.value(1), api.value(1) + 1);
                return shape && { type: "rect", shape, style: { fill: scale(Math.sqrt(api.value(2) / most)).color } };
            },
        }, {
            // The numbers of phases, where there is room for them.
            type: "custom", progressive: 0, silent: true, z: 3, xAxisIndex: 0, yAxisIndex: 0, data: runsOf(grid.columns), encode: { x: 0 }, tooltip: { show: false },
            renderItem: (params, api) => {
                const [first, end] = [0, 1].map(i => api.coord([api.value(i) * each, 0])[0]), { x, y, width, height } = params.coordSys;
                const left = Math.max(first, x), right = Math.min(end, x + width), text = String(api.value(2) || "");
                return text && right - left > 8 + 8 * text.length
                    ? { type: "text", style: { text, x: (left + right) / 2, y: y + height / 2, align: "center", verticalAlign: "middle", fill: (colorOf.get(api.value(2)) ?? otherPhase)[1], font: "12px sans-serif" } } : null;
            },
        }],
    };
}

/** Runs of columns that are not of the chosen phase, as [first, end]. */
function others(columns, chosen) {
    const runs = [];
    columns.forEach((column, i) => {
        if (chosen === null || column.phase === chosen)
            return;
        if (runs.at(-1)?.[1] === i)
            runs.at(-1)[1] = i + 1;
        else
            runs.push([i, i + 1]);
    });
    return runs;
}

/** Fades the columns of other phases by veils before the chart. To draw its 10,000 cells again takes four fifths of the time. */
function veil(box, instance, columns, chosen) {
    const left = instance.convertToPixel({ xAxisIndex: 1 }, 0), each = (instance.convertToPixel({ xAxisIndex: 1 }, 100) - left) / columns.length;
    const at = i => snap(Math.min(Math.max(left + each * i, sides.left), instance.getWidth() - sides.right));
    const state = [chosen, left, each, instance.getWidth()].join();
    if (box.dataset.veiled === state)
        return;
    box.dataset.veiled = state;
    for (const old of box.querySelectorAll(".veil"))
        old.remove();
    box.append(...others(columns, chosen).filter(([first, end]) => at(end) > at(first))
        .map(([first, end]) => el("div", { class: "veil", style: `left: ${at(first)}px; width: ${at(end) - at(first)}px` })));
}

export function timeSection(data) {
    if (!data.timeline)
        return null;
    const { grid, phases } = data.timeline;
    const colorOf = phaseColors(phases.phases);
    const box = el("div", { class: "chart time", id: "heatmap", tabindex: "0", role: "img", "aria-label": "Miss ratio by time and cache size. The arrow keys read the values, plus and minus zoom, Enter chooses the phase; the phases are in the table below, too." });
    const status = el("div", { class: "status", "aria-live": "polite", id: "heatmap-status" });
    const all = phases.phases.reduce((sum, p) => sum + p.refs, 0), allTime = phases.phases.reduce((sum, p) => sum + p.cpu_ns, 0);
    const timed = phases.phases.every(p => p.cpu_ns !== null); // in full mode it is not known
    let chosen = null, drawn;
    const fade = () => veil(box, drawn.instance, grid.columns, chosen);
    const choose = phase => {
        chosen = chosen === phase ? null : phase;
        for (const button of body.querySelectorAll("button"))
            button.setAttribute("aria-pressed", String(Number(button.dataset.phase) === chosen));
        fade();
        document.dispatchEvent(new CustomEvent("phase", { detail: phases.phases.find(p => p.phase === chosen && chosen !== null) ?? null }));
    };
    let at = [-1, 0]; // column and size that the keys have reached
    const zoom = factor => {
        const { start, end } = drawn.instance.getOption().dataZoom[0], width = Math.min((end - start) * factor, 100);
        const first = Math.min(Math.max(100 * (Math.max(at[0], 0) + 0.5) / grid.columns.length - width / 2, 0), 100 - width);
        drawn.instance.dispatchAction({ type: "dataZoom", start: first, end: first + width });
    };
    const move = (i, k) => {
        at = [Math.min(Math.max(i, 0), grid.columns.length - 1), Math.min(Math.max(k, 0), grid.sizes.length - 1)];
        status.textContent = cellLines(grid, ...at).join("; ");
        // Cells whose value is not known are not drawn.
        const before = grid.columns.slice(0, at[0]).reduce((n, column) => n + column.miss_ratio.filter(v => v !== null).length, 0);
        if (grid.columns[at[0]].miss_ratio[at[1]] !== null)
            drawn.instance.dispatchAction({ type: "showTip", seriesIndex: 1, dataIndex: before + grid.columns[at[0]].miss_ratio.slice(0, at[1]).filter(v => v !== null).length });
        else
            drawn.instance.dispatchAction({ type: "hideTip" });
    };
    box.addEventListener("keydown", e => {
        const [i, k] = at, act = {
            ArrowLeft: () => move(i - 1, k), ArrowRight: () => move(i + 1, k), ArrowUp: () => move(i, k + 1), ArrowDown: () => move(i, k - 1),
            Home: () => move(0, k), End: () => move(grid.columns.length - 1, k), "+": () => zoom(0.5), "-": () => zoom(2),
            Enter: () => i >= 0 && choose(grid.columns[i].phase), Escape: () => drawn.instance.dispatchAction({ type: "hideTip" }),
        }[e.key];
        if (act) {
            e.preventDefault();
            act();
        }
    });
    const shown = [1 << 15, 1 << 18, 1 << 20, 1 << 23].map(bytes => phases.sizes.indexOf(bytes)).filter(k => k >= 0);
    const body = el("tbody", {}, ...[...phases.phases].sort((a, b) => b.refs - a.refs).slice(0, 20).map(p => el("tr", {},
        el("td", {}, el("button", { type: "button", "data-phase": p.phase, "aria-pressed": "false", style: `border-left: 0.8rem solid ${colorOf.get(p.phase)?.[0] ?? "#bbbbbb"}`, onclick: () => choose(p.phase) }, p.phase ? `phase ${p.phase}` : "not known")),
        el("td", { class: "number" }, all > 0 ? percent(p.refs / all, 2) : ""), timed ? el("td", { class: "number", "data-time": p.phase }, percent(p.cpu_ns / allTime, 2)) : null,
        el("td", { class: "number" }, String(p.windows)),
        ...shown.map(k => el("td", { class: "number", "data-phase": p.phase, "data-size": phases.sizes[k] }, percent(p.miss_ratio[k]))))));
    const element = el("section", { id: "time", "aria-label": "Over time" }, el("h2", {}, "Over time: miss ratio and phases"),
        el("figure", {}, box, el("figcaption", {}, legend("miss ratio", ...[0, 1, 2, 3, 4].map(i => percent(highest(grid) * (i / 4) ** 2, 1))), `${phases.threads ? "Each thread has a cache of its own. " : ""}Above: the phases.`, el("span", { class: "onscreen" }, " A click on a phase, here or in the table, shows its curve above and its hotspots below. Drag the ends of the bar at the bottom to zoom."))), status,
        el("div", { class: "scroll" }, el("table", { id: "phases" }, el("caption", {}, `Phases: share of the references${timed ? " and of the CPU time" : ""}, number of windows of time, and miss ratio by cache size.`), el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "phase"),
            ...["references", ...timed ? ["CPU time"] : [], "windows", ...shown.map(k => sizeAbout(phases.sizes[k]))].map(t => el("th", { scope: "col", class: "number" }, t)))), body)));
    return {
        element, draw: () => {
            drawn = chart(box, () => options(data), "canvas");
            drawn.instance.on("rendered", fade); // it may have been zoomed, or have another size
            drawn.instance.on("click", item => item.value && choose(grid.columns[item.value[0]].phase));
        },
    };
}
