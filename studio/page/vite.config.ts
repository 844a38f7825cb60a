import { createHash } from "node:crypto";
import { dirname } from "node:path";

import { defineConfig, type Plugin } from "vite";

import { bundledLicences, licencesFile } from "../bundled_licences.mts";

/** Writes `page.html`, which holds script and style and lets no other run, and `licences.txt` of what is bundled. */
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
        "default-src 'none'", `script-src ${digest(script)}`, `style-src ${digest(style)}`, "img-src data:",
        "base-uri 'none'", "form-action 'none'",
      ].join("; ");
      const whole = page
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("<!--policy-->", () => `<meta http-equiv="Content-Security-Policy" content="${policy}">`)
        .replace("</head>", () => `<style>${style}</style>\n</head>`)
        .replace("</body>", () => `<script type="module">${script}</script>\n</body>`);
      this.emitFile({ type: "asset", fileName: "page.html", source: whole });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: licencesFile("page of a release", bundledLicences(modules)) });
    },
  };
}

function digest(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

export default defineConfig({
  root: dirname(new URL(import.meta.url).pathname),
  base: "./",
  build: {
    outDir: process.env["OUT"] ?? "dist/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 1 << 30,
    reportCompressedSize: false,
  },
  plugins: [oneFile()],
});
