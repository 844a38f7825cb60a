import { ascii, type Bytes, equal, sha256 } from "../../shared/src/bytes.js";
import { CellCounts } from "./cell_counts.js";
import { CodecError, Refused, UnknownKind } from "./errors.js";
import { Fraction, floorOf } from "./fraction.js";
import { degreeAndThreshold, MOST_IN_A_SESSION, together } from "./graph_degree.js";
import { isObject, type Json, parseCanonicalJson, TASK } from "./json_text.js";
import { modulusBits } from "./noise_modulus.js";
import { type AskedRecipe, asksRecipe, checkSum, readAskedRecipe, readPrice } from "./recipes/recipe_task.js";
import {
  encodeParameters,
  LARGEST_SCALE,
  MALICIOUS,
  type Mode,
  SEMI_HONEST,
  type SessionParameters,
} from "./session_parameters.js";
import { fieldsOf, fieldsOfType, fraction, textOf, typed, whole } from "./typed_json.js";

const MOST_SHARDS = 1 << 17;
/** Of a round's number; of the people of a cohort and of a shard. */
const [LARGEST, MOST_PEOPLE] = [2 ** 31 - 1, 2 ** 40];
const SAMPLINGS = ["one sample for all rounds", "a fresh sample each round"];
const FIELDS = ["budget", "campaign", "cohort", "price", "purpose", "question", "round"];

/** Whom a campaign asks, and what it assumes of a shard of them. */
export interface Cohort {
  readonly people: number;
  readonly shard: number;
  readonly dropout: Fraction;
  readonly corrupt: Fraction;
  readonly mode: Mode;
  readonly sampling: string;
}

/** One round of a campaign as a person can read it. */
export interface Task {
  readonly campaign: string;
  readonly purpose: string;
  readonly round: number;
  /** What is asked: counts of places in cells, or a recipe. */
  readonly counts: CellCounts | null;
  readonly asked: AskedRecipe | null;
  /** How many numbers an answer has, and how far one person can move their sums: Δ₁. */
  readonly size: number;
  readonly sensitivity: number;
  /** ε of this round, and of the whole campaign. Recipes cost a δ as well. */
  readonly price: Fraction;
  readonly budget: Fraction;
  readonly budgetDelta: Fraction;
  readonly cohort: Cohort;
  /** SHA-256 of the text: what a session is bound to. */
  readonly digest: Bytes;
}

/** The task in a text: `CodecError` for what is none, `Refused` for what this device does not answer. */
export async function readTask(text: string): Promise<Task> {
  return taskOf(parseCanonicalJson(text, TASK), await sha256(ascii(text)));
}

/** The task in JSON of which `digest` names the text. Errors as for `readTask`. */
export async function taskOf(json: Json | undefined, digest: Bytes): Promise<Task> {
  const [type, value] = typed(json, "a task");
  if (type !== "Task") throw new CodecError("this is no task");
  const randomised = isObject(value) && Object.hasOwn(value, "randomiser");
  const task = fieldsOf(value, "a task", ...FIELDS, ...(randomised ? ["randomiser"] : []));
  const question = fieldsOfType(task["question"], "Query", "the query", "cohort", "encoder", "share");
  if (question["cohort"] !== null) throw new CodecError("a task asks everybody, not a part of a cohort");
  const share = fraction(question["share"], "the share");
  const [campaign, purpose] = [textOf(task["campaign"], "the campaign's name"), textOf(task["purpose"], "the purpose")];
  if (!campaign) throw new CodecError("a task names its campaign");
  if (share.numerator <= 0n || share.compare(new Fraction(1)) > 0)
    throw new CodecError("a share is above 0, and at most 1");
  const about = {
    campaign,
    purpose,
    round: whole(task["round"], "the round", 1, LARGEST),
    cohort: cohort(task["cohort"]),
    digest,
  };
  if (asksRecipe(question["encoder"])) {
    const [price, budget] = [readPrice(task["price"], "the price"), readPrice(task["budget"], "the budget")];
    const asked = await readAskedRecipe(question["encoder"], task["randomiser"], purpose, share, price, budget);
    const { size } = asked.recipe;
    return {
      ...about,
      counts: null,
      asked,
      size,
      sensitivity: 1,
      price: price[0],
      budget: budget[0],
      budgetDelta: budget[1],
    };
  }
  if (randomised)
    throw new UnknownKind("randomiser", "this device adds noise in shares: of counts it randomises no reports");
  const [price, budget] = [epsilon(task["price"], "the price"), epsilon(task["budget"], "the budget")];
  if (price.compare(budget.times(share)) !== 0)
    throw new CodecError(`this task costs ${price}, which is not its share of ${budget}`);
  const counts = CellCounts.read(question["encoder"]);
  return {
    ...about,
    counts,
    asked: null,
    size: counts.size,
    sensitivity: counts.sensitivity,
    price,
    budget,
    budgetDelta: new Fraction(0),
  };
}

function epsilon(json: Json | undefined, where: string): Fraction {
  const found = fraction(fieldsOfType(json, "PureDP", where, "epsilon")["epsilon"], where);
  if (found.numerator <= 0n) throw new CodecError(`${where} is above 0`);
  return found;
}

function cohort(json: Json | undefined): Cohort {
  const found = fieldsOfType(json, "Cohort", "the cohort", "corrupt", "dropout", "mode", "people", "sampling", "shard");
  const [[modes, mode], [samplings, sampling]] = [
    typed(found["mode"], "the mode"),
    typed(found["sampling"], "the sampling"),
  ];
  if (modes !== "Mode" || (mode !== 1n && mode !== 2n)) throw new CodecError("the mode is 1 or 2");
  if (samplings !== "Sampling" || typeof sampling !== "string" || !SAMPLINGS.includes(sampling)) {
    throw new CodecError("the sampling is one of two texts");
  }
  const part = (name: string): Fraction => {
    const value = fraction(found[name], name);
    if (value.numerator < 0n || value.compare(new Fraction(1)) >= 0)
      throw new CodecError(`${name} is from 0 to below 1`);
    return value;
  };
  const read: Cohort = {
    people: whole(found["people"], "the people", 1, MOST_PEOPLE),
    shard: whole(found["shard"], "the shard", 1, MOST_PEOPLE),
    dropout: part("dropout"),
    corrupt: part("corrupt"),
    mode: mode === 1n ? SEMI_HONEST : MALICIOUS,
    sampling,
  };
  const shards = Math.ceil(read.people / read.shard);
  if (shards > MOST_SHARDS) throw new CodecError(`a round has at most ${MOST_SHARDS} shards`);
  if (Math.ceil(read.people / shards) > MOST_IN_A_SESSION)
    throw new CodecError(`a shard has at most ${MOST_IN_A_SESSION} people`);
  try {
    partiesOf(read, Math.floor(read.people / shards));
  } catch (error) {
    if (error instanceof Refused) throw new CodecError(error.message);
    throw error;
  }
  return read;
}

/** How many people's noise, or reports, are certain to be in an opened sum of so many. */
function partiesOf({ corrupt, dropout, mode }: Cohort, clients: number): number {
  const honest = clients - floorOf(clients, dropout) - floorOf(clients, corrupt);
  if (honest < 1) throw new Refused(`in a shard of ${clients} people nobody's noise would be certain to be there`);
  if (mode !== MALICIOUS) return honest;
  const [degree, threshold] = degreeAndThreshold(clients, corrupt, dropout, mode);
  return Math.min(honest, together(clients, degree, threshold, corrupt, dropout));
}

export const survivorsOf = ({ dropout }: Cohort, clients: number): number => clients - floorOf(clients, dropout);

/** The one set of terms that a task allows among so many clients, but for what is the server's to choose. */
export function termsOf(
  task: Task,
  clients: number,
  chosen: Pick<SessionParameters, "nonce" | "roster" | "graph">,
): SessionParameters {
  const { cohort } = task;
  if (clients > cohort.shard)
    throw new Refused(`a shard of ${clients} people was formed, but the task says at most ${cohort.shard}`);
  if (clients > MOST_IN_A_SESSION) throw new Refused(`a shard has at most ${MOST_IN_A_SESSION} people, not ${clients}`);
  try {
    return promised(task, clients, chosen);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new Refused(`no session of ${clients} people can keep what this task promises: ${error.message}`);
  }
}

function promised(
  task: Task,
  clients: number,
  chosen: Pick<SessionParameters, "nonce" | "roster" | "graph">,
): SessionParameters {
  const { cohort, size, sensitivity } = task;
  const parties = partiesOf(cohort, clients);
  const [degree, threshold] = degreeAndThreshold(clients, cohort.corrupt, cohort.dropout, cohort.mode);
  const survivors = survivorsOf(cohort, clients);
  if (task.asked) checkSum(task.asked, survivors, parties);
  const scale = task.asked ? new Fraction(0) : new Fraction(sensitivity).over(task.price);
  if (scale.compare(LARGEST_SCALE) > 0) throw new Refused("the scale of the noise is above 2^50");
  const bits = task.asked ? clients.toString(2).length + 1 : modulusBits(scale, parties, clients, sensitivity, size);
  if (bits > 32 || size < 1) throw new Refused(`no session has sums of ${size} numbers of ${bits} bits each`);
  return {
    mode: cohort.mode,
    task: task.digest,
    clients,
    degree,
    threshold,
    survivors,
    size,
    bits,
    scale,
    parties,
    nonce: chosen.nonce,
    roster: chosen.roster,
    graph: chosen.graph,
  };
}

/** `Refused` unless every parameter of a session follows from its task. */
export function checkTerms(task: Task, terms: SessionParameters): void {
  const wanted = termsOf(task, terms.clients, terms);
  for (const name of ["mode", "degree", "threshold", "survivors", "size", "bits", "parties"] as const) {
    if (terms[name] !== wanted[name]) throw new Refused(`the session's ${name} does not follow from its task`);
  }
  if (!equal(encodeParameters(terms), encodeParameters(wanted))) {
    throw new Refused("the session's terms do not follow from its task");
  }
}
