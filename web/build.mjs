// SPDX-License-Identifier: Apache-2.0
// Makes page.html from page.js, page.css and shell.html: the page of `cachegram html` without its data. The result is
// committed; tests/e2e/test_page.py checks that it is what this makes.
import * as esbuild from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const read = name => readFileSync(join(here, name), "utf8");

const bundle = async options => {
    const result = await esbuild.build({
        absWorkingDir: here, bundle: true, minify: true, write: false, charset: "ascii", legalComments: "none",
        target: "es2020", logLevel: "warning", ...options,
    });
    return result.outputFiles[0].text.trim();
};

// Inside <script> and <style> nothing is an end but their end tags; inside a script, <!-- has a meaning, too.
const script = (await bundle({ entryPoints: ["page.js"], format: "iife" }))
    .replace(/<\/(script)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");
const style = await bundle({ entryPoints: ["page.css"] });
if (/<\/style/i.test(style))
    throw new Error("page.css would end its element");
// No other script can run, whatever a name in the data contains; and the page cannot load anything.
const hash = "sha256-" + createHash("sha256").update(script).digest("base64");
const licences = [["Apache ECharts", "echarts/NOTICE"], ["zrender", "zrender/LICENSE"], ["d3 (parts, in Apache ECharts)", "echarts/licenses/LICENSE-d3"], ["tslib", "tslib/LICENSE.txt"]]
    .map(([name, file]) => `${name}\n\n${read("node_modules/" + file).trim()}\n`).join("\n").replace(/--+>?/g, "-");

const parts = { HASH: hash, STYLE: style, SCRIPT: script, LICENCES: licences };
const page = read("shell.html").replace(/@([A-Z]+)@/g, (all, name) => name in parts ? parts[name] : all);
const marker = "@DATA@";
if (page.split(marker).length !== 2)
    throw new Error("the place of the data is not unique");
writeFileSync(process.argv[2] ?? join(here, "page.html"), page);
