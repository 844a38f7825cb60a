/** What one letter of a text may be. */
type Letter = (letter: number) => boolean;
const ANY: Letter = () => true;
const MANY = null;

/** Whether a text is as one of these patterns says, which are written as for file names: `*`, `?`, `[a-z]`, `[!a-z]`. */
export function fits(text: string, patterns: readonly string[]): boolean {
  const letters = [...text].map((letter) => letter.codePointAt(0)!);
  return patterns.some((pattern) => matches(letters, parts(pattern)));
}

/** O(letters · parts): after a `*` only the last one may have to hold more. */
function matches(letters: readonly number[], pattern: readonly (Letter | null)[]): boolean {
  let [at, part, many, from] = [0, 0, -1, 0];
  while (at < letters.length) {
    const next = pattern[part];
    if (next === MANY) [many, from] = [part++, at];
    else if (next?.(letters[at]!)) [at, part] = [at + 1, part + 1];
    else if (many >= 0) [at, part] = [++from, many + 1];
    else return false;
  }
  while (pattern[part] === MANY) part++;
  return part === pattern.length;
}

function parts(pattern: string): (Letter | null)[] {
  const points = [...pattern].map((letter) => letter.codePointAt(0)!);
  const found: (Letter | null)[] = [];
  for (let at = 0; at < points.length; at++) {
    const letter = points[at]!;
    const first = at + 1 + Number(points[at + 1] === POINT("!"));
    const end = letter === POINT("[") ? points.indexOf(POINT("]"), first + 1) : -1; // a bracket that is first stands for itself
    if (end >= 0) {
      const one = oneOf(points.slice(first, end));
      found.push(first > at + 1 ? (other) => !one(other) : one);
      at = end;
    } else found.push(letter === POINT("*") ? MANY : letter === POINT("?") ? ANY : (other) => other === letter);
  }
  return found;
}

const POINT = (letter: string): number => letter.codePointAt(0)!;

/** Letters and ranges of them, such as a-z. */
function oneOf(points: readonly number[]): Letter {
  const ranges: [number, number][] = [];
  for (let at = 0; at < points.length; at++) {
    const low = points[at]!;
    if (points[at + 1] === POINT("-") && at + 2 < points.length) ranges.push([low, points[(at += 2)]!]);
    else ranges.push([low, low]);
  }
  return (letter) => ranges.some(([low, high]) => low <= letter && letter <= high);
}
