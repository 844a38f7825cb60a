import "./style.css";
import { readPayload } from "./payload/release.js";

const place = document.getElementById("page")!;
try {
  const payload = readPayload(document.getElementById("release")?.textContent ?? "");
  place.textContent = payload.title;
} catch (error) {
  place.textContent = error instanceof Error ? error.message : String(error);
}
