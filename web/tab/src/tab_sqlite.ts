import wasm from "virtual:sqlite-wasm";
import init from "@sqlite.org/sqlite-wasm";
import { quietSqlite } from "../../device/src/recipes/open_sqlite.js";
import type { OpenSqlite } from "../../device/src/recipes/query_sandbox.js";

let opened: ReturnType<OpenSqlite> | null = null;

/** SQLite of this page: it is in the page itself, and made when a recipe comes first. */
export const tabSqlite: OpenSqlite = () =>
  (opened ??= quietSqlite(init, { wasmBinary: Uint8Array.from(atob(wasm), (letter) => letter.charCodeAt(0)) }));
