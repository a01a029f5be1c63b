// SPDX-License-Identifier: Apache-2.0
// Apache ECharts with what the page uses of it, and the colours.
import { init, use } from "echarts/core";
import { CustomChart, LineChart, ScatterChart, TreemapChart } from "echarts/charts";
import { DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import { el } from "./base.js";

use([CanvasRenderer, CustomChart, DataZoomComponent, GridComponent, LegendComponent, LineChart, MarkLineComponent, ScatterChart, SVGRenderer, TooltipComponent, TreemapChart]);

const drawn = [];

/** Of Okabe and Ito, which the colour-blind can tell apart; lighter ones on dark. */
export function colors() {
    const dark = matchMedia("screen and (prefers-color-scheme: dark)").matches;
    const css = getComputedStyle(document.documentElement);
    return {
        dark, text: css.getPropertyValue("--text"), dim: css.getPropertyValue("--dim"), rule: css.getPropertyValue("--rule"),
        back: css.getPropertyValue("--back"), first: dark ? "#56b4e9" : "#0072b2", second: dark ? "#e69f00" : "#d55e00",
        third: dark ? "#f0e442" : "#009e73",
    };
}

// Cividis (Nunez, Anderton, Renslow 2018): in order for every kind of sight, and in grey.
const cividis = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"];

/** A colour for 0 to 1, and what can be read on it. */
export function scale(value) {
    const at = Math.min(Math.max(value, 0), 1) * (cividis.length - 1);
    const low = Math.min(Math.floor(at), cividis.length - 2), part = at - low;
    const channel = i => Math.round(parseInt(cividis[low].slice(i, i + 2), 16) * (1 - part) + parseInt(cividis[low + 1].slice(i, i + 2), 16) * part);
    const [r, g, b] = [1, 3, 5].map(channel);
    return { color: `rgb(${r},${g},${b})`, on: 0.299 * r + 0.587 * g + 0.114 * b > 130 ? "#000" : "#fff" };
}

/** What colours stand for: a bar from the lowest to the highest, with labels below it at equal distances. */
export function legend(title, ...labels) {
    return el("div", { class: "legend" }, title, el("div", {}, el("div", { class: "colours", style: `background: linear-gradient(to right, ${cividis.join()})` }),
        el("div", { class: "labels" }, ...labels.map(l => el("span", {}, l)))));
}

/** A chart in an element, drawn by options(); again when colours change. */
export function chart(element, options, renderer = "svg") {
    const instance = init(element, null, { renderer });
    const draw = () => {
        // What is zoomed stays so.
        const zoom = instance.getOption()?.dataZoom?.map(({ start, end }) => ({ start, end }));
        const next = { animation: false, ...options() };
        next.dataZoom = next.dataZoom?.map((z, i) => ({ ...z, ...zoom?.[i] }));
        instance.setOption(next, { notMerge: true });
    };
    draw();
    drawn.push({ instance, draw });
    return { instance, draw };
}

export function resizeAll() {
    for (const { instance } of drawn)
        instance.resize();
}

export function redrawAll() {
    for (const { instance, draw } of drawn) {
        instance.resize();
        draw();
    }
}

/** The looks of a tip; what is in it is an element, never HTML as text. */
export function tip(c) {
    return { confine: true, backgroundColor: c.back, borderColor: c.rule, textStyle: { color: c.text, fontSize: 13 }, transitionDuration: 0 };
}

export function tipLines(...lines) {
    return el("div", { class: "tip" }, ...lines.map((l, i) => el("div", {}, i === 0 ? el("strong", {}, l) : l)));
}
