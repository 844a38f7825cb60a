import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { defineConfig, type Plugin } from "vite";

/** Servers are reached by TLS, or on this machine. Once it knows its server, the page forbids itself all others. */
const REACHED = "https: http://127.0.0.1:* http://localhost:* http://[::1]:*";

/** Writes `device.html`: script, style, the rules that let no other run, and the licences. One file has one digest. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_, bundle) {
      let script = "", style = "", page = "";
      const bundled = new Set<string>();
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") {
          if (script !== "") throw new Error("the page has one script; found another: " + name);
          script = part.code.trim().replaceAll(/<(?=\/script|!--)/g, "\\x3c");
          part.moduleIds.map(packageOf).forEach((folder) => folder && bundled.add(folder));
        } else if (name.endsWith(".css")) style = String(part.source).trim();
        else if (name.endsWith(".html")) page = String(part.source);
        delete bundle[name];
      }
      const policy = [
        "default-src 'none'", `script-src ${digest(script)}`, `style-src ${digest(style)}`, `connect-src ${REACHED}`,
        "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
      ].join("; ");
      const whole = page
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace("</head>", () => `<style>${style}</style>\n</head>`)
        .replace("</body>", () => `<script type="module">${script}</script>\n${licences([...bundled].sort())}</body>`);
      this.emitFile({ type: "asset", fileName: "device.html", source: whole });
    },
  };
}

function digest(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

function packageOf(module: string): string | undefined {
  return /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(module.replace("\0", ""))?.[1];
}

function licences(folders: string[]): string {
  const parts = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) throw new Error(`${name} has no licence file`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  const own = "hazemap's device is under the Apache License 2.0, as hazemap is. This page holds these packages:\n";
  return `<!--\n${[own, ...parts].join("\n").replaceAll("--", "- -")}-->\n`;
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
  plugins: [oneFile()],
});
