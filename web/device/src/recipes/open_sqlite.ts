import type { Sqlite3Static } from "@sqlite.org/sqlite-wasm";

/** SQLite from its initialiser, as quiet as a sandbox has to be: what goes wrong with a query is said nowhere. */
export async function quietSqlite(init: unknown, options: object = {}): Promise<Sqlite3Static> {
  const quiet = (): undefined => undefined;
  Object.assign(globalThis, { sqlite3ApiConfig: { debug: quiet, warn: quiet, error: quiet, log: quiet } });
  return (init as (options: object) => Promise<Sqlite3Static>)({ print: quiet, printErr: quiet, ...options });
}
