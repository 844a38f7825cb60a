import "./style.css";
import { readPayload } from "./payload/release.js";
import { showPage } from "./view/page.js";

const place = document.getElementById("page")!;
try {
  await showPage(readPayload(document.getElementById("release")?.textContent ?? ""), place, null);
  performance.mark("ready");
  document.documentElement.dataset["ready"] = String(Math.round(performance.now()));
} catch (error) {
  place.textContent = error instanceof Error ? error.message : String(error);
  document.documentElement.dataset["ready"] = "failed";
  throw error;
}
