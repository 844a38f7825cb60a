import { CodecError, UnknownKind } from "./errors.js";
import type { Json } from "./json_text.js";
import { fieldsOf, textOf, typed, whole } from "./typed_json.js";
import { ZONE_NAMES } from "./zone_names.js";

const [DAY, WEEK] = [86_400, 7];
const MOST_SLOTS = 1 << 16;
/** Seconds since 1970 that every clock can show. */
const [EARLIEST, LATEST] = [-62_103_801_600, 253_338_000_000];
/** 1900 and 2100: before and after, clocks are taken to stay as they are then. */
const [FIRST, LAST] = [-2_208_988_800, 4_102_444_800];

/** A public way to divide time, and what a person is told of it. */
export interface TimeSlots {
  readonly many: number;
  readonly words: string;
  /** The slot of a moment in seconds since 1970 (UTC); -1 for none, and where no moment is known. */
  at(moment: number | null | undefined): number;
}

/** Slots as the codec writes them; `UnknownKind` for clocks that this machine does not know. */
export function readSlots(json: Json | undefined): TimeSlots {
  const [kind, value] = typed(json, "the slots");
  switch (kind) {
    case "Clock": {
      const { edges, zone } = fieldsOf(value, kind, "edges", "zone");
      return partsOfDay(rising(edges, 1, DAY, 0, DAY - 1), clocksOf(zone));
    }
    case "Weekdays":
      return daysOfWeek(clocksOf(fieldsOf(value, kind, "zone")["zone"]));
    case "Spans": {
      const { edges, zone } = fieldsOf(value, kind, "edges", "zone");
      return spans(rising(edges, 2, MOST_SLOTS + 1, EARLIEST, LATEST), clocksOf(zone));
    }
  }
  throw new CodecError("rows are counted by parts of the day, days of the week or stretches of time");
}

/** The last one goes on over midnight until the first begins. */
function partsOfDay(edges: readonly number[], { zone, local }: Clocks): TimeSlots {
  const many = edges.length;
  return {
    many,
    words: `${many} parts of the day, as clocks of ${zone} show it`,
    at: (moment) => (known(moment) ? (following(edges, modulo(Math.floor(local(moment)), DAY)) + many - 1) % many : -1),
  };
}

/** From Monday. */
function daysOfWeek({ zone, local }: Clocks): TimeSlots {
  return {
    many: WEEK,
    words: `days of the week in ${zone}`,
    at: (moment) => (known(moment) ? modulo(Math.floor(local(moment) / DAY) + 3, WEEK) : -1), // 1970 began on a Thursday
  };
}

function spans(edges: readonly number[], { zone }: Clocks): TimeSlots {
  const many = edges.length - 1;
  const at = (moment: number | null | undefined): number => {
    const slot = known(moment) ? following(edges, moment) - 1 : -1;
    return slot < many ? slot : -1;
  };
  return {
    many,
    words: `${many} stretches of time in ${zone}, the first from ${new Date(1_000 * edges[0]!).toISOString()}`,
    at,
  };
}

/** Whether clocks can show a moment. */
export const known = (moment: number | null | undefined): moment is number =>
  typeof moment === "number" && moment >= EARLIEST && moment <= LATEST;

const modulo = (number: number, by: number): number => ((number % by) + by) % by;

/** How many edges are at most the moment. */
function following(edges: readonly number[], moment: number): number {
  let [low, high] = [0, edges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle]! <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

function rising(json: Json | undefined, fewest: number, most: number, least: number, greatest: number): number[] {
  if (!Array.isArray(json) || json.length < fewest || json.length > most)
    throw new CodecError(`slots have ${fewest} to ${most} edges`);
  const edges = json.map((edge) => whole(edge, "an edge of slots", least, greatest));
  if (edges.some((edge, at) => at > 0 && edges[at - 1]! >= edge))
    throw new CodecError("the edges of slots are in ascending order, each once");
  return edges;
}

/** A time zone, and what its clocks show at a moment: both in seconds since 1970. */
interface Clocks {
  readonly zone: string;
  local(moment: number): number;
}

/** The clocks of a zone. A moment costs some 0.1 µs, and 5 µs more for the first of each day (UTC). */
function clocksOf(json: Json | undefined): Clocks {
  const zone = textOf(json, "a time zone");
  if (!ZONE_NAMES.has(zone)) throw new CodecError("a time zone is a name such as Europe/Berlin, in this spelling");
  let format: Intl.DateTimeFormat;
  try {
    const numbers = {
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    } as const;
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      ...numbers,
    });
  } catch {
    throw new UnknownKind("zone", "this device does not know the clocks of the time zone that it is asked about");
  }
  const ahead = (moment: number): number => {
    const second = Math.floor(Math.min(Math.max(moment, FIRST), LAST));
    const part = Object.fromEntries(
      format.formatToParts(1_000 * second).map(({ type, value }) => [type, Number(value)]),
    );
    return (
      Date.UTC(part["year"]!, part["month"]! - 1, part["day"]!, part["hour"]!, part["minute"]!, part["second"]!) /
        1_000 -
      second
    );
  };
  const whole = new Map<number, number | null>(); // by day: how far ahead clocks are all day, or null where they are changed
  const local = (moment: number): number => {
    const day = Math.floor(moment / DAY);
    let all = whole.get(day);
    if (all === undefined) {
      const [begin, end] = [ahead(day * DAY), ahead((day + 1) * DAY - 1)];
      whole.set(day, (all = begin === end ? begin : null));
    }
    return moment + (all ?? ahead(moment));
  };
  return { zone, local };
}
