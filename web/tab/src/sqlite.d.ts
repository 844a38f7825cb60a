/** SQLite's WebAssembly in base64: `vite.config.ts` puts it into the page. */
declare module "virtual:sqlite-wasm" {
  const base64: string;
  export default base64;
}
