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

/** 32768: 32K. As the commands print sizes, which is exact: 1448 stays 1448. */
export function sizeText(bytes) {
    for (const [letter, power] of [["G", 30], ["M", 20], ["K", 10]])
        if (bytes >= 2 ** power && bytes % 2 ** power === 0)
            return bytes / 2 ** power + letter;
    return String(bytes);
}

/** Likewise for axes and tips, rounded: 1448 is 1.4K. */
export function sizeAbout(bytes) {
    for (const [letter, power] of [["G", 30], ["M", 20], ["K", 10]])
        if (bytes >= 2 ** power)
            return Number((bytes / 2 ** power).toPrecision(bytes / 2 ** power < 100 ? 2 : 3)) + letter;
    return String(Math.round(bytes));
}

/** A number as the csv formats have it. */
export function csvNumber(value) {
    return value === null ? "" : Number.isInteger(value) ? String(value) : value.toFixed(10);
}

export function percent(ratio, digits = 3) {
    return ratio === null || ratio === undefined ? "\u2013" : (100 * ratio).toFixed(digits) + "%";
}
