/**
 * How the bundles are built: `vite build --mode page`, `studio` or `tab`, which is what `npm run bundle` of each does.
 * Whatever is bundled has a `licences.txt` beside it. Where the files go in hazemap's package, the Makefile says.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { defineConfig, type Plugin, type UserConfig } from "vite";

import { bundledLicences, licencesFile } from "./shared/bundled_licences.ts";

/** Servers are reached by TLS, or on this machine. Once it knows its server, the page forbids itself all others. */
const REACHED = "https: http://127.0.0.1:* http://localhost:* http://[::1]:*";

/** A page in one file: its name, what `licences.txt` calls it, and what its policy allows beside its own script and style. */
interface OneFile {
  readonly file: string;
  readonly called: string;
  readonly policy: (script: string, style: string) => readonly string[];
  /** Whether the licences stand in the page as well: one file has one digest. */
  readonly licencesInside: boolean;
}

const PAGE: OneFile = {
  file: "page.html",
  called: "page of a release",
  policy: (script, style) => [
    `script-src ${script}`,
    `style-src ${style}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ],
  licencesInside: false,
};

const TAB: OneFile = {
  file: "device.html",
  called: "device in a tab",
  policy: (script, style) => [
    `script-src ${script} 'wasm-unsafe-eval'`,
    `style-src ${style}`,
    `connect-src ${REACHED}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ],
  licencesInside: true,
};

const BUNDLES: Readonly<Record<string, UserConfig>> = {
  page: { base: "./", build: { assetsInlineLimit: 1 << 30 }, plugins: [oneFile(PAGE)] },
  tab: { base: "./", build: { assetsInlineLimit: 1 << 30 }, plugins: [sqliteInside(), oneFile(TAB)] },
  // Three files without a hash in their names: a page, a script and a style, which the studio serves as they are.
  studio: {
    base: "/",
    build: {
      assetsInlineLimit: 0,
      rolldownOptions: {
        output: { entryFileNames: "studio.js", assetFileNames: "studio[extname]", codeSplitting: false },
      },
    },
    plugins: [licences("studio")],
  },
};

/** Writes a page that holds its script and style and lets no other run, and `licences.txt`. */
function oneFile({ file, called, policy, licencesInside }: OneFile): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      let script = "",
        style = "",
        page = "";
      let modules: string[] = [];
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") {
          if (script !== "") throw new Error(`the page has one script; found another: ${name}`);
          script = part.code.trim().replaceAll(/<(?=\/script|!--)/g, "\\x3c");
          modules = part.moduleIds;
        } else if (name.endsWith(".css")) style = String(part.source).trim();
        else if (name.endsWith(".html")) page = String(part.source);
        delete bundle[name];
      }
      const allowed = ["default-src 'none'", ...policy(digest(script), digest(style))].join("; ");
      const licences = bundledLicences(modules);
      const whole = page
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${allowed}">`)
        .replace("</head>", () => `<style>${style}</style>\n</head>`)
        .replace(
          "</body>",
          () => `<script type="module">${script}</script>\n${licencesInside ? comment(licences) : ""}</body>`,
        );
      this.emitFile({ type: "asset", fileName: file, source: whole });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: licencesFile(called, licences) });
    },
  };
}

/** Adds `licences.txt` of what is bundled. */
function licences(called: string): Plugin {
  return {
    name: "licences",
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
      this.emitFile({
        type: "asset",
        fileName: "licences.txt",
        source: licencesFile(called, bundledLicences(modules)),
      });
    },
  };
}

/** SQLite's WebAssembly as a text in the script, and nothing in its JavaScript that would ask for another file. */
function sqliteInside(): Plugin {
  const [asked, inside] = ["virtual:sqlite-wasm", "\0sqlite-wasm"];
  return {
    name: "sqlite-inside",
    enforce: "pre",
    resolveId: (id) => (id === asked ? inside : null),
    load: (id) => {
      if (id !== inside) return null;
      const file = createRequire(import.meta.url).resolve("@sqlite.org/sqlite-wasm/sqlite3.wasm");
      return `export default ${JSON.stringify(readFileSync(file).toString("base64"))};`;
    },
    transform: (code, id) => {
      if (!id.replaceAll("\\", "/").includes("@sqlite.org/sqlite-wasm/dist/index.mjs")) return null;
      const files =
        /new Worker\(new URL\("[^"]+", import\.meta\.url\)(?:, \{ type: "module" \})?\)|new URL\("sqlite3\.wasm", import\.meta\.url\)\.href/g;
      if (code.match(files)?.length !== 3) throw new Error("SQLite asks for other files than it did");
      return { code: code.replace(files, "undefined").replaceAll("import.meta.url", '""'), map: null };
    },
  };
}

function digest(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

function comment(licences: readonly string[]): string {
  const own = "hazemap's device is under the Apache License 2.0, as hazemap is. This page holds these packages:\n";
  return `<!--\n${[own, ...licences].join("\n").replaceAll("--", "- -")}-->\n`;
}

export default defineConfig(({ mode }) => {
  const bundle = BUNDLES[mode];
  if (bundle === undefined)
    throw new Error(`there is no bundle '${mode}': choose --mode ${Object.keys(BUNDLES).join(", ")}`);
  return {
    ...bundle,
    root: join(import.meta.dirname, mode),
    build: {
      ...bundle.build,
      outDir: process.env["OUT"] ?? "dist/bundle",
      emptyOutDir: true,
      target: "es2022",
      modulePreload: false,
      cssCodeSplit: false,
      reportCompressedSize: false,
      rolldownOptions: { ...bundle.build?.rolldownOptions, checks: { bundlerTimings: false } }, // a busy machine is no fault
    },
  };
});
