import { h } from "../../../shared/src/elements.js";
import { number, type Sentence, say } from "../catalogue/languages.js";
import type { StudyBudget } from "../server.js";

const KNOWN: Record<string, Sentence> = {
  running: "stateRunning",
  done: "stateDone",
  failed: "stateFailed",
  stopped: "stateStopped",
  partial: "statePartial",
  open: "stateOpen",
  refused: "stateRefused",
  opened: "stateOpened",
  lost: "stateLost",
};
const STAGES: Record<string, Sentence> = {
  keys: "stageKeys",
  picks: "stagePicks",
  shares: "stageShares",
  masked: "stageMasked",
  assent: "stageAssent",
  unmask: "stageUnmask",
};

const TRUSTS: Record<string, Sentence> = {
  "secure-sum": "trustSecureSum",
  local: "trustLocal",
  "two-servers": "trustTwoServers",
  "one-report": "trustOneReport",
  shuffled: "trustShuffled",
};
const DOING: Record<string, Sentence> = {
  starting: "doingStarting",
  "opening the table": "doingOpening",
  "reading rows": "doingReading",
  "writing the file": "doingWriting",
};

/** Who is trusted, by the name that a campaign or a study has for it. */
export function trustOf(name: string): string {
  const known = TRUSTS[name];
  return known === undefined ? name : say(known);
}

/** What a study may ask for, or has left. */
export function budgetOf({ price, reports }: StudyBudget): string {
  return say("priceAndReports", { price, reports: number(reports) });
}

/** What a run does now. */
export function doingOf(words: string): string {
  const question = /^answering query (\d+)$/.exec(words)?.[1];
  const known = DOING[words];
  return question !== undefined
    ? say("doingAnswering", { number: question })
    : known === undefined
      ? words
      : say(known);
}

/** What became of a campaign, a round or a shard, in the reader's language where the word is known. */
export function stateOf(word: string): HTMLElement {
  const known = KNOWN[word];
  return known === undefined ? h("span", { lang: "en" }, word) : h("span", {}, say(known));
}

export function stageOf(word: string): string {
  const known = STAGES[word];
  return known === undefined ? word : say(known);
}
