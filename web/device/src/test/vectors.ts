import { readFileSync } from "node:fs";

/** The golden vectors of this repository: any JSON. */
export const vectors = (name: string): any =>
  JSON.parse(readFileSync(new URL(`../../../../../../../tests/vectors/${name}.json`, import.meta.url), "utf8"));
