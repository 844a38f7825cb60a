#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { systemRandom } from "../../shared/src/bytes.js";
import { Agent } from "./agent.js";
import { Device } from "./device.js";
import { DeviceFile } from "./device_file.js";
import { readRows } from "./device_rows.js";
import { CodecError, InputError, Refused } from "./errors.js";
import { checkedAddress, HttpTransport } from "./http_transport.js";
import { DEFAULT_POLICY, pinned, readPolicy } from "./policy.js";
import { quietSqlite } from "./recipes/open_sqlite.js";
import type { OpenSqlite } from "./recipes/query_sandbox.js";
import { acceptPolicy } from "./recipes/recipe_side.js";

const USAGE =
  "node dist/node/device/src/main.js --server URL --code CODE --rows rows.json [--policy policy.json] [--file device.json] [--idle SECONDS] " +
  "[--recipes signed-policy.json --key HEX]";

/** SQLite, loaded when a recipe comes first. */
let loaded: ReturnType<OpenSqlite> | null = null;
const sqlite: OpenSqlite = () =>
  (loaded ??= import("@sqlite.org/sqlite-wasm").then(({ default: init }) => quietSqlite(init)));

async function main(): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: { server: text, code: text, rows: text, policy: text, file: text, idle: text, recipes: text, key: text },
  });
  if (!values.server || !values.rows) throw new InputError(USAGE);
  const idle = values.idle === undefined ? Infinity : Number(values.idle);
  if (!(idle > 0)) throw new InputError("--idle is a number of seconds above 0");
  const server = checkedAddress(values.server);
  const rows = readRows(readFileSync(values.rows, "utf8"));
  const policy = values.policy ? readPolicy(readFileSync(values.policy, "utf8")) : DEFAULT_POLICY;
  const log = (line: string): void => console.error(line);
  const lost = rows.filter(({ lon }) => Number.isNaN(lon)).length;
  if (lost) log(`${lost} of ${rows.length} rows are no places on earth: they count as rows outside of every map`);
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => stop.abort());
  const file = DeviceFile.open(values.file ?? "device.json", systemRandom);
  try {
    if (values.recipes) await acceptPolicy(file.record, readFileSync(values.recipes, "utf8"), values.key ?? "");
    await file.save();
    const device = await Device.of(file, policy, rows, log, { recipes: { sqlite, given: Date.now() } });
    await new Agent(device, file, new HttpTransport(server), server, values.code ?? "", idle, log, pinned(policy)).run(
      stop.signal,
    );
    if (!stop.signal.aborted) log("the campaign has ended for this device");
  } finally {
    file.close();
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    const ours = error instanceof InputError || error instanceof Refused || error instanceof CodecError;
    console.error(ours ? error.message : error);
    process.exit(ours ? 2 : 1);
  },
);
