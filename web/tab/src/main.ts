import "../../shared/src/look.css";
import "./style.css";
import { InputError } from "../../device/src/errors.js";
import { h } from "../../shared/src/elements.js";
import { DevicePage } from "./device_page.js";
import { isOnlyTab } from "./one_tab.js";
import { TabDevice } from "./tab_device.js";

const place = document.getElementById("device")!;

function complain(text: string): void {
  place.replaceChildren(
    h("main", {}, h("h1", {}, "A device in this tab"), h("p", { role: "alert", class: "problem" }, text)),
  );
}

/** What a link may fill in, which never leaves the browser: the server, a code, and a place for made-up walks. */
function fromLink(): URLSearchParams {
  const found = new URLSearchParams(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  return found;
}

async function begin(): Promise<void> {
  if (window.parent !== window)
    return complain(
      "This page stands inside another, which could have you press what you do not see. Open it by itself.",
    );
  if (!isSecureContext) return complain("This page must come by https://, or from this machine.");
  if (!(await isOnlyTab())) {
    return complain(
      "Another tab of this browser is your device already. Close it and load this page again: one device has one tab.",
    );
  }
  place.replaceChildren(new DevicePage(await TabDevice.open(), fromLink()).root);
  document.documentElement.dataset["ready"] = "";
}

begin().catch((error: unknown) =>
  complain(error instanceof InputError ? error.message : `This page cannot start: ${error}`),
);
