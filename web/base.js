// SPDX-License-Identifier: Apache-2.0
// Elements, and numbers and foreign text as text.

/** An element with attributes and children; strings become text nodes. */
export function el(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
        if (name.startsWith("on"))
            e.addEventListener(name.slice(2), value);
        else if (value !== undefined && value !== null && value !== false)
            e.setAttribute(name, value === true ? "" : value);
    e.append(...children.filter(c => c !== null && c !== undefined));
    return e;
}

/** Foreign text with what cannot be seen made visible: control characters, and those that change the direction. */
export function shown(text) {
    return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, c => {
        const code = c.charCodeAt(0);
        return code < 0x20 ? String.fromCharCode(0x2400 + code)
            : code === 0x7f ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
    });
}

/** 32768: 32K. Exact: 1448 stays 1448. */
export function sizeText(bytes) {
    for (const [letter, power] of [["G", 30], ["M", 20], ["K", 10]])
        if (bytes >= 2 ** power && bytes % 2 ** power === 0)
            return bytes / 2 ** power + letter;
    return String(bytes);
}

/** Likewise for axes and tips, rounded as in the commands' tables: 1448 is 1.41K. */
export function sizeAbout(bytes) {
    for (const [letter, power] of [["G", 30], ["M", 20], ["K", 10]])
        if (bytes >= 2 ** power)
            return (bytes / 2 ** power < 99.95 ? Number((bytes / 2 ** power).toPrecision(3)) : Math.round(bytes / 2 ** power)) + letter;
    return String(Math.round(bytes));
}

/** With so many decimals, as printf rounds: of two that are as near, the even one (toFixed takes the larger). */
function decimals(value, digits) {
    const exact = value.toFixed(digits + 30), even = exact.slice(0, -30).replace(/\.$/, "");
    return /50{29}$/.test(exact) && /[02468]$/.test(even) ? even : value.toFixed(digits);
}

/** A number as the csv formats have it. */
export function csvNumber(value) {
    return value === null ? "" : Number.isInteger(value) ? String(value) : decimals(value, 10);
}

/** A dash for a number that is not known. */
export function fixed(value, digits, unit = "") {
    return value === null || value === undefined ? "\u2013" : decimals(value, digits) + unit;
}

export function percent(ratio, digits = 3) {
    return fixed(ratio === null || ratio === undefined ? ratio : 100 * ratio, digits, "%");
}

export function baseName(path) {
    return path.slice(path.lastIndexOf("/") + 1);
}

/** Warnings, one a line of foreign text. */
export function warnings(lead, text) {
    return text.split("\n").filter(line => line).map(line => el("p", { class: "warning", role: "note" }, el("strong", {}, `${lead}: `), shown(line)));
}

/** What stands for a section that cannot be shown; null if there is no reason to tell. */
export function missing(title, what, why) {
    return why ? { element: el("section", {}, el("h2", {}, title), el("p", {}, `No ${what}: `, shown(why))) } : null;
}

/** A line that shows text while a phase is chosen: the section does not depend on it. */
export function phaseNote(id, text) {
    const note = el("p", { class: "dim", id, "aria-live": "polite" });
    document.addEventListener("phase", e => { note.textContent = e.detail ? text : ""; });
    return note;
}
