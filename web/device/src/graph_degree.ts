import { Refused } from "./errors.js";
import { type Fraction, floorOf } from "./fraction.js";
import { MALICIOUS, type Mode } from "./session_parameters.js";

export const MOST_IN_A_SESSION = 10_000;
const MOST_DRAWN = 1_024;
const SECURITY = 2 ** -41;
const CORRECTNESS = 2 ** -20;
const OUTWARD = Math.log1p(1e-6);

/** ln(n!) up to n = 10,000, summed with Kahan's correction: to the last digits that matter. */
const FACTORIALS = (() => {
  const table = new Float64Array(MOST_IN_A_SESSION + 1);
  let [sum, lost] = [0, 0];
  for (let n = 1; n <= MOST_IN_A_SESSION; n++) {
    const term = Math.log(n) - lost;
    const next = sum + term;
    lost = next - sum - term;
    table[n] = sum = next;
  }
  return table;
})();

const choose = (n: number, k: number): number => FACTORIALS[n]! - FACTORIALS[k]! - FACTORIALS[n - k]!;

/** P(X ≥ least), `drawn` of `population` without replacement, X of them `marked`: never too small, 1 up to the mean. */
function tailFrom(population: number, marked: number, drawn: number, least: number): number {
  const most = Math.min(marked, drawn);
  if (least <= Math.max(0, drawn + marked - population) || least * population <= marked * drawn) return 1;
  if (least > most) return 0;
  const rest = population - marked;
  let term = Math.exp(choose(marked, least) + choose(rest, drawn - least) - choose(population, drawn) + OUTWARD);
  let total = term;
  for (let x = least; x < most; x++) {
    term *= ((marked - x) / (x + 1)) * ((drawn - x) / (rest - drawn + x + 1));
    total += term;
    if (term < total * 1e-17) break;
  }
  return Math.min(total, 1);
}

/** Of `clients` invited, `corrupt` work with the server and `missing` drop out. */
class NeighbourProbabilities {
  readonly corrupt: number;
  readonly missing: number;
  readonly lies: boolean;
  private readonly drawnFrom: number;

  constructor(
    readonly clients: number,
    corrupt: Fraction,
    dropout: Fraction,
    mode: Mode,
  ) {
    if (clients < 2 || clients > MOST_IN_A_SESSION) {
      throw new Refused(`a session has 2 to ${MOST_IN_A_SESSION} clients, not ${clients}`);
    }
    this.corrupt = floorOf(clients, corrupt);
    this.missing = floorOf(clients, dropout);
    this.lies = mode === MALICIOUS;
    this.drawnFrom = Math.max(this.corrupt, clients - this.missing - 1);
  }

  /** The least threshold that the corrupt do not reach (2t > k + c where the server lies). */
  leastThreshold(degree: number): number {
    const drawn = Math.min(degree, this.drawnFrom);
    let [fails, holds] = [-1, Math.min(this.corrupt, drawn)];
    while (holds - fails > 1) {
      const middle = Math.floor((fails + holds) / 2);
      if (tailFrom(this.drawnFrom, this.corrupt, drawn, middle + 1) < SECURITY / this.clients) holds = middle;
      else fails = middle;
    }
    return this.lies ? Math.floor((degree + holds) / 2) + 1 : holds + 1;
  }

  /** The largest threshold that every client's surviving neighbours reach, but for 2^−20. */
  mostThreshold(degree: number): number {
    let [holds, fails] = [0, degree + 1];
    while (fails - holds > 1) {
      const middle = Math.floor((fails + holds) / 2);
      if (tailFrom(this.clients - 1, this.missing, degree, degree - middle + 1) < CORRECTNESS / this.clients)
        holds = middle;
      else fails = middle;
    }
    return holds;
  }

  ringHolds(degree: number): boolean {
    const gone = this.corrupt + this.missing;
    if (degree > gone) return true;
    const pairs = Math.log(this.clients) + Math.log(this.clients - degree - 1) - Math.log(2);
    const all =
      FACTORIALS[gone]! - FACTORIALS[gone - degree]! - FACTORIALS[this.clients]! + FACTORIALS[this.clients - degree]!;
    return pairs + all + OUTWARD < Math.log(SECURITY);
  }

  /** ln of how likely the server can open a sum of a size from `first` to `last`, at most: each factor at its worst. */
  logClosed(degree: number, threshold: number, first: number, last: number): number {
    const honest = this.clients - this.corrupt;
    const inside = Math.min(this.corrupt + last - 1, this.drawnFrom);
    const drawnIn = tailFrom(this.drawnFrom, inside, Math.min(degree, this.drawnFrom), threshold);
    const sets = choose(honest, Math.min(Math.max(first, Math.floor(honest / 2)), last)) + OUTWARD;
    return drawnIn ? sets + first * Math.log(drawnIn) : -Infinity;
  }

  /** How many honest people are in any sum, but for 2^−40; `enough` if they are no fewer. */
  smallestGroup(degree: number, threshold: number, wanted: number): number {
    const enough = Math.min(wanted, this.clients - this.corrupt);
    if (threshold < this.leastThreshold(degree)) return 1;
    return this.closedBelow(degree, threshold, enough, 20) === enough
      ? enough
      : this.closedBelow(degree, threshold, enough, 1000);
  }

  private closedBelow(degree: number, threshold: number, enough: number, blocks: number): number {
    const honest = this.clients - this.corrupt;
    let total = 0;
    for (let size = 1; size < enough; ) {
      const last = Math.min(size + Math.floor(size / blocks), honest);
      total += (last - size + 1) * Math.exp(Math.min(0, this.logClosed(degree, threshold, size, last)));
      if (total >= SECURITY) return size;
      size = last + 1;
    }
    return enough;
  }

  /** Whether no sum is over fewer than half of the honest survivors, at the most threshold. */
  largeGroups(degree: number): boolean {
    const threshold = this.mostThreshold(degree);
    const wanted = Math.ceil(Math.max(1, this.clients - this.missing - this.corrupt) / 2);
    if (threshold < 2 || threshold > degree || threshold < this.leastThreshold(degree)) return false;
    if (wanted > 1 && this.logClosed(degree, threshold, wanted - 1, wanted - 1) >= Math.log(SECURITY)) return false;
    return this.smallestGroup(degree, threshold, wanted) >= wanted;
  }
}

/** The degree and threshold of a session; `Refused` if even with everybody a neighbour there are none. */
export function degreeAndThreshold(
  clients: number,
  corrupt: Fraction,
  dropout: Fraction,
  mode: Mode,
): [number, number] {
  const laws = new NeighbourProbabilities(clients, corrupt, dropout, mode);
  const found = laws.lies ? amongTheLying(laws) : onARing(laws);
  if (!found) throw new Refused(`no degree and threshold protect ${clients} people under these assumptions`);
  return found;
}

function amongTheLying(laws: NeighbourProbabilities): [number, number] | null {
  const last = Math.min(laws.clients - 1, MOST_DRAWN);
  let [fails, holds] = [1, 2];
  while (!laws.largeGroups(holds)) {
    if (holds >= last) return null;
    [fails, holds] = [holds, Math.min(2 * holds, last)];
  }
  while (holds - fails > 1) {
    const middle = Math.floor((fails + holds) / 2);
    if (laws.largeGroups(middle)) holds = middle;
    else fails = middle;
  }
  return [holds, laws.mostThreshold(holds)];
}

function onARing(laws: NeighbourProbabilities): [number, number] | null {
  const everybody = laws.clients - 1;
  for (let degree = 2; degree < everybody && degree <= MOST_DRAWN; degree += 2) {
    if (!laws.ringHolds(degree)) continue;
    const least = Math.max(2, laws.leastThreshold(degree));
    if (least <= laws.mostThreshold(degree)) return [degree, least];
  }
  if (everybody > MOST_DRAWN) return null;
  const least = Math.max(2, laws.leastThreshold(everybody));
  return least <= laws.mostThreshold(everybody) ? [everybody, least] : null;
}

/** Why a degree and threshold do not protect people; null where they do. */
export function weakness(
  clients: number,
  degree: number,
  threshold: number,
  corrupt: Fraction,
  dropout: Fraction,
  mode: Mode,
): string | null {
  const laws = new NeighbourProbabilities(clients, corrupt, dropout, mode);
  if (threshold < 2) return `a threshold of ${threshold} is too low: it is 2 or more`;
  if (degree > MOST_DRAWN) return `${degree} neighbours are more than the ${MOST_DRAWN} that a client has at most`;
  const least = laws.leastThreshold(degree);
  if (threshold < least)
    return `a threshold of ${threshold} is too low: a secret must take ${least} of ${degree} neighbours`;
  if (!laws.lies && degree < clients - 1 && !laws.ringHolds(degree)) return `${degree} neighbours are too few`;
  return null;
}

/** How many honest people are in any sum that a malicious server opens, but for probability 2^−40. */
export const together = (
  clients: number,
  degree: number,
  threshold: number,
  corrupt: Fraction,
  dropout: Fraction,
): number => new NeighbourProbabilities(clients, corrupt, dropout, MALICIOUS).smallestGroup(degree, threshold, clients);
