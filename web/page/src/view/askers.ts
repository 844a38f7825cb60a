/** Who answers questions about areas, for each kind of release: sentences, or null for a kind that cannot be asked. */

import { Asking, type AskingData, type Region } from "../asking/asking.js";
import { AskingMarks } from "../asking/asking_marks.js";
import { AskingSlots } from "../asking/asking_slots.js";
import type { Slot } from "../kinds/subject.js";
import type { CountFacts, PagePayload } from "../payload/release.js";
import { type Leading, percent, type Words } from "../words/words.js";

/** Answers for a region in a slot; fails, in words, for what cannot be answered. */
export type Asker = (region: Region, slot: Slot, words: Words) => Promise<readonly string[]>;

/** What is made of the data is made for the first question. */
export function askerOf(payload: PagePayload): Asker | null {
  if (payload.kind === "values" || payload.kind === "difference" || payload.asking === null) return null;
  const data = payload.asking as AskingData;
  if (payload.kind === "marks") return shares(payload, data);
  const whole = once(() => Asking.of(data)),
    slots = once(() => AskingSlots.of(data));
  const known = new Map<number, Asking>();
  return async (region, slot, words) => {
    if (slot === null || payload.kind !== "slots") return [counted((await whole()).count(region), payload, words)];
    if (!known.has(slot)) known.set(slot, (await slots()).during([slot]));
    return [`${payload.slots.names[slot]!}: ${counted(known.get(slot)!.count(region), payload, words)}`];
  };
}

function shares(payload: CountFacts, data: AskingData): Asker {
  const marks = once(() => AskingMarks.of(data));
  return async (region, _, words) => {
    const found = (await marks()).share(region);
    const said = found.shares.map((share) =>
      words.say(share.value === null ? "shareAnswerUnknown" : "shareAnswer", {
        mark: share.mark,
        ...percent({ ...share, value: share.value ?? NaN }, words),
      }),
    );
    const cells = {
      cells: words.number(found.cells),
      inside: words.number(found.inside),
      outside: words.number(found.outside),
    };
    return [
      ...said,
      words.say("shareOf", { people: counted(found.people, payload, words) }),
      words.say(found.inside || found.outside ? "shareCellsCut" : "shareCells", cells),
    ];
  };
}

function counted(found: Leading, payload: CountFacts, words: Words): string {
  return words.say("answer", { ...words.interval(found), counted: words.counted(payload.estimand) });
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
