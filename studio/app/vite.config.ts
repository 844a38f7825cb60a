import { dirname } from "node:path";

import { defineConfig, type Plugin } from "vite";

import { bundledLicences, licencesFile } from "../bundled_licences.mts";

/** Adds `licences.txt` of what is bundled. */
function licences(): Plugin {
  return {
    name: "licences",
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
      this.emitFile({ type: "asset", fileName: "licences.txt", source: licencesFile("studio", bundledLicences(modules)) });
    },
  };
}

/** Three files without a hash in their names: a page, a script and a style, which the studio serves as they are. */
export default defineConfig({
  root: dirname(new URL(import.meta.url).pathname),
  base: "/",
  build: {
    outDir: process.env["OUT"] ?? "dist",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      output: { entryFileNames: "studio.js", assetFileNames: "studio[extname]", codeSplitting: false },
    },
  },
  plugins: [licences()],
});
