/** What cells are called: as hazemap calls them, from their places where those tell. */

import { unpack } from "../payload/arrays.js";
import type { Places } from "../payload/release.js";

/** A function from the position of a cell to its name. */
export async function namesOf(places: Places, names: readonly string[] | null): Promise<(index: number) => string> {
  if (names !== null) return (index) => names[index] ?? "";
  if (places.shape === "rings" && places.h3) {
    const cells = await unpack(places.h3);
    return (index) => cells[index]!.toString(16).padStart(15, "0");
  }
  if (places.shape !== "squares") return () => "";
  const [level, column, row] = await Promise.all([unpack(places.level), unpack(places.column), unpack(places.row)]);
  const prefix = places.left === 0 && places.top === 0 && places.side === 1 && !places.plane ? "" : "root-";
  return (index) => {
    let digits = "";
    for (let bit = level[index]! - 1; bit >= 0; bit--) {
      digits += String(((column[index]! >>> bit) & 1) | (((row[index]! >>> bit) & 1) << 1));
    }
    return digits === "" ? "root" : prefix + digits;
  };
}
