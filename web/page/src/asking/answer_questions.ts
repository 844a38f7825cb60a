/**
 * Answers questions outside of a page, for tests: from standard input the data of a map and questions, as JSON, and to
 * standard output their answers, or why there is none, and the milliseconds that they took.
 */

import { readFileSync } from "node:fs";

import { Asking, type AskingData, type Estimate, type Region, RegionError, sentence } from "./asking.js";
import { AskingMarks, type RegionShares } from "./asking_marks.js";
import { AskingSlots } from "./asking_slots.js";

/** About all slots together, or about some; of a map with marks, which share carries each. */
interface Question {
  readonly region: Region;
  readonly confidence: number;
  readonly slots?: readonly number[];
}

interface Asked {
  readonly asking: AskingData;
  readonly questions: readonly Question[];
}

const { asking, questions } = JSON.parse(readFileSync(0, "utf8")) as Asked;
const begin = process.cpuUsage();
const map = await Asking.of(asking);
const timed = asking.slots && (await AskingSlots.of(asking));
const marked = asking.marks && (await AskingMarks.of(asking));
const opened = cpu(begin);

/** Milliseconds of work since then: others may have the processor meanwhile. */
function cpu(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

function answer({
  region,
  confidence,
  slots,
}: Question): Estimate | RegionShares | { readonly reason: string; readonly message: string } {
  try {
    if (marked) return marked.share(region, confidence);
    return (slots && timed ? timed.during(slots) : map).count(region, confidence);
  } catch (error) {
    if (error instanceof RegionError) return { reason: error.reason, message: error.message };
    throw error;
  }
}

const answers = questions.map((question) => {
  const start = process.cpuUsage();
  const found = answer(question);
  const said = "best_guess" in found ? sentence(found) : "people" in found ? sentence(found.people) : found.message;
  return { found, said, milliseconds: cpu(start) };
});
process.stdout.write(JSON.stringify({ opened, answers }));
