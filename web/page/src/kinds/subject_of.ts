/** The kind of release that a page holds. */

import type { Projection } from "../map/sheet.js";
import type { PagePayload } from "../payload/release.js";
import { CountMap } from "./count_map.js";
import { DifferenceMap } from "./difference_map.js";
import { ShareMap } from "./share_map.js";
import type { Subject } from "./subject.js";
import { ValueMap } from "./value_map.js";

export async function subjectOf(payload: PagePayload, projection: Projection): Promise<Subject> {
  switch (payload.kind) {
    case "map":
    case "slots":
      return CountMap.of(payload, projection);
    case "marks":
      return ShareMap.of(payload, projection);
    case "values":
      return ValueMap.of(payload, projection);
    case "difference":
      return DifferenceMap.of(payload, projection);
    default:
      throw new Error("this page is of a kind of release that it does not know: make it anew with hazemap show");
  }
}
