import "./style.css";
import { Asking, type AskingData } from "./asking/asking.js";
import { readPayload } from "./payload/release.js";
import { showPage } from "./view/page.js";

const place = document.getElementById("page")!;
try {
  const payload = readPayload(document.getElementById("release")?.textContent ?? "");
  let asking: Promise<Asking> | undefined; // made for the first question
  await showPage(payload, place, payload.asking === null ? null : async (region) =>
    (await (asking ??= Asking.of(payload.asking as AskingData))).count(region));
  performance.mark("ready");
  document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
} catch (error) {
  place.textContent = error instanceof Error ? error.message : String(error);
  document.documentElement.dataset["ready"] = "failed";
  throw error;
}
