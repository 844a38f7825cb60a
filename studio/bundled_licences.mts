import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder of the npm package that a bundled module is from; nothing for a module of ours. */
function packageOf(module: string): string | undefined {
  return /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(module.replace("\0", ""))?.[1];
}

/** Of each package that modules are from: its name, version and licence, then the licence's text and its notice. */
export function bundledLicences(modules: Iterable<string>): string[] {
  const folders = new Set([...modules].map(packageOf).filter((folder) => folder !== undefined));
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const files = [/^licen[cs]e/i, /^notice/i].map((kind) => readdirSync(folder).find((each) => kind.test(each)));
    if (files[0] === undefined) throw new Error(`${name} has no licence file`);
    const parts = files.filter((file) => file !== undefined).map((file) => readFileSync(join(folder, file), "utf8").trim());
    return `${[`${name} ${version} (${license})`, ...parts].join("\n\n")}\n`;
  });
}

/** `licences.txt` of one bundle, which `make studio` puts together into one file of the wheel. */
export function licencesFile(bundle: string, licences: readonly string[]): string {
  const own = `hazemap's ${bundle} is under the Apache License 2.0, as hazemap is. It holds these packages:\n`;
  return [own, ...(licences.length ? licences : ["none\n"])].join(`\n${"-".repeat(80)}\n\n`);
}
