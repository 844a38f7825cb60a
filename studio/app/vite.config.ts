import { dirname } from "node:path";

import { defineConfig } from "vite";

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
});
