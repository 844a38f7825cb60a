import "./style.css";
import { readPayload } from "./payload/release.js";
import { askerOf } from "./view/askers.js";
import { showPage } from "./view/page.js";

const place = document.getElementById("page")!;
try {
  const payload = readPayload(document.getElementById("release")?.textContent ?? "");
  await showPage(payload, place, askerOf(payload));
  performance.mark("ready");
  document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
} catch (error) {
  place.textContent = error instanceof Error ? error.message : String(error);
  document.documentElement.dataset["ready"] = "failed";
  throw error;
}
