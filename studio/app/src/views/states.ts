import { say, type Sentence } from "../catalogue/languages.ts";
import { h } from "../elements.ts";

const KNOWN: Record<string, Sentence> = {
  running: "stateRunning", done: "stateDone", failed: "stateFailed", stopped: "stateStopped", partial: "statePartial",
  open: "stateOpen", refused: "stateRefused", opened: "stateOpened", lost: "stateLost",
};
const STAGES: Record<string, Sentence> = {
  keys: "stageKeys", picks: "stagePicks", shares: "stageShares", masked: "stageMasked", assent: "stageAssent",
  unmask: "stageUnmask",
};

/** What became of a campaign, a round or a shard, in the reader's language where the word is known. */
export function stateOf(word: string): HTMLElement {
  const known = KNOWN[word];
  return known === undefined ? h("span", { lang: "en" }, word) : h("span", {}, say(known));
}

export function stageOf(word: string): string {
  const known = STAGES[word];
  return known === undefined ? word : say(known);
}
