import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";

import { defineConfig, type Plugin } from "vite";

import { bundledLicences, licencesFile } from "../bundled_licences.mts";

/** Servers are reached by TLS, or on this machine. Once it knows its server, the page forbids itself all others. */
const REACHED = "https: http://127.0.0.1:* http://localhost:* http://[::1]:*";

/**
 * Writes `device.html`: script, style, the rules that let no other run, and the licences, which stand in
 * `licences.txt` as well. One file has one digest.
 */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      let script = "", style = "", page = "";
      let modules: string[] = [];
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") {
          if (script !== "") throw new Error("the page has one script; found another: " + name);
          script = part.code.trim().replaceAll(/<(?=\/script|!--)/g, "\\x3c");
          modules = part.moduleIds;
        } else if (name.endsWith(".css")) style = String(part.source).trim();
        else if (name.endsWith(".html")) page = String(part.source);
        delete bundle[name];
      }
      const policy = [
        "default-src 'none'", `script-src ${digest(script)} 'wasm-unsafe-eval'`, `style-src ${digest(style)}`, `connect-src ${REACHED}`,
        "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
      ].join("; ");
      const licences = bundledLicences(modules);
      const whole = page
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace("</head>", () => `<style>${style}</style>\n</head>`)
        .replace("</body>", () => `<script type="module">${script}</script>\n${comment(licences)}</body>`);
      this.emitFile({ type: "asset", fileName: "device.html", source: whole });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: licencesFile("device in a tab", licences) });
    },
  };
}

const [SQLITE, INSIDE] = ["virtual:sqlite-wasm", "\0sqlite-wasm"];

/** SQLite's WebAssembly as a text in the script, and nothing in its JavaScript that would ask for another file. */
function sqliteInside(): Plugin {
  return {
    name: "sqlite-inside",
    enforce: "pre",
    resolveId: (id) => (id === SQLITE ? INSIDE : null),
    load: (id) => {
      if (id !== INSIDE) return null;
      const file = createRequire(import.meta.url).resolve("@sqlite.org/sqlite-wasm/sqlite3.wasm");
      return `export default ${JSON.stringify(readFileSync(file).toString("base64"))};`;
    },
    transform: (code, id) => {
      if (!id.replaceAll("\\", "/").includes("@sqlite.org/sqlite-wasm/dist/index.mjs")) return null;
      const files = /new Worker\(new URL\("[^"]+", import\.meta\.url\)(?:, \{ type: "module" \})?\)|new URL\("sqlite3\.wasm", import\.meta\.url\)\.href/g;
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

export default defineConfig({
  root: dirname(new URL(import.meta.url).pathname),
  base: "./",
  build: {
    outDir: process.env["OUT"] ?? "dist/tab",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 1 << 30,
    reportCompressedSize: false,
  },
  plugins: [sqliteInside(), oneFile()],
});
