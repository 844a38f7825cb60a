import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder of the npm package that a bundled module is from; nothing for a module of ours. */
function packageOf(module: string): string | undefined {
  return /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(module.replace("\0", ""))?.[1];
}

/** What stands for a licence's file in a package that has none: what it says of itself, and the text that it names. */
const WITHOUT_FILE: Readonly<Record<string, () => string>> = {
  "@sqlite.org/sqlite-wasm": () =>
    "SQLite itself is in the public domain (https://sqlite.org/copyright.html). What is around it is under the Apache License 2.0:\n\n" +
    readFileSync(join(import.meta.dirname, "..", "..", "LICENSE"), "utf8").trim(),
};

/** Of each package that modules are from: its name, version and licence, then the licence's text and its notice. */
export function bundledLicences(modules: Iterable<string>): string[] {
  const folders = new Set([...modules].map(packageOf).filter((folder) => folder !== undefined));
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const files = [/^licen[cs]e/i, /^notice/i].map((kind) => readdirSync(folder).find((each) => kind.test(each)));
    if (files[0] === undefined && !Object.hasOwn(WITHOUT_FILE, name)) throw new Error(`${name} has no licence file`);
    const found = files
      .filter((file) => file !== undefined)
      .map((file) => readFileSync(join(folder, file), "utf8").trim());
    const parts = files[0] === undefined ? [WITHOUT_FILE[name]!(), ...found] : found;
    return `${[`${name} ${version} (${license})`, ...parts].join("\n\n")}\n`;
  });
}

/** `licences.txt` of one bundle, which `make studio` puts together into one file of the wheel. */
export function licencesFile(bundle: string, licences: readonly string[]): string {
  const own = `hazemap's ${bundle} is under the Apache License 2.0, as hazemap is. It holds these packages:\n`;
  return [own, ...(licences.length ? licences : ["none\n"])].join(`\n${"-".repeat(80)}\n\n`);
}
